//! Targets as text: `ADDRESS OPTION=VALUE …`, after `--alert-to` or as a line of a file.

use crate::clean;
use crate::limits::{
    CERTIFICATES_MAX, CONFIG_BYTES_MAX, REQUEST_BYTES_MAX, SECRET_BYTES_MAX, TARGETS_MAX,
};
use crate::signature::SigningKey;
use crate::target::{
    AlertFilter, AlertmanagerForm, BodyForm, Kind, Login, MailForm, MailSecurity, Peer,
    RequestForms, Secret, SyslogForm, Target, Transport, WebhookForm,
};
use crate::template::RequestTemplate;
use crate::tls::Trust;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use weir_base::alert::AlertSeverity;

/// Why a line names no target.
#[derive(PartialEq, Eq, Debug)]
pub struct LineError(String);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LineError {}

fn fault<T>(text: impl Into<String>) -> Result<T, LineError> {
    Err(LineError(text.into()))
}

/// Facilities of syslog, by number (RFC 5424, 6.2.1).
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

/// Schemes, and the ports where none is given.
const SCHEMES: [(&str, u16); 9] = [
    ("syslog", 514),
    ("syslog+tcp", 514),
    ("syslog+tls", 6514),
    ("http", 80),
    ("https", 443),
    ("smtp", 587),
    ("smtps", 465),
    ("alertmanager+http", 9093),
    ("alertmanager+https", 9093),
];

/// The seconds after which alerts that go on are repeated for Alertmanager, which forgets them
/// after five minutes unless told otherwise.
const REPEAT_SECONDS: u64 = 60;

impl Target {
    /// Reads a line. The files that it names are found from `folder`, and read.
    ///
    /// # Errors
    /// If it names no target, an option is unknown or wrong, or a file can't be read.
    pub fn parse(line: &str, folder: &Path) -> Result<Target, LineError> {
        let mut words = words(line)?.into_iter();
        let Some(address) = words.next() else { return fault("no address is given") };
        let address = Url::parse(&address)?;
        let mut options = Options { all: Vec::new(), known: Vec::new(), folder };
        for word in words {
            let Some((name, value)) = word.split_once('=') else {
                return fault(format!("`{word}` is no option; an option is NAME=VALUE"));
            };
            if options.all.iter().any(|(other, _)| other == name) {
                return fault(format!("{name} is given twice"));
            }
            options.all.push((name.to_owned(), value.to_owned()));
        }
        let target = target(address, &mut options)?;
        match options.all.first() {
            Some((name, _)) => fault(format!(
                "{} has no option `{name}`; it has {}",
                target.scheme_name(),
                options.known.join(", ")
            )),
            None => Ok(target),
        }
    }

    /// Reads a file with a target on each line; `#` at the beginning of a line starts a comment.
    ///
    /// # Errors
    /// As [`Target::parse`], with the number of the line; or if there are too many.
    pub fn read_file(path: &Path) -> Result<Vec<Target>, LineError> {
        let text = read(path, CONFIG_BYTES_MAX)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut all = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let target = Target::parse(line, folder);
            all.push(target.map_err(|e| LineError(format!("line {}: {e}", n + 1)))?);
        }
        if all.len() > TARGETS_MAX {
            return fault(format!("{} targets; there may be {TARGETS_MAX}", all.len()));
        }
        Ok(all)
    }

    fn scheme_name(&self) -> &str {
        self.name.split("://").next().unwrap_or_default()
    }
}

/// The words of a line. A value, or a part of it, may stand in double quotes.
fn words(line: &str) -> Result<Vec<String>, LineError> {
    let (mut all, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '"' => (quoted, any) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if std::mem::take(&mut any) {
                    all.push(std::mem::take(&mut word));
                }
            }
            c => {
                any = true;
                word.push(c);
            }
        }
    }
    if quoted {
        return fault("a quote is not closed");
    }
    if any {
        all.push(word);
    }
    Ok(all)
}

/// The parts of an address.
struct Url {
    scheme: &'static str,
    user: Option<String>,
    peer: Peer,
    /// The path and what follows it; `/` for none.
    path: String,
}

impl Url {
    fn parse(text: &str) -> Result<Url, LineError> {
        let schemes = || SCHEMES.map(|(name, _)| format!("{name}://")).join(", ");
        let Some((scheme, rest)) = text.split_once("://") else {
            return fault(format!(
                "`{}` is not an address of a receiver; write one that begins with {}",
                shown(text),
                schemes()
            ));
        };
        let Some(&(scheme, port)) = SCHEMES.iter().find(|(name, _)| *name == scheme) else {
            return fault(format!("`{scheme}://` is unknown; there are {}", schemes()));
        };
        if !rest.bytes().all(|b| b.is_ascii_graphic()) {
            return fault("an address has printable ASCII only; write other characters as %XX");
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(decoded(user)?), host),
            None => (None, authority),
        };
        let (host, given) = match host.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, rest)) => (host, rest.strip_prefix(':')),
                None => return fault("`]` is missing after an address of IPv6"),
            },
            None => match host.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (host, None),
            },
        };
        if host.is_empty() {
            return fault("a host is missing after `://`");
        }
        let port = match given {
            None => port,
            Some(text) => match text.parse() {
                Ok(port) if port != 0 => port,
                _ => return fault(format!("`{text}` is no port; ports are 1 to 65535")),
            },
        };
        Ok(Url { scheme, user, peer: Peer { host: host.to_owned(), port }, path })
    }

    /// Refuses a user or a path, which this kind of target has not.
    fn bare(&self) -> Result<(), LineError> {
        if self.user.is_some() {
            return fault(format!("{}:// takes no user", self.scheme));
        }
        match self.path.as_str() {
            "/" => Ok(()),
            path => fault(format!("{}:// takes no path, such as {path}", self.scheme)),
        }
    }
}

/// The beginning of a text that may hold secrets.
fn shown(text: &str) -> String {
    clean::line(text, 24)
}

/// A text with its `%XX` replaced.
fn decoded(text: &str) -> Result<String, LineError> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(b) = rest.next() {
        if b != b'%' {
            bytes.push(b);
            continue;
        }
        let digits = [rest.next().unwrap_or(b'x'), rest.next().unwrap_or(b'x')];
        let digits = str::from_utf8(&digits).unwrap_or_default();
        match u8::from_str_radix(digits, 16) {
            Ok(byte) => bytes.push(byte),
            Err(_) => return fault("after `%` an address has two hexadecimal digits"),
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => Ok(text),
        _ => fault("the user of an address is no text"),
    }
}

/// The options of a line that are not read yet, and the names of those that were asked for.
struct Options<'a> {
    all: Vec<(String, String)>,
    known: Vec<&'static str>,
    folder: &'a Path,
}

impl Options<'_> {
    fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let at = self.all.iter().position(|(other, _)| other == name)?;
        Some(self.all.remove(at).1)
    }

    /// An option that has one of some values.
    fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        values: &[(&str, T)],
        default: T,
    ) -> Result<T, LineError> {
        let Some(text) = self.take(name) else { return Ok(default) };
        match values.iter().find(|(value, _)| *value == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let names: Vec<_> = values.iter().map(|(value, _)| *value).collect();
                fault(format!("{name}={}: it is one of {}", shown(&text), names.join(", ")))
            }
        }
    }

    /// The text of the file that an option names, without the end of its line.
    fn secret(&mut self, name: &'static str) -> Result<Option<Secret>, LineError> {
        let Some(file) = self.take(name) else { return Ok(None) };
        let named = |e| LineError(format!("{name}={e}"));
        let text = read(&self.folder.join(file), SECRET_BYTES_MAX).map_err(named)?;
        let text = text.trim_end_matches(['\r', '\n']);
        match text.is_empty() || text.contains(char::is_control) {
            true => fault(format!("{name}: the file has to hold one line of text")),
            false => Ok(Some(Secret(text.to_owned()))),
        }
    }

    /// The keys in the file that an option names; none without that option.
    fn signing_keys(&mut self, name: &'static str) -> Result<Vec<SigningKey>, LineError> {
        let Some(file) = self.take(name) else { return Ok(Vec::new()) };
        let path = self.folder.join(file);
        let text = read(&path, SECRET_BYTES_MAX).map_err(|e| LineError(format!("{name}={e}")))?;
        let named = |why| LineError(format!("{name}={}: {why}", path.display()));
        SigningKey::parse_all(&text).map_err(named)
    }

    /// The request in the file that an option names.
    fn template(&mut self, name: &'static str) -> Result<Option<RequestTemplate>, LineError> {
        let Some(file) = self.take(name) else { return Ok(None) };
        let path = self.folder.join(file);
        let text = read(&path, REQUEST_BYTES_MAX).map_err(|e| LineError(format!("{name}={e}")))?;
        let template = RequestTemplate::parse(&text);
        let named = |why| LineError(format!("{name}={}: {why}", path.display()));
        template.map(Some).map_err(named)
    }

    /// The certificates that are believed.
    fn trust(&mut self) -> Result<Trust, LineError> {
        let Some(file) = self.take("ca") else { return Ok(Trust::System) };
        let named = |e| LineError(format!("ca={e}"));
        let trust = Trust::Pem(read(&self.folder.join(file), CERTIFICATES_MAX).map_err(named)?);
        match trust.config() {
            Ok(_) => Ok(trust),
            Err(e) => fault(format!("ca: {e}")),
        }
    }
}

/// Reads a text file of at most so many bytes. Errors begin with its path.
fn read(path: &Path, max: u64) -> Result<String, LineError> {
    let shown = path.display();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(max + 1).read_to_string(&mut text));
    match read {
        Ok(n) if n as u64 > max => fault(format!("{shown}: it has more than {max} bytes")),
        Ok(_) => Ok(text),
        Err(e) => fault(format!("{shown}: {e}")),
    }
}

/// The target of an address, by the options that its kind has.
fn target(url: Url, options: &mut Options<'_>) -> Result<Target, LineError> {
    let severities = AlertSeverity::ALL.map(|s| (s.name(), s));
    let yes_no = [("yes", true), ("no", false)];
    let mut filter = AlertFilter {
        least: options.choice("min", &severities, AlertSeverity::Info)?,
        ongoing: options.choice("ongoing", &yes_no, false)?,
        open: true,
    };
    let (kind, is_secured) = match url.scheme {
        "syslog" | "syslog+tcp" | "syslog+tls" => {
            url.bare()?;
            (Kind::Syslog(syslog(&url, options)?), url.scheme == "syslog+tls")
        }
        "http" | "https" => {
            if url.user.is_some() {
                return fault("a webhook takes no user; `token=FILE` names a file with a token");
            }
            let form = webhook(&url, options)?;
            if form.requests.is_some() {
                // There are requests for starts and ends alone.
                (filter.ongoing, filter.open) = (false, false);
            }
            (Kind::Webhook(form), url.scheme == "https")
        }
        "smtp" | "smtps" => {
            let form = mail(&url, options)?;
            let is_secured = form.security != MailSecurity::Plain;
            (Kind::Mail(form), is_secured)
        }
        _ => {
            if url.user.is_some() || url.path.contains('?') {
                return fault(format!("{}:// takes no user and no `?`", url.scheme));
            }
            (Kind::Alertmanager(alertmanager(&url, options)?), url.scheme.ends_with("https"))
        }
    };
    let trust = if is_secured { Some(options.trust()?) } else { None };
    let name = format!("{}://{}", url.scheme, url.peer);
    Ok(Target { name, peer: url.peer, trust, filter, kind })
}

fn syslog(url: &Url, options: &mut Options<'_>) -> Result<SyslogForm, LineError> {
    let numbers: Vec<(&str, u8)> = FACILITIES.into_iter().zip(0..).collect();
    let transport = match url.scheme {
        "syslog" => Transport::Datagrams,
        _ => Transport::Stream,
    };
    Ok(SyslogForm { transport, facility: options.choice("facility", &numbers, 16)? })
}

fn webhook(url: &Url, options: &mut Options<'_>) -> Result<WebhookForm, LineError> {
    let body = options.choice("format", &BodyForm::ALL, BodyForm::Json)?;
    let requests = match (options.template("start")?, options.template("end")?) {
        (Some(start), end) => Some(RequestForms { start, end }),
        (None, None) => None,
        (None, Some(_)) => return fault("there is `end=FILE`, but no `start=FILE`"),
    };
    if requests.is_some() && body != BodyForm::Json {
        return fault("start=FILE says what is sent, so there is no format=");
    }
    Ok(WebhookForm {
        path: Secret(url.path.clone()),
        body,
        requests,
        keys: options.signing_keys("secret")?,
        token: options.secret("token")?,
    })
}

fn alertmanager(url: &Url, options: &mut Options<'_>) -> Result<AlertmanagerForm, LineError> {
    let repeat_s = match options.take("repeat") {
        None => REPEAT_SECONDS,
        Some(text) => match text.parse() {
            Ok(seconds @ 1..=86_400) => seconds,
            _ => return fault(format!("repeat={}: it is a number of seconds", shown(&text))),
        },
    };
    let path = if url.path.ends_with('/') { url.path.clone() } else { format!("{}/", url.path) };
    Ok(AlertmanagerForm { path, repeat_s, token: options.secret("token")? })
}

fn mail(url: &Url, options: &mut Options<'_>) -> Result<MailForm, LineError> {
    if url.path != "/" {
        return fault(format!("{}:// takes no path, such as {}", url.scheme, url.path));
    }
    let security = match url.scheme {
        "smtps" => MailSecurity::Tls,
        _ => {
            let choices = [("starttls", MailSecurity::StartTls), ("no", MailSecurity::Plain)];
            options.choice("tls", &choices, MailSecurity::StartTls)?
        }
    };
    let password = options.secret("password")?;
    let login = match (url.user.clone(), password) {
        (Some(user), Some(password)) => Some(Login { user, password }),
        (None, None) => None,
        (Some(_), None) => return fault("there is a user, but no `password=FILE`"),
        (None, Some(_)) => {
            return fault(format!("there is a password, but no user: {}://USER@HOST", url.scheme));
        }
    };
    if login.is_some() && security == MailSecurity::Plain {
        return fault("a password is not sent without TLS; leave out tls=no, or the user");
    }
    let Some(from) = options.take("from") else { return fault("`from=ADDRESS` is missing") };
    let Some(to) = options.take("to") else { return fault("`to=ADDRESS,…` is missing") };
    let to: Vec<String> = to.split(',').map(|one| one.trim().to_owned()).collect();
    for address in to.iter().chain([&from]) {
        check_address(address)?;
    }
    Ok(MailForm { security, login, from, to })
}

/// Refuses what is no plain address of mail: a name, a comment or a quote could become a header.
fn check_address(address: &str) -> Result<(), LineError> {
    let is_plain = |b: u8| b.is_ascii_graphic() && !b"<>()[]\\,;:\"".contains(&b);
    let sides = address.rsplit_once('@').filter(|(user, host)| {
        !user.is_empty()
            && !host.is_empty()
            && address.len() <= 254
            && address.bytes().all(is_plain)
    });
    match sides {
        Some(_) => Ok(()),
        None => fault(format!("`{}` is not a mail address", shown(address))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn parse(line: &str) -> Result<Target, LineError> {
        Target::parse(line, Path::new("/nowhere"))
    }

    #[track_caller]
    fn refused(line: &str, why: &str) {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(why), "{line}: {error}");
    }

    #[test]
    fn addresses_have_ports_of_their_kind() {
        for (line, name) in [
            ("syslog://log", "syslog://log:514"),
            ("syslog+tls://[::1]", "syslog+tls://[::1]:6514"),
            ("https://hooks.example/T0/secret?x=y", "https://hooks.example:443"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("alertmanager+http://am/prefix", "alertmanager+http://am:9093"),
            ("smtp://mail tls=no from=a@b.c to=d@e.f", "smtp://mail:587"),
        ] {
            assert_eq!(parse(line).expect(line).name(), name);
        }
    }

    #[test]
    fn options_are_those_of_the_kind() {
        let target = parse("syslog://log facility=local3 min=high ongoing=yes").expect("a target");
        let form = SyslogForm { transport: Transport::Datagrams, facility: 19 };
        assert_eq!(target.kind, Kind::Syslog(form));
        assert_eq!(
            target.filter,
            AlertFilter { least: AlertSeverity::High, ongoing: true, open: true }
        );
        refused("syslog://log format=slack", "syslog has no option `format`; it has min, ongoing,");
        refused("https://x format=irc", "it is one of json, slack, mattermost, teams, discord");
        refused("syslog://log facility=9", "it is one of kern");
        refused("syslog://log min=high min=low", "min is given twice");
        refused("syslog://log high", "`high` is no option");
        refused("alertmanager+http://a repeat=0", "a number of seconds");
    }

    #[test]
    fn wrong_addresses_are_refused() {
        refused("", "no address");
        refused("10.0.0.1:514", "one that begins with syslog://");
        refused("ftp://x", "`ftp://` is unknown");
        refused("syslog://", "a host is missing");
        refused("syslog://h:0", "is no port");
        refused("syslog://h:65536", "is no port");
        refused("syslog://[::1", "`]` is missing");
        refused("syslog://h/path", "takes no path");
        refused("syslog://u@h", "takes no user");
        refused("http://u@h", "token=FILE");
        refused("\"http://h/a\r\nX: y\"", "printable ASCII");
        refused("http://h/\"x", "quote is not closed");
    }

    #[test]
    fn mails_need_plain_addresses_and_secured_passwords() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("pw"), "geheim\n").expect("writes");
        let parse = |line: &str| Target::parse(line, folder.path());
        let ok = "smtp://a%40b.c@mail from=a@b.c to=d@e.f,g@h.i password=pw";
        let Kind::Mail(form) = parse(ok).expect("a target").kind else { panic!("no mail") };
        assert_eq!((form.to.len(), form.security), (2, MailSecurity::StartTls));
        let login = form.login.expect("a login");
        assert_eq!((login.user.as_str(), login.password.0.as_str()), ("a@b.c", "geheim"));
        assert!(!format!("{:?}", login.password).contains("geheim"));
        for (line, why) in [
            ("smtp://u@m from=a@b to=c@d password=pw tls=no", "not sent without TLS"),
            ("smtp://u@m from=a@b to=c@d", "no `password=FILE`"),
            ("smtp://m from=a@b to=c@d password=pw", "no user"),
            ("smtp://m to=c@d", "`from=ADDRESS` is missing"),
            ("smtp://m from=a@b", "`to=ADDRESS,…` is missing"),
            ("smtp://m from=a@b to=c", "is not a mail address"),
            ("smtp://m from=\"a@b\nBcc: x\" to=c@d", "is not a mail address"),
            ("smtp://m from=a@b to=c@d password=none", "password=/"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn files_name_targets_line_by_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("alerts.conf");
        fs::write(folder.path().join("key"), "sixteen bytes it").expect("writes");
        fs::write(&file, "# ours\n\nsyslog://a\nhttps://b secret=key\n").expect("writes");
        let all = Target::read_file(&file).expect("targets");
        assert_eq!(
            all.iter().map(Target::name).collect::<Vec<_>>(),
            ["syslog://a:514", "https://b:443"]
        );
        fs::write(&file, "syslog://a\nsyslog://b x=1\n").expect("writes");
        let error = Target::read_file(&file).expect_err("refused").to_string();
        assert!(error.starts_with("line 2: syslog has no option `x`"), "{error}");
        let error = Target::read_file(&folder.path().join("none")).expect_err("refused");
        assert!(error.to_string().contains("none: No such file"), "{error}");
        fs::write(&file, "syslog://a\n".repeat(TARGETS_MAX + 1)).expect("writes");
        assert!(Target::read_file(&file).is_err());
    }

    #[test]
    fn targets_of_one_address_have_numbers() {
        let all = ["https://a/1", "https://a/2", "syslog://a", "https://a/3"];
        let mut all: Vec<_> = all.into_iter().map(|line| parse(line).expect("a target")).collect();
        Target::number(&mut all);
        assert_eq!(
            all.iter().map(Target::name).collect::<Vec<_>>(),
            ["https://a:443", "https://a:443 (2)", "syslog://a:514", "https://a:443 (3)"]
        );
    }
}
