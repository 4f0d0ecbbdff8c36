#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_cluster::fuzz_probe_stream(data));
