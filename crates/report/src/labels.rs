//! The subjects of rows, as people call them.

use crate::rows::KeptRow;
use weir_packet::known;
use weir_plan::Value;

/// A pair of hosts.
pub(crate) fn pair(row: KeptRow<'_>) -> String {
    match row.value("hosts.a") {
        Value::Absent => "not IP".to_owned(),
        _ => format!("{} ↔ {}", row.shown("hosts.a"), row.shown("hosts.b")),
    }
}

/// A service, by its protocol and port.
pub(crate) fn service(row: KeptRow<'_>) -> String {
    let protocol = protocol(row);
    match (row.int("ip.proto"), row.int("port")) {
        (None, None) => "not IP".to_owned(),
        (_, None) => format!("{protocol}, no port"),
        (_, Some(port)) => match known::service(port) {
            Some(name) => format!("{protocol}/{port} {name}"),
            None => format!("{protocol}/{port}"),
        },
    }
}

/// A protocol of IP, or another type of frames.
pub(crate) fn kind(row: KeptRow<'_>) -> String {
    match (row.int("ip.version"), row.int("type")) {
        (Some(version), _) => format!("IPv{version} {}", protocol(row)),
        (None, Some(number)) => match known::frame_type(number) {
            Some(name) => name.to_owned(),
            None => format!("frame type 0x{number:04x}"),
        },
        (None, None) => "no frame type".to_owned(),
    }
}

/// An address; packets without one are not IP.
pub(crate) fn address(row: KeptRow<'_>, name: &str) -> String {
    match row.value(name) {
        Value::Absent => "not IP".to_owned(),
        _ => row.shown(name),
    }
}

/// The protocol of IP, by name if it has one.
fn protocol(row: KeptRow<'_>) -> String {
    let number = row.int("ip.proto");
    match number.and_then(known::protocol) {
        Some(name) => name.to_owned(),
        None => number.map_or("ip".to_owned(), |number| format!("protocol {number}")),
    }
}

/// A connection by its ends.
pub(crate) fn connection(row: KeptRow<'_>) -> String {
    let end = |address: &str, port: &str| match (row.value(address), row.int(port)) {
        (Value::Ip(bits), Some(port)) => {
            std::net::SocketAddr::new(Value::to_ip(*bits), port as u16).to_string()
        }
        _ => row.shown(address),
    };
    match row.value("conn.a_ip") {
        Value::Absent => "not IP".to_owned(),
        _ => format!(
            "{} ↔ {} {}{}",
            end("conn.a_ip", "conn.a_port"),
            end("conn.b_ip", "conn.b_port"),
            protocol(row),
            within(row)
        ),
    }
}

/// In which VLAN and tunnel, where that tells flows apart (`--flow-key`).
fn within(row: KeptRow<'_>) -> String {
    let vlan = match (row.int("vlan.id"), row.int("vlan.inner")) {
        (Some(outer), Some(inner)) => format!(", VLAN {outer}.{inner}"),
        (Some(only), None) => format!(", VLAN {only}"),
        (None, _) => String::new(),
    };
    let tunnel = row.int("tunnel.id").map(|id| format!(", tunnel {id}"));
    vlan + &tunnel.unwrap_or_default()
}

/// The end of a connection that serves, by its columns `server` and `port`.
pub(crate) fn server(row: KeptRow<'_>) -> String {
    match (row.value("server"), row.int("port")) {
        (Value::Ip(bits), Some(port)) => {
            let end = std::net::SocketAddr::new(Value::to_ip(*bits), port as u16).to_string();
            known::service(port).map_or(end.clone(), |name| format!("{end} {name}"))
        }
        _ => address(row, "server"),
    }
}
