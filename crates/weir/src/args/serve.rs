//! The usage and the examples of `weir serve`.

pub(super) const USAGE: &str = "\
weir serve -i <INTERFACE> [OPTIONS] [FILTER]...
       weir serve <CAPTURE>... [OPTIONS] [FILTER]...
       weir serve <QUERY>... -i <INTERFACE> [OPTIONS] [FILTER]...";

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo weir serve -i eth0
  weir serve capture.pcap
  sudo weir serve detectors/ -i eth0 --site /etc/weir/site.conf
  sudo weir serve -i eth0 --http 0.0.0.0:9464 --http-token-file token --http-host monitor.example";
