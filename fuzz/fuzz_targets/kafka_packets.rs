#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_kafka::packets::fuzz_packets(data));
