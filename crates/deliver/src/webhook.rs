//! Alerts posted to a URL: as JSON, signed if there is a key, or as messages of a chat; or requests
//! that the user has written.

use crate::alert::Alert;
use crate::chat;
use crate::clock;
use crate::connection::Route;
use crate::failure::Failure;
use crate::http::{self, HttpRequest};
use crate::receiver::Receiver;
use crate::signature;
use crate::target::{RequestForms, Secret, WebhookForm};
use std::sync::Arc;
use std::time::Instant;
use weir_base::alert::AlertState;

/// Posts alerts, one for each request.
pub(crate) struct Webhook {
    route: Route,
    form: WebhookForm,
}

impl Webhook {
    pub(crate) fn new(route: Route, form: WebhookForm) -> Webhook {
        Webhook { route, form }
    }
}

/// The request for an alert.
struct Asked<'a> {
    method: &'a str,
    path: String,
    body: String,
}

impl Webhook {
    /// `None` where the user asks nothing for an alert in this state.
    fn asked(&self, alert: &Alert) -> Result<Option<Asked<'_>>, Failure> {
        let Some(RequestForms { start, end }) = &self.form.requests else {
            let (path, body) = (self.form.path.0.clone(), chat::body(self.form.body, alert));
            return Ok(Some(Asked { method: "POST", path, body }));
        };
        let template = match alert.state {
            AlertState::Start => Some(start),
            AlertState::End => end.as_ref(),
            AlertState::Ongoing | AlertState::Open => None,
        };
        let Some(template) = template else { return Ok(None) };
        let row = alert.columns();
        let prefix = self.form.path.0.trim_end_matches('/');
        let path = template.path(&row).map_err(Failure::Refused)?;
        let body = template.body(&row).map_err(Failure::Refused)?;
        let method = template.method.as_str();
        Ok(Some(Asked { method, path: format!("{prefix}{path}"), body }))
    }
}

impl Receiver for Webhook {
    fn send(&mut self, alerts: &[Arc<Alert>], by: Instant) -> Result<(), Failure> {
        for alert in alerts {
            let Some(Asked { method, path, body }) = self.asked(alert)? else { continue };
            let (path, body) = (path.as_str(), body.as_bytes());
            let seconds = clock::since_1970().as_secs();
            let mut headers = signature::headers(&self.form.keys, &alert.id, seconds, body);
            headers.extend(bearer(self.form.token.as_ref()));
            let request = HttpRequest { method, path, headers: &headers, body };
            let sent = http::send(&self.route, &request, by);
            sent.map_err(|failure| match failure {
                // Each request has a path of its own, and others may still be there.
                Failure::Gone(why) if self.form.requests.is_some() => Failure::Refused(why),
                failure => failure,
            })?;
        }
        Ok(())
    }
}

/// The header with a token.
pub(crate) fn bearer(token: Option<&Secret>) -> Option<(&'static str, String)> {
    token.map(|token| ("Authorization", format!("Bearer {}", token.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::alert;
    use crate::limits::SEND_PATIENCE;
    use crate::signature::SigningKey;
    use crate::target::{BodyForm, Peer};
    use crate::template::RequestTemplate;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use sha2::Sha256;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    fn form(secrets: &str, requests: Option<RequestForms>) -> WebhookForm {
        WebhookForm {
            path: Secret("/a".to_owned()),
            body: BodyForm::Json,
            requests,
            keys: SigningKey::parse_all(secrets).expect("keys"),
            token: None,
        }
    }

    /// Sends an alert to a server that answers with a status: the head and the body that arrived,
    /// and the result.
    fn exchange(form: WebhookForm, status: u16) -> (String, String, Result<(), Failure>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            write!(stream, "HTTP/1.1 {status} x\r\n\r\n").expect("writes");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("text");
            text
        });
        let route = Route { peer: Peer { host: "127.0.0.1".to_owned(), port }, tls: None };
        let alerts = [Arc::new(alert("start", "high", "716 SYNs"))];
        let mut webhook = Webhook::new(route, form);
        let result = webhook.send(&alerts, clock::now() + SEND_PATIENCE);
        let text = server.join().expect("no panic");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned(), result)
    }

    #[test]
    fn a_receiver_can_verify_each_signature() {
        let keys: [&[u8]; 2] = [&[0xa5; 32], b"sixteen bytes it"];
        let secrets = format!("whsec_{}\nsixteen bytes it\n", BASE64.encode(keys[0]));
        let before = clock::since_1970().as_secs();
        let (head, body, result) = exchange(form(&secrets, None), 204);
        assert_eq!(result, Ok(()));
        let header = |name: &str| {
            let value = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.unwrap_or_else(|| panic!("{name} is not in {head}"))
        };
        let time = header("webhook-timestamp");
        let seconds: u64 = time.parse().expect("a number");
        assert!(before <= seconds && seconds <= clock::since_1970().as_secs());
        assert_eq!(header("webhook-id"), "run-1");
        let signatures: Vec<&str> = header("webhook-signature").split(' ').collect();
        assert_eq!(signatures.len(), 2);
        for (key, signature) in keys.iter().zip(signatures) {
            let digits = signature.strip_prefix("v1,").expect("of this version");
            let signature = BASE64.decode(digits).expect("base64");
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
            mac.update([header("webhook-id"), time, &body].join(".").as_bytes());
            mac.verify_slice(&signature).expect("it is signed");
        }
    }

    #[test]
    fn a_webhook_that_is_gone_gets_nothing_more_and_a_path_may_be_gone() {
        let why = "it answers with the status 410".to_owned();
        let secret = "sixteen bytes it";
        assert_eq!(exchange(form(secret, None), 410).2, Err(Failure::Gone(why.clone())));
        let start = RequestTemplate::parse("DELETE /tickets/{syns}").expect("a request");
        let requests = Some(RequestForms { start, end: None });
        let (head, body, result) = exchange(form(secret, requests), 410);
        assert_eq!(result, Err(Failure::Refused(why)));
        assert!(head.starts_with("DELETE /a/tickets/716 HTTP/1.1\r\n") && body.is_empty());
    }
}
