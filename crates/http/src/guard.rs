//! The checks that a request passes before it is answered.

use crate::limits::TOKEN_BYTES;
use crate::page::is_of_page;
use crate::request::{Refused, RequestHead};
use crate::response::{Response, Status};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use subtle::ConstantTimeEq as _;

/// A secret that clients send as `Authorization: Bearer TOKEN` (RFC 6750).
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why a file holds no token that can be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum GuardError {
    /// It can't be read.
    Read(io::Error),
    /// Every user may read it.
    Open,
    /// It is too short, too long, or not of printable ASCII.
    Text,
}

impl fmt::Display for GuardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuardError::Read(e) => e.fmt(f),
            GuardError::Open => f.write_str("every user may use this token: chmod 0600 first"),
            GuardError::Text => {
                let (min, max) = (TOKEN_BYTES.start(), TOKEN_BYTES.end());
                write!(f, "expected a token of {min} to {max} printable ASCII characters")
            }
        }
    }
}

impl std::error::Error for GuardError {}

impl Token {
    /// The token in a file, without the blanks around it. Other users must not be able to read or
    /// change the file.
    ///
    /// # Errors
    /// If it can't be read, others may read it, or it holds no token.
    pub fn read(path: &Path) -> Result<Token, GuardError> {
        let mut file = File::open(path).map_err(GuardError::Read)?;
        let mode = file.metadata().map_err(GuardError::Read)?.permissions().mode();
        if mode & 0o007 != 0 {
            return Err(GuardError::Open);
        }
        let mut bytes = Vec::new();
        let most = *TOKEN_BYTES.end() as u64 + 16;
        (&mut file).take(most).read_to_end(&mut bytes).map_err(GuardError::Read)?;
        Token::new(bytes.trim_ascii()).ok_or(GuardError::Text)
    }

    /// A token that nobody knows, of 64 hexadecimal digits.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Token(digits.into_bytes()))
    }

    /// The token itself, to be given to who may use it.
    pub fn reveal(&self) -> &str {
        // It is of ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    fn new(bytes: &[u8]) -> Option<Token> {
        let fits = TOKEN_BYTES.contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
        fits.then(|| Token(bytes.to_vec()))
    }

    /// Whether a header `Authorization` has it. The time tells nothing but the length.
    fn is_in(&self, authorization: &[u8]) -> bool {
        let Some((scheme, token)) = authorization.split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(token.trim_ascii().ct_eq(&self.0))
    }
}

/// Which requests a run answers.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The token that clients need, if they need one.
    pub token: Option<Token>,
    /// The names, apart from `localhost`, by which clients may call this host.
    pub hosts: Vec<String>,
}

impl Guard {
    /// Lets a request pass, or says why it may not.
    ///
    /// A page from elsewhere can make a browser ask a run on this host under the name of the page's
    /// own host (DNS rebinding); so a name must be known. Such a page can't choose an address: a
    /// browser then holds its answer to be of another origin.
    pub(crate) fn check(&self, head: &RequestHead) -> Result<(), Refused> {
        let refuse = |status, text: &str| Err(Box::new(Response::text(status, text)));
        let Some(host) = head.once("host")? else {
            return refuse(Status::BadRequest, "the header Host is missing");
        };
        if !std::str::from_utf8(host).is_ok_and(|host| self.knows(host)) {
            return refuse(
                Status::Misdirected,
                "no such host here: ask by address, as localhost, or by a name of --http-host",
            );
        }
        // A link may lead to the document of the page, which says nothing of the run.
        let is_link = head.path == "/" && head.once("sec-fetch-mode")? == Some(b"navigate");
        let others = head.once("sec-fetch-site")?.is_some_and(|site| site == b"cross-site");
        let origin = head.once("origin")?;
        if others && !is_link || origin.is_some_and(|origin| !is_same(origin, host)) {
            return refuse(Status::Forbidden, "pages of other sites may not ask");
        }
        let authorization = head.once("authorization")?.unwrap_or_default();
        match &self.token {
            Some(token) if needs_token(&head.path) && !token.is_in(authorization) => {
                refuse(Status::Unauthorized, "send the token: Authorization: Bearer TOKEN")
            }
            _ => Ok(()),
        }
    }

    /// Whether this is an address, or a name of this host, with or without a port.
    fn knows(&self, host: &str) -> bool {
        if let Some(rest) = host.strip_prefix('[') {
            let Some((address, port)) = rest.split_once(']') else { return false };
            let is_ip = matches!(address.parse(), Ok(IpAddr::V6(_)));
            return is_ip && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
        }
        let name = match host.split_once(':') {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return false,
            None => host,
        };
        let known = |known: &String| known.eq_ignore_ascii_case(name);
        matches!(name.parse(), Ok(IpAddr::V4(_)))
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(known)
    }
}

/// Whether what is at a path says something of the run, or changes it.
pub(crate) fn needs_token(path: &str) -> bool {
    path != "/health" && !is_of_page(path)
}

/// Whether an origin (RFC 6454) is that of a host, which may be behind a proxy that speaks TLS.
fn is_same(origin: &[u8], host: &[u8]) -> bool {
    let rest = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::read_request;
    use std::fs::{self, Permissions};

    const SECRET: &[u8] = b"0123456789abcdef";

    fn status(guard: &Guard, headers: &str) -> Status {
        let bytes = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n");
        let pass = |head: &RequestHead| guard.check(head);
        let read = read_request(&mut bytes.as_bytes(), pass).expect("it is there");
        read.map_or_else(|response| response.status, |_| Status::Ok)
    }

    #[test]
    fn only_known_hosts_are_answered() {
        let guard = Guard { token: None, hosts: vec!["monitor.example".to_owned()] };
        for host in [
            "localhost",
            "LOCALHOST:9464",
            "127.0.0.1",
            "127.0.0.1:9464",
            "192.0.2.1:65535",
            "[::1]",
            "[2001:db8::1]:80",
            "monitor.example",
            "Monitor.Example:80",
        ] {
            assert_eq!(status(&guard, &format!("Host: {host}\r\n")), Status::Ok, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:",
            "localhost:65536",
            "localhost:+80",
            "localhost:80:80",
            "localhost@evil.example",
            "[::1",
            "[::1]x",
            "[127.0.0.1]",
            "0x7f.1",
            "2130706433",
            "",
            "\u{e9}",
        ] {
            let refused = status(&guard, &format!("Host: {host}\r\n"));
            assert_eq!(refused, Status::Misdirected, "{host:?}");
        }
        assert_eq!(status(&guard, ""), Status::BadRequest);
        let two = "Host: localhost\r\nHost: evil.example\r\n";
        assert_eq!(status(&guard, two), Status::BadRequest);
        let page = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n";
        assert_eq!(status(&guard, page), Status::Forbidden);
    }

    #[test]
    fn pages_of_others_may_only_link_to_the_document() {
        let guard = Guard { token: None, hosts: Vec::new() };
        let asked = |path: &str, headers: &str| {
            let bytes = format!("GET {path} HTTP/1.1\r\nHost: localhost:80\r\n{headers}\r\n");
            let pass = |head: &RequestHead| guard.check(head);
            let read = read_request(&mut bytes.as_bytes(), pass).expect("it is there");
            read.map_or_else(|response| response.status, |_| Status::Ok)
        };
        let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
        assert_eq!(asked("/", link), Status::Ok);
        assert_eq!(asked("/assets/app.js", link), Status::Forbidden);
        assert_eq!(asked("/metrics", link), Status::Forbidden);
        let inside = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n";
        assert_eq!(asked("/", inside), Status::Forbidden);
        for own in ["http://localhost:80", "https://LOCALHOST:80"] {
            assert_eq!(asked("/metrics", &format!("Origin: {own}\r\n")), Status::Ok, "{own}");
        }
        for other in ["http://localhost", "http://localhost:81", "http://evil.example", "null", ""]
        {
            let status = asked("/", &format!("Origin: {other}\r\n{link}"));
            assert_eq!(status, Status::Forbidden, "{other}");
        }
    }

    #[test]
    fn the_files_of_the_page_need_no_token() {
        let guard = Guard { token: Token::new(SECRET), hosts: Vec::new() };
        for (path, expected) in [
            ("/", Status::Ok),
            ("/assets/app.js", Status::Ok),
            ("/health", Status::Ok),
            ("/metrics", Status::Unauthorized),
            ("/api/v1/stats", Status::Unauthorized),
            ("/assets", Status::Unauthorized),
            ("//", Status::Unauthorized),
        ] {
            let bytes = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let pass = |head: &RequestHead| guard.check(head);
            let read = read_request(&mut bytes.as_bytes(), pass).expect("it is there");
            let status = read.map_or_else(|response| response.status, |_| Status::Ok);
            assert_eq!(status, expected, "{path}");
        }
    }

    #[test]
    fn random_tokens_differ() {
        let [a, b] = [(); 2].map(|()| Token::random().expect("random bytes"));
        assert_ne!(a.reveal(), b.reveal());
        assert!(Token::new(a.reveal().as_bytes()).is_some());
    }

    #[test]
    fn a_token_is_needed_whole() {
        let guard = Guard { token: Token::new(SECRET), hosts: Vec::new() };
        let with =
            |value: &str| status(&guard, &format!("Host: localhost\r\nAuthorization: {value}\r\n"));
        assert_eq!(with("Bearer 0123456789abcdef"), Status::Ok);
        assert_eq!(with("bEARER   0123456789abcdef"), Status::Ok);
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcdef0",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert_eq!(with(wrong), Status::Unauthorized, "{wrong}");
        }
        assert_eq!(status(&guard, "Host: localhost\r\n"), Status::Unauthorized);
        // Before the token is looked at.
        assert_eq!(status(&guard, "Host: evil.example\r\n"), Status::Misdirected);
    }

    #[test]
    fn a_file_of_a_token_is_for_its_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let read = |text: &[u8], mode| {
            fs::write(&path, text).expect("writes");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("is ours");
            Token::read(&path)
        };
        assert_eq!(read(b" 0123456789abcdef\n", 0o600).expect("a token").0, SECRET);
        assert!(read(SECRET, 0o640).is_ok());
        assert!(matches!(read(SECRET, 0o644), Err(GuardError::Open)));
        let long = vec![b'x'; 4097];
        for bad in
            [&b""[..], b"short", b"0123456789 abcdef", "0123456789abcd\u{e9}".as_bytes(), &long]
        {
            assert!(matches!(read(bad, 0o600), Err(GuardError::Text)), "{bad:?}");
        }
        assert!(read(&long[1..], 0o600).is_ok());
        fs::remove_file(&path).expect("there");
        assert!(matches!(Token::read(&path), Err(GuardError::Read(_))));
    }
}
