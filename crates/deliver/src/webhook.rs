//! Alerts posted to a URL: as JSON, signed if there is a key, or as messages of a chat; or requests
//! that the user has written.

use crate::alert::{Alert, State};
use crate::chat;
use crate::connection::Route;
use crate::failure::Failure;
use crate::http::{self, HttpRequest};
use crate::receiver::Receiver;
use crate::target::{RequestForms, Secret, WebhookForm};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

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

/// What is asked for an alert.
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
            State::Start => Some(start),
            State::End => end.as_ref(),
            State::Ongoing | State::Open => None,
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
            let mut headers = vec![("Idempotency-Key", alert.id.clone())];
            if let Some(key) = &self.form.key {
                headers.push(("X-Weir-Signature", signature(key, body.as_bytes())));
            }
            headers.extend(bearer(self.form.token.as_ref()));
            let (path, body) = (path.as_str(), body.as_bytes());
            let request = HttpRequest { method, path, headers: &headers, body };
            http::send(&self.route, &request, by)?;
        }
        Ok(())
    }
}

/// The header with a token.
pub(crate) fn bearer(token: Option<&Secret>) -> Option<(&'static str, String)> {
    token.map(|token| ("Authorization", format!("Bearer {}", token.0)))
}

/// The signature of a body: HMAC-SHA256, in hexadecimal digits.
fn signature(key: &Secret, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.0.as_bytes()).expect("keys of any length");
    mac.update(body);
    let mut out = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_rfc_4231() {
        // Test case 2.
        let key = Secret("Jefe".to_owned());
        assert_eq!(
            signature(&key, b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
