#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_engine::table::fuzz_collide(data));
