#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    weir_engine::fuzz_partial(data);
    weir_engine::exchange::fuzz_message(data);
});
