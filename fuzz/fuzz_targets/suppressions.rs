#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_lang::fuzz_suppressions(data));
