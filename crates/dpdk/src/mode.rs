//! How a device is captured from, and sent by, for the user to know.

use std::fmt;

/// Which memory there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// Of huge pages.
    Huge,
    /// Of normal pages.
    Normal {
        /// Huge pages that are free, in MiB.
        free_mib: usize,
        /// How many it would take, in MiB.
        needed_mib: usize,
    },
}

/// The setup of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mode {
    /// The port's name.
    pub device: String,
    /// DPDK's driver of it.
    pub driver: String,
    /// DPDK's version, in words.
    pub version: String,
    /// Which memory frames are in.
    pub pages: Pages,
    /// Receive queues; none where frames are only sent.
    pub queues: u16,
    /// Frames that the ring of a queue holds.
    pub descriptors: u16,
    /// Frames that wait to be sent, at most, where frames are sent.
    pub sends: Option<u16>,
    /// Buffers for frames that are received.
    pub buffers: u32,
    /// Longest frame behind its Ethernet header that is taken.
    pub mtu: u32,
    /// Whether frames that are meant for others are taken; or why it is not as it was asked for.
    pub promiscuous: Result<bool, String>,
    /// Whether it is asked for frames without a pause.
    pub busy_poll: bool,
}

/// One line.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mode { device, driver, version, queues, descriptors, buffers, mtu, .. } = self;
        write!(f, "{device}: {version}, driver {driver}, ")?;
        let receives = *queues > 0;
        if receives {
            let queued = if *queues == 1 { "queue" } else { "queues" };
            write!(f, "on {queues} {queued} of {descriptors}, ")?;
        }
        if let Some(descriptors) = self.sends {
            write!(f, "sends by a queue of {descriptors}, ")?;
        }
        match self.pages {
            Pages::Huge => write!(f, "huge pages")?,
            Pages::Normal { free_mib, needed_mib } => write!(
                f,
                "normal pages (of huge pages {free_mib} MiB are free and {needed_mib} MiB needed)"
            )?,
        }
        if !receives {
            return write!(f, ", MTU {mtu}");
        }
        write!(f, ", {buffers} buffers, MTU {mtu}")?;
        match &self.promiscuous {
            Ok(true) => {}
            Ok(false) => write!(f, ", not promiscuous")?,
            Err(why) => write!(f, ", promiscuous as the interface is ({why})")?,
        }
        match self.busy_poll {
            true => write!(f, ", asked without a pause"),
            false => write!(f, ", asked about every 0.1 ms when quiet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_got_and_why_not_better() {
        let mode = Mode {
            device: "net_af_packet0".to_owned(),
            driver: "net_af_packet".to_owned(),
            version: "DPDK 22.11.11".to_owned(),
            pages: Pages::Normal { free_mib: 0, needed_mib: 160 },
            queues: 1,
            descriptors: 4096,
            sends: None,
            buffers: 27_594,
            mtu: 1500,
            promiscuous: Err("not permitted".to_owned()),
            busy_poll: false,
        };
        assert_eq!(
            mode.to_string(),
            "net_af_packet0: DPDK 22.11.11, driver net_af_packet, on 1 queue of 4096, normal pages \
             (of huge pages 0 MiB are free and 160 MiB needed), 27594 buffers, MTU 1500, \
             promiscuous as the interface is (not permitted), asked about every 0.1 ms when quiet"
        );
        let mode = Mode { pages: Pages::Huge, queues: 2, promiscuous: Ok(false), ..mode };
        let mode = Mode { sends: Some(512), ..mode };
        let sends = mode.to_string();
        assert!(
            sends.contains(" 2 queues of 4096, sends by a queue of 512, huge pages, "),
            "{sends}"
        );
        let only = Mode { queues: 0, ..mode.clone() }.to_string();
        let want = "net_af_packet0: DPDK 22.11.11, driver net_af_packet, sends by a queue of 512, \
                    huge pages, MTU 1500";
        assert_eq!(only, want);
        let mode = Mode { busy_poll: true, sends: None, ..mode }.to_string();
        assert!(mode.contains(" on 2 queues of 4096, huge pages, "), "{mode}");
        assert!(mode.ends_with(", MTU 1500, not promiscuous, asked without a pause"), "{mode}");
    }
}
