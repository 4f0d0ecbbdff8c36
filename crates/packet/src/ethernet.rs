//! Ethernet headers (IEEE 802.3), and the names of link types.
//!
//! ```text
//! +--------------------+--------------------+-----------+
//! | destination (6)    | source (6)         | type (2)  | payload …
//! +--------------------+--------------------+-----------+
//! ```
//!
//! A type under 1536 is the length of an 802.3 frame whose payload is LLC.

use crate::source::LinkType;
use crate::walk::Reason;

/// Offset of the destination address.
pub const DESTINATION: usize = 0;
/// Offset of the source address.
pub const SOURCE: usize = 6;
/// Offset of the EtherType.
pub const TYPE: usize = 12;
/// Bytes of the header.
pub const HEADER_LEN: usize = 14;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// The EtherType of LLDP (IEEE 802.1AB).
pub const LLDP: u16 = 0x88cc;
/// The smallest EtherType; smaller numbers are lengths.
pub const TYPE_MIN: u16 = 1536;

/// An Ethernet header and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Ethernet<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Ethernet<'a> {
    /// A view of `bytes`, which start at the header and end where the captured frame does.
    ///
    /// # Errors
    /// [`Reason::ShortHeader`] if there are fewer than 14 bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Ethernet<'a>, Reason> {
        let (header, rest) = bytes.split_first_chunk().ok_or(Reason::ShortHeader)?;
        Ok(Ethernet { header, rest })
    }

    /// Destination address.
    pub fn destination(&self) -> [u8; 6] {
        let h = self.header;
        [h[0], h[1], h[2], h[3], h[4], h[5]]
    }

    /// Source address.
    pub fn source(&self) -> [u8; 6] {
        let h = self.header;
        [h[6], h[7], h[8], h[9], h[10], h[11]]
    }

    /// EtherType, or the length of the payload if under [`TYPE_MIN`]. With a VLAN tag it is the
    /// tag's (see [`crate::vlan`]).
    pub fn ethertype(&self) -> u16 {
        u16::from_be_bytes([self.header[TYPE], self.header[TYPE + 1]])
    }

    /// The captured bytes after the header: VLAN tags, the packet, and any padding.
    pub fn payload(&self) -> &'a [u8] {
        self.rest
    }
}

/// The name of a link type in the LINKTYPE registry of tcpdump.org, without its prefix, and
/// `unknown` for those not listed here.
pub fn link_name(link: LinkType) -> &'static str {
    LINK_NAMES.iter().find(|(number, _)| *number == link.0).map_or("unknown", |(_, name)| name)
}

#[rustfmt::skip]
static LINK_NAMES: &[(u16, &str)] = &[
    (0, "NULL"), (1, "ETHERNET"), (2, "EXP_ETHERNET"), (3, "AX25"), (4, "PRONET"), (5, "CHAOS"),
    (6, "IEEE802_5"), (7, "ARCNET_BSD"), (8, "SLIP"), (9, "PPP"), (10, "FDDI"), (12, "RAW"),
    (14, "RAW"), (50, "PPP_HDLC"), (51, "PPP_ETHER"), (99, "SYMANTEC_FIREWALL"),
    (100, "ATM_RFC1483"), (101, "RAW"), (104, "C_HDLC"), (105, "IEEE802_11"), (106, "ATM_CLIP"),
    (107, "FRELAY"), (108, "LOOP"), (109, "ENC"), (112, "LINUX_SLIP"), (113, "LINUX_SLL"),
    (114, "LTALK"), (115, "ECONET"), (116, "IPFILTER"), (117, "PFLOG"), (118, "CISCO_IOS"),
    (119, "IEEE802_11_PRISM"), (120, "IEEE802_11_AIRONET"), (122, "IP_OVER_FC"), (123, "SUNATM"),
    (127, "IEEE802_11_RADIOTAP"), (128, "TZSP"), (129, "ARCNET_LINUX"), (130, "JUNIPER_MLPPP"),
    (131, "JUNIPER_MLFR"), (132, "JUNIPER_ES"), (133, "JUNIPER_GGSN"), (134, "JUNIPER_MFR"),
    (135, "JUNIPER_ATM2"), (136, "JUNIPER_SERVICES"), (137, "JUNIPER_ATM1"),
    (138, "APPLE_IP_OVER_IEEE1394"), (139, "MTP2_WITH_PHDR"), (140, "MTP2"), (141, "MTP3"),
    (142, "SCCP"), (143, "DOCSIS"), (144, "LINUX_IRDA"), (147, "USER0"), (148, "USER1"),
    (149, "USER2"), (150, "USER3"), (151, "USER4"), (152, "USER5"), (153, "USER6"),
    (154, "USER7"), (155, "USER8"), (156, "USER9"), (157, "USER10"), (158, "USER11"),
    (159, "USER12"), (160, "USER13"), (161, "USER14"), (162, "USER15"),
    (163, "IEEE802_11_AVS"), (165, "BACNET_MS_TP"), (166, "PPP_PPPD"), (169, "GPRS_LLC"),
    (170, "GPF_T"), (171, "GPF_F"), (172, "GCOM_T1E1"), (173, "GCOM_SERIAL"),
    (177, "LINUX_LAPD"), (178, "JUNIPER_ETHER"), (179, "JUNIPER_PPP"), (180, "JUNIPER_FRELAY"),
    (181, "JUNIPER_CHDLC"), (182, "MFR"), (187, "BLUETOOTH_HCI_H4"), (188, "IEEE802_16_MAC_CPS"),
    (189, "USB_LINUX"), (190, "CAN20B"), (191, "IEEE802_15_4_LINUX"), (192, "PPI"),
    (193, "IEEE802_16_MAC_CPS_RADIO"), (195, "IEEE802_15_4_WITHFCS"), (196, "SITA"),
    (197, "ERF"), (199, "IPMB"), (201, "BLUETOOTH_HCI_H4_WITH_PHDR"), (202, "AX25_KISS"),
    (203, "LAPD"), (204, "PPP_WITH_DIR"), (205, "C_HDLC_WITH_DIR"), (206, "FRELAY_WITH_DIR"),
    (207, "LAPB_WITH_DIR"), (209, "IPMB_LINUX"), (210, "FLEXRAY"), (211, "MOST"), (212, "LIN"),
    (215, "IEEE802_15_4_NONASK_PHY"), (220, "USB_LINUX_MMAPPED"), (224, "FC_2"),
    (225, "FC_2_WITH_FRAME_DELIMS"), (226, "IPNET"), (227, "CAN_SOCKETCAN"), (228, "IPV4"),
    (229, "IPV6"), (230, "IEEE802_15_4_NOFCS"), (231, "DBUS"), (235, "DVB_CI"), (236, "MUX27010"),
    (237, "STANAG_5066_D_PDU"), (239, "NFLOG"), (240, "NETANALYZER"),
    (241, "NETANALYZER_TRANSPARENT"), (242, "IPOIB"), (243, "MPEG_2_TS"), (244, "NG40"),
    (245, "NFC_LLCP"), (247, "INFINIBAND"), (248, "SCTP"), (249, "USBPCAP"), (250, "RTAC_SERIAL"),
    (251, "BLUETOOTH_LE_LL"), (253, "NETLINK"), (254, "BLUETOOTH_LINUX_MONITOR"),
    (255, "BLUETOOTH_BREDR_BB"), (256, "BLUETOOTH_LE_LL_WITH_PHDR"), (257, "PROFIBUS_DL"),
    (258, "PKTAP"), (259, "EPON"), (260, "IPMI_HPM_2"), (261, "ZWAVE_R1_R2"), (262, "ZWAVE_R3"),
    (263, "WATTSTOPPER_DLM"), (264, "ISO_14443"), (265, "RDS"), (266, "USB_DARWIN"),
    (267, "OPENFLOW"), (268, "SDLC"), (270, "TI_LLN_SNIFFER"), (271, "LORATAP"), (272, "VSOCK"),
    (273, "NORDIC_BLE"), (274, "DOCSIS31_XRA31"), (275, "ETHERNET_MPACKET"),
    (276, "LINUX_SLL2"), (277, "USB_2_0_LOW_SPEED"), (278, "ATSC_ALP"), (279, "ETW"),
    (280, "NETANALYZER_NG"), (281, "ZBOSS_NCP"), (283, "IEEE802_15_4_TAP"),
    (284, "SILABS_DEBUG_CHANNEL"), (285, "FIRA_UCI"), (286, "MDB"), (287, "DECT_NR"),
    (288, "AUERSWALD_LOG"), (289, "Z_WAVE_SERIAL"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_header() {
        let bytes = *b"\x02\0\0\0\0\x0b\x02\0\0\0\0\x0a\x08\0payload";
        let eth = Ethernet::new(&bytes).unwrap();
        assert_eq!(eth.destination(), [2, 0, 0, 0, 0, 0x0b]);
        assert_eq!(eth.source(), [2, 0, 0, 0, 0, 0x0a]);
        assert_eq!(eth.ethertype(), IPV4);
        assert_eq!(eth.payload(), b"payload");
        assert_eq!(Ethernet::new(&bytes[..13]).unwrap_err(), Reason::ShortHeader);
    }

    #[test]
    fn link_types_have_names() {
        assert_eq!(link_name(LinkType::ETHERNET), "ETHERNET");
        assert_eq!(link_name(LinkType::LINUX_SLL2), "LINUX_SLL2");
        assert_eq!(link_name(LinkType(105)), "IEEE802_11");
        assert_eq!(link_name(LinkType(60_000)), "unknown");
        assert!(LINK_NAMES.windows(2).all(|w| w[0].0 < w[1].0), "in order, each once");
    }
}
