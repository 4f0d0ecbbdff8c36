//! The meaning of an outlet's name: told by its form alone, never by what there happens to be.
//!
//! | form | place |
//! |---|---|
//! | `dpdk:NAME` | a device of DPDK, as DPDK names it, whatever else stands there |
//! | `-` | standard output, as pcap |
//! | with a `/`, or ending in `.pcap`, `.pcapng`, `.cap`, `.gz`, `.zst` | a file |
//! | `xdp:NAME` | a network interface, by AF_XDP |
//! | `tap:NAME`, `tun:NAME` | a TAP or TUN device |
//! | `host:` | the host that receives, by the kernel's part of the query |
//! | `SCHEME://HOST…` | a tunnel |
//! | anything else | a network interface |

use std::fmt;
use weir_packet::vxlan;

/// Endings of names that mean files. The endings of compressed files are among them so that the
/// error speaks of compression.
const ENDINGS: [&str; 5] = [".pcap", ".pcapng", ".cap", ".gz", ".zst"];

/// Bytes of the name of a network interface, at most (`IFNAMSIZ` less its NUL).
pub(crate) const NAME_MAX: usize = 15;

/// Largest number of a VXLAN segment, of 24 bits (RFC 7348, section 5).
const VNI_MAX: u32 = 0xff_ffff;

/// Largest number of an ERSPAN session, of 10 bits.
const SESSION_MAX: u16 = 1023;

/// Where frames go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A capture file, or standard output.
    File,
    /// The interface of this name.
    Interface,
    /// The interface of this name, by AF_XDP.
    Xdp(String),
    /// The device of this name, with what its driver is told, by DPDK.
    Dpdk(String),
    /// A TAP device: Ethernet frames, as if received on it.
    Tap(String),
    /// A TUN device: IP packets, as if received on it.
    Tun(String),
    /// The stack of the host, as if nothing captured: the kernel's part of the query gives it
    /// packets, and the process can't.
    Host,
    /// A tunnel to another host.
    Tunnel(Tunnel),
}

/// A tunnel to another host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// How frames are wrapped.
    pub wrap: Wrap,
    /// The other end: a name or an address, without brackets.
    pub host: String,
    /// Whether IP may fragment what is too long for the way there.
    pub fragment: bool,
}

/// How frames are wrapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrap {
    /// The frame as the payload of a UDP datagram to this port.
    Udp(u16),
    /// VXLAN (RFC 7348).
    Vxlan {
        /// UDP port of the other end.
        port: u16,
        /// The segment.
        vni: u32,
    },
    /// GRE (RFC 2784): Ethernet frames transparently bridged, IP packets as such.
    Gre {
        /// The key (RFC 2890), if there is one.
        key: Option<u32>,
    },
    /// ERSPAN type II, in GRE with sequence numbers (draft-foschiano-erspan).
    Erspan {
        /// The session.
        session: u16,
    },
}

/// Why a name means no place. The text that it displays names the outlet and says what to try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaceError {
    name: String,
    reason: String,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl std::error::Error for PlaceError {}

impl Place {
    /// The place that a name means.
    ///
    /// # Errors
    /// When it has the form of a device or a tunnel and is none, or can't name an interface.
    pub fn of(name: &str) -> Result<Place, PlaceError> {
        place(name).map_err(|reason| PlaceError { name: name.to_owned(), reason })
    }
}

fn place(name: &str) -> Result<Place, String> {
    if let Some(device) = name.strip_prefix("dpdk:") {
        let missing = "a device of DPDK has a name, as in dpdk:0000:3b:00.1 and dpdk:net_null0";
        let none = device.is_empty() || device.starts_with(',');
        return if none { Err(missing.to_owned()) } else { Ok(Place::Dpdk(device.to_owned())) };
    }
    if let Some((scheme, rest)) = name.split_once("://") {
        return tunnel(scheme, rest).map(Place::Tunnel);
    }
    if name == "-" || name.contains('/') || ENDINGS.iter().any(|end| name.ends_with(end)) {
        return Ok(Place::File);
    }
    if let Some(rest) = name.strip_prefix("host:") {
        let more = || format!("host: has nothing after it, and not {rest:?}");
        return if rest.is_empty() { Ok(Place::Host) } else { Err(more()) };
    }
    let prefixes = [("xdp:", Place::Xdp as fn(String) -> Place), ("tap:", Place::Tap)];
    for (prefix, of) in prefixes.into_iter().chain([("tun:", Place::Tun as _)]) {
        if let Some(device) = name.strip_prefix(prefix) {
            interface(device)?;
            return Ok(of(device.to_owned()));
        }
    }
    interface(name)?;
    Ok(Place::Interface)
}

/// Whether an interface can have this name.
fn interface(name: &str) -> Result<(), String> {
    let file = "the name of a file ends in .pcap or .pcapng, or has a slash, as in ./capture";
    let wrong = name.chars().find(|&c| c.is_whitespace() || c.is_control() || c == ':');
    match (name.len(), wrong) {
        (0, _) => Err("an interface has a name, as in tap:weir0".to_owned()),
        (1..=NAME_MAX, None) if !matches!(name, "." | "..") => Ok(()),
        (_, Some(c)) => Err(format!("no interface has {c:?} in its name; {file}")),
        _ => Err(format!("names of interfaces have at most {NAME_MAX} bytes; {file}")),
    }
}

/// Parses `HOST[:PORT][?OPTION=VALUE&…]`.
fn tunnel(scheme: &str, rest: &str) -> Result<Tunnel, String> {
    let (end, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, port) = host_and_port(end)?;
    let mut options = Options::default();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        options.take(scheme, option)?;
    }
    let no_port = |port: Option<u16>| match port {
        Some(port) => Err(format!("{scheme} is carried by IP itself and has no port {port}")),
        None => Ok(()),
    };
    let wrap = match scheme {
        "udp" => {
            let port = port.ok_or("a port is missing, as in udp://192.0.2.1:9000")?;
            Wrap::Udp(port)
        }
        "vxlan" => {
            let vni = options.vni.ok_or("the segment is missing, as in vxlan://192.0.2.1?vni=7")?;
            Wrap::Vxlan { port: port.unwrap_or(vxlan::PORT), vni }
        }
        "gre" => {
            no_port(port)?;
            Wrap::Gre { key: options.key }
        }
        "erspan" => {
            no_port(port)?;
            let example = "the session is missing, as in erspan://192.0.2.1?session=7";
            Wrap::Erspan { session: options.session.ok_or(example)? }
        }
        _ => {
            return Err(format!(
                "there is no tunnel {scheme}://; those there are: udp://, vxlan://, gre://, \
                 erspan://"
            ));
        }
    };
    Ok(Tunnel { wrap, host, fragment: options.fragment.unwrap_or(true) })
}

/// Splits `HOST[:PORT]`; an IPv6 address with a port stands in brackets.
fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let port = |text: &str| match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("{text:?} is no port: those are 1 to 65535")),
    };
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("a closing bracket is missing")?;
        match rest.strip_prefix(':') {
            Some(text) => (host, Some(port(text)?)),
            None if rest.is_empty() => (host, None),
            None => return Err(format!("{rest:?} after the address is not a port")),
        }
    } else if text.matches(':').count() > 1 {
        (text, None)
    } else {
        match text.split_once(':') {
            Some((host, text)) => (host, Some(port(text)?)),
            None => (text, None),
        }
    };
    if host.is_empty() || host.contains(['/', '@', ' ']) {
        return Err(format!("{host:?} is not a host: expected an address or a name after ://"));
    }
    Ok((host.to_owned(), port))
}

/// The options that may stand after the `?`.
#[derive(Default)]
struct Options {
    vni: Option<u32>,
    key: Option<u32>,
    session: Option<u16>,
    fragment: Option<bool>,
}

impl Options {
    fn take(&mut self, scheme: &str, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let bad = |range: &str| format!("{name} is {range}, and not {value:?}");
        match (scheme, name) {
            ("vxlan", "vni") => {
                let vni = value.parse().ok().filter(|vni| *vni <= VNI_MAX);
                self.vni = Some(vni.ok_or_else(|| bad("0 to 16777215"))?);
            }
            ("gre", "key") => {
                self.key = Some(value.parse().map_err(|_| bad("0 to 4294967295"))?);
            }
            ("erspan", "session") => {
                let session = value.parse().ok().filter(|session| *session <= SESSION_MAX);
                self.session = Some(session.ok_or_else(|| bad("0 to 1023"))?);
            }
            (_, "fragment") => {
                let fragment = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(bad("yes or no")),
                };
                self.fragment = Some(fragment);
            }
            _ => {
                let own = match scheme {
                    "vxlan" => "vni and fragment",
                    "gre" => "key and fragment",
                    "erspan" => "session and fragment",
                    _ => "fragment",
                };
                return Err(format!("{scheme}:// has no option {name:?}; it has {own}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel_to(host: &str, wrap: Wrap) -> Place {
        Place::Tunnel(Tunnel { wrap, host: host.to_owned(), fragment: true })
    }

    #[test]
    fn the_form_of_a_name_says_what_it_is() {
        for file in ["-", "a.pcap", "a.pcapng", "./eth0", "/dev/full", "x.cap", "a.pcap.gz", "a/b"]
        {
            assert_eq!(Place::of(file), Ok(Place::File), "{file}");
        }
        for interface in ["eth0", "eth0.100", "wlp3s0", "br-lan", "pcap", "veth12@3"] {
            assert_eq!(Place::of(interface), Ok(Place::Interface), "{interface}");
        }
        assert_eq!(Place::of("xdp:eth0"), Ok(Place::Xdp("eth0".to_owned())));
        for device in ["0000:3b:00.1", "net_null0", "net_pcap0,tx_pcap=/tmp/x.pcap"] {
            assert_eq!(Place::of(&format!("dpdk:{device}")), Ok(Place::Dpdk(device.to_owned())));
        }
        assert_eq!(Place::of("host:"), Ok(Place::Host));
        assert_eq!(Place::of("tap:weir0"), Ok(Place::Tap("weir0".to_owned())));
        assert_eq!(Place::of("tun:weir0"), Ok(Place::Tun("weir0".to_owned())));
    }

    #[test]
    fn tunnels_have_ends_and_options() {
        let check = |name: &str, place| assert_eq!(Place::of(name), Ok(place), "{name}");
        check("udp://192.0.2.1:9000", tunnel_to("192.0.2.1", Wrap::Udp(9000)));
        check("udp://[2001:db8::1]:9000", tunnel_to("2001:db8::1", Wrap::Udp(9000)));
        check("udp://host.example:1", tunnel_to("host.example", Wrap::Udp(1)));
        let vxlan = |port, vni| Wrap::Vxlan { port, vni };
        check("vxlan://192.0.2.1?vni=7", tunnel_to("192.0.2.1", vxlan(4789, 7)));
        check("vxlan://192.0.2.1:8472?vni=16777215", tunnel_to("192.0.2.1", vxlan(8472, VNI_MAX)));
        check("gre://2001:db8::1", tunnel_to("2001:db8::1", Wrap::Gre { key: None }));
        check("gre://192.0.2.1?key=9", tunnel_to("192.0.2.1", Wrap::Gre { key: Some(9) }));
        check("erspan://192.0.2.1?session=5", tunnel_to("192.0.2.1", Wrap::Erspan { session: 5 }));
        let Ok(Place::Tunnel(whole)) = Place::of("vxlan://192.0.2.1?vni=7&fragment=no") else {
            panic!("a tunnel");
        };
        assert!(!whole.fragment);
    }

    #[test]
    fn mistakes_are_told_with_what_to_try() {
        let told = |name: &str| Place::of(name).expect_err(name).to_string();
        for (name, part) in [
            ("", "an interface has a name"),
            ("tap:", "an interface has a name"),
            ("dpdk:", "a device of DPDK has a name"),
            ("host:eth0", "has nothing after it, and not \"eth0\""),
            ("a much too long name", "no interface has ' ' in its name; the name of a file ends"),
            ("interface-number-one", "at most 15 bytes; the name of a file ends in .pcap"),
            ("tpa:weir0", "no interface has ':' in its name"),
            ("..", "names of interfaces"),
            ("http://x", "there is no tunnel http://; those there are: udp://, vxlan://"),
            ("udp://192.0.2.1", "a port is missing, as in udp://192.0.2.1:9000"),
            ("udp://192.0.2.1:0", "\"0\" is no port"),
            ("udp://:9", "\"\" is not a host"),
            ("udp://[::1]9", "\"9\" after the address is not a port"),
            ("udp://[::1:9", "a closing bracket is missing"),
            ("vxlan://192.0.2.1", "the segment is missing"),
            ("vxlan://192.0.2.1?vni=16777216", "vni is 0 to 16777215, and not \"16777216\""),
            ("vxlan://192.0.2.1?key=1", "has no option \"key\"; it has vni and fragment"),
            ("gre://192.0.2.1:7", "has no port 7"),
            ("erspan://192.0.2.1?session=1024", "session is 0 to 1023"),
            ("gre://192.0.2.1?fragment=maybe", "fragment is yes or no"),
        ] {
            let told = told(name);
            assert!(told.starts_with(&format!("{name}: ")) && told.contains(part), "{told}");
        }
    }
}
