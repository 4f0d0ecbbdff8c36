#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    weir_packet::tcp_options::fuzz_tcp_options(data);
    weir_packet::dns::fuzz_dns(data);
    weir_packet::read::fuzz_parts(data);
    weir_packet::tls::fuzz_tls(data);
    weir_packet::tls::ja4::fuzz_ja4(data);
    weir_packet::tls::records::fuzz_records(data);
    weir_packet::quic::initial::fuzz_initial(data);
    weir_packet::http::fuzz_http(data);
    weir_packet::dhcp::fuzz_dhcp(data);
    weir_packet::ntp::fuzz_ntp(data);
    weir_packet::sctp::fuzz_sctp(data);
    weir_packet::igmp::fuzz_igmp(data);
    weir_packet::ipsec::fuzz_ipsec(data);
});
