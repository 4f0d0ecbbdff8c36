//! The two versions that messages are written in: IPFIX (RFC 7011), and NetFlow 9 (RFC 3954), from
//! which it came.

/// A version of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    Ipfix,
    Netflow9,
}

/// The header of a message, before its sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageHeader {
    /// When it is sent: seconds since 1970.
    pub(super) seconds: u32,
    /// For how many milliseconds the exporter has been up then; the number wraps.
    pub(super) uptime_ms: u32,
    /// Records of its sets, and templates.
    pub(super) records: u32,
    pub(super) templates: u32,
    pub(super) sequence: u32,
}

impl Version {
    /// Its name in messages to people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Version::Ipfix => "IPFIX",
            Version::Netflow9 => "NetFlow 9",
        }
    }

    /// Bytes before the first set of a message.
    pub(super) fn header_bytes(self) -> usize {
        match self {
            Version::Ipfix => 16,
            Version::Netflow9 => 20,
        }
    }

    /// The number of the set of templates.
    pub(super) fn template_set(self) -> u16 {
        match self {
            Version::Ipfix => 2,
            Version::Netflow9 => 0,
        }
    }

    /// The most that padding adds to a set: NetFlow 9 has sets of whole words.
    pub(super) fn padding_max(self) -> usize {
        match self {
            Version::Ipfix => 0,
            Version::Netflow9 => 3,
        }
    }

    /// The step from the number of a message to that of the next.
    pub(super) fn units(self, records: u32) -> u32 {
        match self {
            Version::Ipfix => records,
            Version::Netflow9 => 1,
        }
    }

    /// Appends a header, whose domain or source is 0: the whole exporter.
    pub(super) fn put_header(self, header: &MessageHeader, message: &mut Vec<u8>) {
        match self {
            Version::Ipfix => {
                message.extend(10u16.to_be_bytes());
                // The length is known when the message is.
                message.extend([0; 2]);
                message.extend(header.seconds.to_be_bytes());
            }
            Version::Netflow9 => {
                message.extend(9u16.to_be_bytes());
                // A datagram has no more of them.
                let count = header.records.saturating_add(header.templates);
                message.extend(u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
                message.extend(header.uptime_ms.to_be_bytes());
                message.extend(header.seconds.to_be_bytes());
            }
        }
        message.extend(header.sequence.to_be_bytes());
        message.extend([0; 4]);
    }

    /// Ends a message, whose length is known now.
    pub(super) fn end(self, message: &mut [u8]) {
        if self == Version::Ipfix {
            let length = message.len() as u16;
            message[2..4].copy_from_slice(&length.to_be_bytes());
        }
    }
}
