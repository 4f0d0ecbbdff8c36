//! Names of numbers: protocols of IP, types of frames, and ports of services that people know by
//! name (IANA's registries).

/// The name of a protocol number of IP.
pub fn protocol(number: i64) -> Option<&'static str> {
    Some(match number {
        1 => "icmp",
        2 => "igmp",
        4 => "ipip",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        41 => "6in4",
        47 => "gre",
        50 => "esp",
        51 => "ah",
        58 => "icmp6",
        88 => "eigrp",
        89 => "ospf",
        103 => "pim",
        112 => "vrrp",
        115 => "l2tp",
        132 => "sctp",
        136 => "udplite",
        137 => "mpls",
        _ => return None,
    })
}

/// The name of a type of frames that hold no IP.
pub fn frame_type(number: i64) -> Option<&'static str> {
    Some(match number {
        0x0806 => "arp",
        0x8035 => "rarp",
        0x8809 => "slow protocols",
        0x8847 | 0x8848 => "mpls",
        0x8863 => "pppoe discovery",
        0x8864 => "pppoe",
        0x888e => "802.1x",
        0x88a4 => "ethercat",
        0x88cc => "lldp",
        0x88e5 => "macsec",
        0x88f7 => "ptp",
        _ => return None,
    })
}

/// The name of the service of a port.
pub fn service(port: i64) -> Option<&'static str> {
    Some(match port {
        20 => "ftp-data",
        21 => "ftp",
        22 => "ssh",
        23 => "telnet",
        25 => "smtp",
        53 => "dns",
        67 | 68 => "dhcp",
        69 => "tftp",
        80 => "http",
        88 => "kerberos",
        110 => "pop3",
        111 => "rpcbind",
        119 => "nntp",
        123 => "ntp",
        137..=139 => "netbios",
        143 => "imap",
        161 | 162 => "snmp",
        179 => "bgp",
        389 => "ldap",
        443 => "https",
        445 => "smb",
        465 | 587 => "submission",
        500 | 4500 => "ipsec",
        514 => "syslog",
        546 | 547 => "dhcpv6",
        554 => "rtsp",
        631 => "ipp",
        636 => "ldaps",
        853 => "dns-tls",
        873 => "rsync",
        989 | 990 => "ftps",
        993 => "imaps",
        995 => "pop3s",
        1194 => "openvpn",
        1433 => "mssql",
        1521 => "oracle",
        1701 => "l2tp",
        1812 | 1813 => "radius",
        1883 => "mqtt",
        1900 => "ssdp",
        2049 => "nfs",
        3128 => "squid",
        3306 => "mysql",
        3389 => "rdp",
        3478 => "stun",
        4739 => "ipfix",
        4789 => "vxlan",
        5060 | 5061 => "sip",
        5201 => "iperf3",
        5353 => "mdns",
        5355 => "llmnr",
        5432 => "postgresql",
        5900 => "vnc",
        6081 => "geneve",
        6379 => "redis",
        6653 => "openflow",
        8080 => "http-alt",
        8443 => "https-alt",
        9092 => "kafka",
        9100 => "printer",
        9418 => "git",
        11211 => "memcached",
        27017 => "mongodb",
        51820 => "wireguard",
        _ => return None,
    })
}

/// The name of a link type of captures.
pub fn link_type(number: i64) -> Option<&'static str> {
    Some(match number {
        0 => "BSD loopback",
        1 => "Ethernet",
        8 => "SLIP",
        9 | 50 => "PPP",
        12 | 14 | 101 => "raw IP",
        104 => "Cisco HDLC",
        105 => "802.11",
        107 => "Frame Relay",
        108 => "OpenBSD loopback",
        113 => "Linux cooked capture",
        127 => "802.11 with radiotap",
        192 => "PPI",
        228 => "raw IPv4",
        229 => "raw IPv6",
        239 => "netfilter log",
        276 => "Linux cooked capture v2",
        _ => return None,
    })
}

/// The name of a type of DNS records.
pub fn dns_type(number: i64) -> Option<&'static str> {
    Some(match number {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        10 => "NULL",
        12 => "PTR",
        13 => "HINFO",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        29 => "LOC",
        33 => "SRV",
        35 => "NAPTR",
        41 => "OPT",
        43 => "DS",
        46 => "RRSIG",
        47 => "NSEC",
        48 => "DNSKEY",
        50 => "NSEC3",
        52 => "TLSA",
        64 => "SVCB",
        65 => "HTTPS",
        251 => "IXFR",
        252 => "AXFR",
        255 => "ANY",
        257 => "CAA",
        _ => return None,
    })
}

/// The name of a response code of DNS.
pub fn dns_code(number: i64) -> Option<&'static str> {
    Some(match number {
        0 => "no error",
        1 => "format error",
        2 => "server failure",
        3 => "no such name",
        4 => "not implemented",
        5 => "refused",
        9 => "not authoritative",
        _ => return None,
    })
}
