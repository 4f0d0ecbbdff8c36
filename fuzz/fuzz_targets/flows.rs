#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_flows::fuzz_datagrams(data));
