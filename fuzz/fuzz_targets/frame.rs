#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_packet::walk::fuzz_walk(data));
