#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    weir_packet::tcp_options::fuzz_tcp_options(data);
    weir_packet::dns::fuzz_dns(data);
});
