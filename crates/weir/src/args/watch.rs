//! The usage and the examples of `weir watch`.

pub(super) const USAGE: &str = "\
weir watch -i <INTERFACE> [OPTIONS] [FILTER]...
       weir watch <CAPTURE>... [OPTIONS] [FILTER]...
       weir watch <DETECTOR>... -i <INTERFACE> [OPTIONS] [FILTER]...";

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo weir watch -i eth0 --site /etc/weir/site.conf
  weir watch capture.pcap -o json
  weir watch detectors/floods detectors/scans capture.pcap
  weir watch --without detectors/tcp -i eth0 not port 9100";
