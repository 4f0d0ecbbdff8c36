//! Alerts delivered to servers of the distribution, which `check.sh` unpacks.

use crate::common::{skip, workplace};
use crate::over_wires::until;
use crate::receivers::{Hook, Manner, Server, Streamed, certificate, free_port, get, unpacked};
use crate::{SECRETS, flood, said};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

/// Runs rsyslog, which writes what it gets by datagrams, over TCP and over TLS into `out.log`.
fn rsyslog(unpacked: &Path, folder: &Path, [udp, tcp, tls]: [u16; 3]) -> Server {
    let at = folder.display();
    let config = format!(
        "global(workDirectory=\"{at}\" DefaultNetstreamDriver=\"gtls\" \
         DefaultNetstreamDriverCAFile=\"{at}/cert.pem\" \
         DefaultNetstreamDriverCertFile=\"{at}/cert.pem\" \
         DefaultNetstreamDriverKeyFile=\"{at}/key.pem\")\n\
         module(load=\"imudp\")\nmodule(load=\"imptcp\")\n\
         module(load=\"imtcp\" StreamDriver.Name=\"gtls\" StreamDriver.Mode=\"1\" \
         StreamDriver.AuthMode=\"anon\")\n\
         input(type=\"imudp\" address=\"127.0.0.1\" port=\"{udp}\")\n\
         input(type=\"imptcp\" address=\"127.0.0.1\" port=\"{tcp}\")\n\
         input(type=\"imtcp\" address=\"127.0.0.1\" port=\"{tls}\")\n\
         template(name=\"j\" type=\"list\") {{ property(name=\"jsonmesg\") \
         constant(value=\"\\n\") }}\n\
         action(type=\"omfile\" file=\"{at}/out.log\" template=\"j\")\n"
    );
    fs::write(folder.join("rsyslog.conf"), config).expect("writes");
    let _ = fs::remove_file(folder.join("pid"));
    let libraries = unpacked.join("usr/lib/x86_64-linux-gnu");
    let server = Server::start(
        Command::new(unpacked.join("usr/sbin/rsyslogd"))
            .arg("-n")
            .arg("-f")
            .arg(folder.join("rsyslog.conf"))
            .arg("-i")
            .arg(folder.join("pid"))
            .arg("-M")
            .arg(libraries.join("rsyslog"))
            .env("LD_LIBRARY_PATH", &libraries),
    );
    for port in [tcp, tls] {
        until("rsyslog listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }
    server
}

/// The messages that rsyslog has written.
fn messages(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("out.log")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn rsyslog_reads_messages_by_datagrams_tcp_and_tls() {
    let test = "rsyslog_reads_messages_by_datagrams_tcp_and_tls";
    let Some(unpacked) = unpacked("usr/sbin/rsyslogd") else {
        return skip(test, "there is no rsyslog (check.sh gets it from Debian)");
    };
    let folder = workplace();
    if !certificate(folder.path()) {
        return skip(test, "there is no openssl");
    }
    let ports @ [udp, tcp, tls] = [free_port(), free_port(), free_port()];
    let _server = rsyslog(&unpacked, folder.path(), ports);
    let to = [
        format!("syslog://127.0.0.1:{udp} facility=local3"),
        format!("syslog+tcp://127.0.0.1:{tcp} facility=auth"),
        format!("syslog+tls://localhost:{tls} ca=cert.pem"),
    ];
    let args = to.iter().flat_map(|to| ["--alert-to", to]).chain(["--fail-on-loss"]);
    let output = flood(folder.path(), &args.collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    until("six messages", || messages(folder.path()).len() >= 6);
    let all = messages(folder.path());
    for (input, facility) in [("imudp", "19"), ("imptcp", "4"), ("imtcp", "16")] {
        let of: Vec<_> = all.iter().filter(|m| m["inputname"] == input).collect();
        assert_eq!(of.len(), 2, "{input}");
        let first = of[0];
        assert_eq!(first["msg"], "716 SYNs to 198.51.100.2");
        assert_eq!(first["app-name"], "weir");
        assert_eq!(first["msgid"], "e");
        assert_eq!(first["timereported"], "2026-11-21T05:51:15.567029Z");
        assert_eq!(
            (&first["syslogfacility"], &first["syslogseverity"]),
            (&facility.into(), &"3".into())
        );
        let data = first["structured-data"].as_str().expect("data");
        let expected = "[weir@32473 rule=\"e\" state=\"start\" severity=\"high\" \
                        key=\"server=198.51.100.2\"";
        assert!(data.starts_with(expected), "{data}");
    }
    // A certificate that nobody vouches for.
    let to = format!("syslog+tls://localhost:{tls}");
    let output = flood(folder.path(), &["--alert-to", &to, "--fail-on-loss"]);
    let text = said(&output);
    // Where the system has no certificates at all, nothing is started.
    assert!(output.status.code() != Some(0), "{text}");
    assert!(text.contains("certificate"), "{text}");
}

/// Alerts that come while the receiver is away wait, and arrive once it is back.
#[test]
fn alerts_wait_for_rsyslog_to_come_back() {
    let test = "alerts_wait_for_rsyslog_to_come_back";
    let Some(unpacked) = unpacked("usr/sbin/rsyslogd") else {
        return skip(test, "there is no rsyslog (check.sh gets it from Debian)");
    };
    let folder = workplace();
    if !certificate(folder.path()) {
        return skip(test, "there is no openssl");
    }
    let ports @ [_, tcp, _] = [free_port(), free_port(), free_port()];
    let server = rsyslog(&unpacked, folder.path(), ports);
    let at = folder.path().to_owned();
    let to = format!("syslog+tcp://127.0.0.1:{tcp}");
    let mut run = Streamed::in_folder(folder, &["--alert-to", &to, "--fail-on-loss"]);
    run.send(0, 1..2);
    run.send(3, 2..3);
    until("a message", || !messages(&at).is_empty());
    drop(server);
    run.send(4, 100..110);
    run.send(7, 3..4);
    run.run.until("alerts to syslog+tcp://");
    let _server = rsyslog(&unpacked, &at, ports);
    run.run.until("alerts to syslog+tcp://");
    assert!(run.run.has_said("delivered again"), "{:?}", run.run.said);
    // The run would take its folder along.
    let _folder = std::mem::replace(&mut run.folder, workplace());
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
    let hosts = |all: &[Value]| {
        let has = |n: u16| {
            let message = format!("1 packets of 10.0.0.{n}");
            all.iter().any(|m| m["msg"] == *message)
        };
        (100..110).filter(|n| has(*n)).count()
    };
    until("all hosts", || hosts(&messages(&at)) == 10);
}

/// A server of mail that writes each mail, and how it came, as a line of JSON.
const MAIL_SERVER: &str = r#"
import json, ssl, sys, time
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, SMTP
port, out = int(sys.argv[1]), open(sys.argv[2], "a", buffering=1)
tls = None
if len(sys.argv) > 3:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain("cert.pem", "key.pem")
class Handler:
    async def handle_DATA(self, server, session, envelope):
        out.write(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos,
            "tls": session.ssl is not None, "user": session.auth_data,
            "text": envelope.content.decode()}) + "\n")
        return "250 taken"
def login(server, session, envelope, mechanism, data):
    good = data.login == b"weir@example.org" and data.password == b"geheim"
    return AuthResult(success=good, handled=False, auth_data=data.login.decode())
class Server(Controller):
    def factory(self):
        if tls is None:
            return SMTP(self.handler, hostname="localhost")
        return SMTP(self.handler, hostname="localhost", tls_context=tls, require_starttls=True,
            auth_required=True, authenticator=login)
Server(Handler(), hostname="127.0.0.1", port=port).start()
time.sleep(300)
"#;

fn mail_server(unpacked: &Path, folder: &Path, port: u16, tls: &[&str]) -> Server {
    fs::write(folder.join("server.py"), MAIL_SERVER).expect("writes");
    let server = Server::start(
        Command::new("/usr/bin/python3")
            .args(["server.py", &port.to_string(), "mails"])
            .args(tls)
            .current_dir(folder)
            .env("PYTHONPATH", unpacked.join("usr/lib/python3/dist-packages")),
    );
    until("the server of mail listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    server
}

#[test]
fn a_server_of_mail_takes_mails() {
    let test = "a_server_of_mail_takes_mails";
    let Some(unpacked) = unpacked("usr/lib/python3/dist-packages/aiosmtpd") else {
        return skip(test, "there is no aiosmtpd (check.sh gets it from Debian)");
    };
    let folder = workplace();
    if !certificate(folder.path()) {
        return skip(test, "there is no openssl");
    }
    fs::write(folder.path().join("pw"), "geheim\n").expect("writes");
    fs::write(folder.path().join("wrong"), "falsch\n").expect("writes");
    let (secured, plain) = (free_port(), free_port());
    let _secured = mail_server(&unpacked, folder.path(), secured, &["tls"]);
    let _plain = mail_server(&unpacked, folder.path(), plain, &[]);
    let user = "smtp://weir%40example.org@localhost";
    let to = "from=weir@example.org to=a@example.org,b@example.org";
    let good = [
        format!("{user}:{secured} {to} password=pw ca=cert.pem"),
        format!("smtp://127.0.0.1:{plain} {to} tls=no"),
    ];
    let args = good.iter().flat_map(|to| ["--alert-to", to]).chain(["--fail-on-loss"]);
    let output = flood(folder.path(), &args.collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let mails = fs::read_to_string(folder.path().join("mails")).expect("mails");
    let mut mails: Vec<Value> =
        mails.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    mails.sort_by_key(|mail| mail["tls"] == true);
    // Both alerts came within a moment.
    assert_eq!(mails.len(), 2, "{mails:?}");
    for mail in &mails {
        assert_eq!(mail["to"], serde_json::json!(["a@example.org", "b@example.org"]));
        let text = mail["text"].as_str().expect("text");
        assert!(text.contains("Subject: [weir] 2 alerts, 1 new, at most high\r\n"), "{text}");
    }
    assert_eq!((&mails[0]["tls"], &mails[1]["tls"]), (&false.into(), &true.into()));
    assert_eq!(mails[1]["user"], "weir@example.org");
    for (to, why) in [
        (format!("{user}:{secured} {to} password=wrong ca=cert.pem"), "535 to AUTH"),
        (format!("smtp://127.0.0.1:{plain} {to} ca=cert.pem"), "it offers no TLS"),
    ] {
        let output = flood(folder.path(), &["--alert-to", &to, "--fail-on-loss"]);
        let text = said(&output);
        assert!(output.status.code() == Some(1) && text.contains(why), "{why}: {text}");
        assert!(!text.contains("geheim") && !text.contains("falsch"), "{text}");
    }
}

/// The alerts that Alertmanager has.
fn alerts(port: u16) -> Vec<Value> {
    let answer = get(&format!("127.0.0.1:{port}"), "/api/v2/alerts");
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or("[]");
    serde_json::from_str(body).unwrap_or_default()
}

/// An alert fires as long as it goes on, longer than Alertmanager keeps what is not repeated, and is
/// resolved when it ends.
#[test]
fn alertmanager_is_told_of_alerts_until_they_end() {
    let test = "alertmanager_is_told_of_alerts_until_they_end";
    let template = "/usr/share/prometheus/alertmanager/default.tmpl";
    let program = "usr/bin/prometheus-alertmanager";
    let (Some(unpacked), true) = (unpacked(program), fs::exists(template).unwrap_or(false)) else {
        return skip(test, "there is no Alertmanager (check.sh gets it from Debian)");
    };
    let (folder, port, hook) = (workplace(), free_port(), Hook::start(Manner::Takes));
    let config = format!(
        "global: {{resolve_timeout: 4s}}\n\
         route: {{receiver: hook, group_by: [host], group_wait: 0s, group_interval: 1s}}\n\
         receivers: [{{name: hook, webhook_configs: [{{url: \"http://{}/\"}}]}}]\n",
        hook.address
    );
    fs::write(folder.path().join("am.yml"), config).expect("writes");
    let _server = Server::start(
        Command::new(unpacked.join(program))
            .args(["--config.file=am.yml", "--storage.path=am", "--cluster.listen-address="])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .current_dir(folder.path()),
    );
    until("Alertmanager listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let to = format!("alertmanager+http://127.0.0.1:{port} repeat=1");
    let mut run = Streamed::in_folder(folder, &["--alert-to", &to, "--fail-on-loss"]);
    run.send(0, 1..2);
    run.send(3, 2..3);
    let fired = hook.next().json();
    assert_eq!(fired["status"], "firing", "{fired}");
    let alert = &fired["alerts"][0];
    assert_eq!(alert["labels"]["host"], "10.0.0.1");
    assert_eq!(alert["labels"]["alertname"], "e");
    assert_eq!(alert["labels"]["severity"], "high");
    assert_eq!(alert["annotations"]["summary"], "1 packets of 10.0.0.1");
    // Eight repetitions of a second each are longer than it keeps what is not repeated.
    let mut updates = BTreeSet::new();
    until("it goes on", || {
        let all = alerts(port);
        let own = all.iter().find(|alert| alert["labels"]["host"] == "10.0.0.1");
        updates.insert(own.expect("it goes on")["updatedAt"].to_string());
        updates.len() > 8
    });
    run.send(10, 2..3);
    run.send(12, 2..3);
    let resolved = || {
        let all = hook.all();
        all.iter().any(|r| {
            let told = r.json();
            told["status"] == "resolved" && told["alerts"][0]["labels"]["host"] == "10.0.0.1"
        })
    };
    until("it is resolved", resolved);
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
}

/// A webhook that verifies requests as Standard Webhooks 1.0 says; it answers with 204 or 401.
const VERIFIES: &str = r#"
import base64, hashlib, hmac, http.server, sys, time
KEY = base64.b64decode(sys.argv[2])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        sent, time_sent = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        signed = f"{sent}.{time_sent}.".encode() + body
        expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        signatures = (s.split(",", 1) for s in self.headers["webhook-signature"].split(" "))
        good = any(v == "v1" and hmac.compare_digest(s, expected) for v, s in signatures)
        good = good and abs(time.time() - int(time_sent)) < 300
        self.send_response(204 if good else 401)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// While secrets change, receivers with the new one and those with the old one verify alerts, and
/// others refuse them.
#[test]
fn receivers_verify_signatures_by_either_secret() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("receivers_verify_signatures_by_either_secret", "there is no python3");
    }
    let folder = workplace();
    fs::write(folder.path().join("hook.py"), VERIFIES).expect("writes");
    fs::write(folder.path().join("secrets"), SECRETS).expect("writes");
    let new = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let old = "ZWluIEdlaGVpbW5pcyBhbHMgVGV4dA==";
    for (key, status) in [(new, 0), (old, 0), ("YW5vdGhlciBzZWNyZXQ=", 1)] {
        let port = free_port();
        let mut python = Command::new("python3");
        python.args(["hook.py", &port.to_string(), key]).current_dir(folder.path());
        let _server = Server::start(&mut python);
        until("the hook listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let to = format!("http://127.0.0.1:{port} secret=secrets");
        let output = flood(folder.path(), &["--alert-to", &to, "--fail-on-loss"]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(status), "{key}: {text}");
        assert_eq!(text.contains("(it answers with the status 401)"), status == 1, "{text}");
    }
}

/// A receiver that is killed in the middle of everything, and comes back.
#[test]
fn a_receiver_that_is_killed_gets_what_it_missed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let server = |folder: &Path| {
        let script = "import http.server as h\n\
            class H(h.BaseHTTPRequestHandler):\n \
            def do_POST(self):\n  \
            b = self.rfile.read(int(self.headers['Content-Length']))\n  \
            open('got', 'ab').write(b + b'\\n')\n  \
            self.send_response(200); self.end_headers()\n\
            import sys\n\
            h.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\n";
        fs::write(folder.join("hook.py"), script).expect("writes");
        let server = Server::start(
            Command::new("python3").args(["hook.py", &port.to_string()]).current_dir(folder),
        );
        until("the hook listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        server
    };
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("a_receiver_that_is_killed_gets_what_it_missed", "there is no python3");
    }
    let folder = workplace();
    let at = folder.path().to_owned();
    let got = || fs::read_to_string(at.join("got")).unwrap_or_default();
    let first = server(&at);
    let to = format!("http://127.0.0.1:{port}");
    let mut run = Streamed::in_folder(folder, &["--alert-to", &to, "--fail-on-loss"]);
    run.send(0, 0..50);
    run.send(3, 0..1);
    until("some alerts", || got().lines().count() > 3);
    drop(first);
    run.send(10, 100..150);
    run.send(12, 0..1);
    run.run.until("alerts to http://");
    let _second = server(&at);
    // The run would take its folder along.
    let _folder = std::mem::replace(&mut run.folder, workplace());
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
    let text = got();
    for host in (0..50).chain(100..150) {
        let message = format!("\"alert.message\":\"1 packets of 10.0.0.{host}\"");
        assert!(text.contains(&message), "{host} is missing");
    }
}
