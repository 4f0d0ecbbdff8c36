//! A session with a mail server (RFC 5321), with TLS (RFC 3207) and a password (RFC 4954).

use crate::connection::{Connection, Route};
use crate::failure::Failure;
use crate::limits::ANSWER_BYTES_MAX;
use crate::target::{Login, MailForm, MailSecurity};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Instant;

/// A mail, whole: headers and body, with `\r\n` at the end of each line.
pub(crate) struct Mail<'a> {
    pub(crate) form: &'a MailForm,
    /// The name of this host.
    pub(crate) host: &'a str,
    pub(crate) text: &'a str,
}

/// Sends a mail; `Ok` if the server has taken it for all recipients.
pub(crate) fn send(route: &Route, mail: &Mail<'_>, by: Instant) -> Result<(), Failure> {
    let secured_later = mail.form.security == MailSecurity::StartTls;
    let first = match secured_later {
        true => Route { tls: None, ..route.clone() },
        false => route.clone(),
    };
    let mut session = Session { connection: Connection::open(&first, by)?, rest: Vec::new() };
    session.reply("its greeting", &[220])?;
    let hello = format!("EHLO {}", mail.host);
    let mut offers = session.command(&hello, "EHLO", 250)?;
    if secured_later {
        let tls = route.tls.as_ref().filter(|_| offers.iter().any(|o| o == "STARTTLS"));
        let Some(tls) = tls else {
            let why = "it offers no TLS (STARTTLS); tls=no sends mails without";
            return Err(Failure::Busy(why.to_owned(), None));
        };
        session.command("STARTTLS", "STARTTLS", 220)?;
        session = session.secured(Arc::clone(tls), &route.peer.host)?;
        offers = session.command(&hello, "EHLO", 250)?;
    }
    if let Some(login) = &mail.form.login {
        session.log_in(login, &offers)?;
    }
    session.command(&format!("MAIL FROM:<{}>", mail.form.from), "MAIL FROM", 250)?;
    let mut refused = None;
    let mut takes_some = false;
    for to in &mail.form.to {
        // 251: it will forward (RFC 5321, section 4.2.2).
        match session.any_of(&[250, 251], &format!("RCPT TO:<{to}>"), "RCPT TO") {
            Ok(_) => takes_some = true,
            // The others get the mail.
            Err(failure @ Failure::Refused(_)) => drop(refused.get_or_insert(failure)),
            Err(failure) => return Err(failure),
        }
    }
    if let Some(failure) = refused.take_if(|_| !takes_some) {
        return Err(failure);
    }
    session.command("DATA", "DATA", 354)?;
    // A line with a period alone would end the mail.
    let text = mail.text.replace("\r\n.", "\r\n..");
    session.command(&format!("{text}\r\n."), "the mail", 250)?;
    // The mail is the server's now.
    drop(session.command("QUIT", "QUIT", 221));
    refused.map_or(Ok(()), Err)
}

struct Session {
    connection: Connection,
    /// Bytes that were read and not looked at.
    rest: Vec<u8>,
}

impl Session {
    /// Sends a line, and reads the reply, which has to have this code. Its lines are the result.
    fn command(&mut self, line: &str, name: &str, code: u16) -> Result<Vec<String>, Failure> {
        self.any_of(&[code], line, name)
    }

    /// The same, where the reply has to have one of these codes.
    fn any_of(&mut self, codes: &[u16], line: &str, name: &str) -> Result<Vec<String>, Failure> {
        let sent = self.connection.write_all(format!("{line}\r\n").as_bytes());
        sent.and_then(|()| self.connection.flush()).map_err(|e| Failure::away(name, &e))?;
        self.reply(name, codes)
    }

    fn reply(&mut self, to: &str, expected: &[u16]) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        loop {
            let line = self.line(to)?;
            bytes += line.len();
            let code = line.get(..3).and_then(|code| code.parse::<u16>().ok());
            let (Some(code), true) = (code, bytes <= ANSWER_BYTES_MAX) else {
                return Err(Failure::Busy("it does not answer as SMTP does".to_owned(), None));
            };
            lines.push(line.get(4..).unwrap_or_default().trim_end().to_uppercase());
            if line.as_bytes().get(3) == Some(&b'-') {
                continue;
            }
            let why = format!("it answers {code} to {to}");
            return match code {
                code if expected.contains(&code) => Ok(lines),
                500..=599 => Err(Failure::Refused(why)),
                _ => Err(Failure::Busy(why, None)),
            };
        }
    }

    fn line(&mut self, to: &str) -> Result<String, Failure> {
        let mut piece = [0; 1024];
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.rest.len() > ANSWER_BYTES_MAX {
                return Err(Failure::Busy("it does not answer as SMTP does".to_owned(), None));
            }
            let doing = format!("waiting for the answer to {to}");
            let n = self.connection.read(&mut piece).map_err(|e| Failure::away(&doing, &e))?;
            if n == 0 {
                return Err(Failure::Away(format!("{doing}: it closed the connection")));
            }
            self.rest.extend_from_slice(&piece[..n]);
        }
    }

    /// Goes on by TLS. Bytes that came before that are forgotten: somebody between could have added
    /// them.
    fn secured(self, tls: Arc<rustls::ClientConfig>, host: &str) -> Result<Session, Failure> {
        Ok(Session { connection: self.connection.secured(tls, host)?, rest: Vec::new() })
    }

    fn log_in(&mut self, login: &Login, offers: &[String]) -> Result<(), Failure> {
        let ways = offers.iter().find_map(|offer| offer.strip_prefix("AUTH "));
        let has = |way: &str| ways.is_some_and(|ways| ways.split(' ').any(|w| w == way));
        if has("PLAIN") {
            let text = BASE64.encode(format!("\0{}\0{}", login.user, login.password.0));
            self.command(&format!("AUTH PLAIN {text}"), "AUTH PLAIN", 235)?;
        } else if has("LOGIN") {
            self.command("AUTH LOGIN", "AUTH LOGIN", 334)?;
            self.command(&BASE64.encode(&login.user), "the user", 334)?;
            self.command(&BASE64.encode(&login.password.0), "the password", 235)?;
        } else {
            let why = "it takes no password by PLAIN or LOGIN; leave out the user";
            return Err(Failure::Busy(why.to_owned(), None));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::target::Peer;
    use std::net::TcpListener;
    use std::time::Duration;

    /// Whether a mail goes to a server that sends all these replies at once, and then closes.
    fn sent(replies: &str) -> Result<(), Failure> {
        sent_to(&["c@d"], replies).0
    }

    /// The same for these recipients, and what the server got.
    fn sent_to(recipients: &[&str], replies: &str) -> (Result<(), Failure>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let replies = replies.to_owned();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            // The client may have left before all was said.
            drop(stream.write_all(replies.as_bytes()));
            drop(stream.shutdown(std::net::Shutdown::Write));
            let mut all = Vec::new();
            drop(stream.read_to_end(&mut all));
            String::from_utf8_lossy(&all).into_owned()
        });
        let form = MailForm {
            security: MailSecurity::Plain,
            login: None,
            from: "a@b".to_owned(),
            to: recipients.iter().map(|to| (*to).to_owned()).collect(),
        };
        let route = Route { peer: Peer { host: "127.0.0.1".to_owned(), port }, tls: None };
        let mail = Mail { form: &form, host: "probe", text: "A: b\r\n\r\n.\r\n" };
        let result = send(&route, &mail, clock::now() + Duration::from_secs(10));
        (result, server.join().expect("no panic"))
    }

    #[test]
    fn a_recipient_that_is_refused_costs_no_other_the_mail() {
        let begin = "220 a\r\n250 a\r\n250 a\r\n";
        let refused = Failure::Refused("it answers 550 to RCPT TO".into());
        for [one, other] in [["250 a", "550 no"], ["550 no", "251 a"]] {
            let replies = format!("{begin}{one}\r\n{other}\r\n354 a\r\n250 a\r\n221 a\r\n");
            let (result, got) = sent_to(&["c@d", "e@f"], &replies);
            assert_eq!(result, Err(refused.clone()), "it is told");
            assert!(
                got.contains("RCPT TO:<e@f>\r\nDATA\r\n") && got.ends_with("QUIT\r\n"),
                "{got}"
            );
        }
        let (result, got) = sent_to(&["c@d", "e@f"], &format!("{begin}550 no\r\n550 no\r\n"));
        assert!(result == Err(refused) && !got.contains("DATA"), "{got}");
    }

    #[test]
    fn a_server_is_taken_at_its_word_and_no_further() {
        let whole = "220 a\r\n250-a\r\n250 b\r\n250 a\r\n250 a\r\n354 a\r\n250 a\r\n221 a\r\n";
        assert_eq!(sent(whole), Ok(()));
        assert_eq!(sent(&whole.replace("\r\n", "\n")), Ok(()));
        // It forwards the mail of a recipient.
        assert_eq!(sent(&whole.replace("250 a\r\n354", "251 a\r\n354")), Ok(()));
        let garbage = "it does not answer as SMTP does";
        let (long, lines) = ("x".repeat(100_000), "220-x\r\n".repeat(10_000));
        for (replies, expected) in [
            (
                "",
                Failure::Away(
                    "waiting for the answer to its greeting: it closed the connection".into(),
                ),
            ),
            ("421 later\r\n", Failure::Busy("it answers 421 to its greeting".into(), None)),
            ("554 never\r\n", Failure::Refused("it answers 554 to its greeting".into())),
            (
                "220 a\r\n250 a\r\n550 no\r\n",
                Failure::Refused("it answers 550 to MAIL FROM".into()),
            ),
            (
                "220 a\r\n250 a\r\n250 a\r\n450 no\r\n",
                Failure::Busy("it answers 450 to RCPT TO".into(), None),
            ),
            ("HTTP/1.1 400 x\r\n", Failure::Busy(garbage.into(), None)),
            ("\u{e4}\u{e4}\r\n", Failure::Busy(garbage.into(), None)),
            (&long, Failure::Busy(garbage.into(), None)),
            (&lines, Failure::Busy(garbage.into(), None)),
        ] {
            assert_eq!(sent(replies), Err(expected), "{:.40}", replies);
        }
    }
}
