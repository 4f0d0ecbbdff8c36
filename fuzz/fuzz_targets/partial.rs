#![no_main]

#[path = "../../crates/engine/tests/sim/messages.rs"]
mod messages;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    weir_engine::fuzz_partial(data);
    messages::fuzz_message(data);
});
