#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_kafka::record::fuzz_records(data));
