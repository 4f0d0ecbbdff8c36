#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_plan::physical::fuzz_physical(data));
