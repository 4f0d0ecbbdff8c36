//! Signatures of webhooks, as Standard Webhooks 1.0 has them (<https://www.standardwebhooks.com>).
//! A signature covers the id, the time and the body: a stranger can't change a request, and a
//! request that a stranger sends again is old.

use crate::limits::{SIGNING_KEY_BYTES, SIGNING_KEYS_MAX, SIGNING_TEXT_BYTES_MIN};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;

/// A key of signatures, which is never shown.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq)]
pub(crate) struct SigningKey(Vec<u8>);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

impl SigningKey {
    /// The keys of a file, which has a secret on each line. Errors do not show secrets.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<SigningKey>, String> {
        let mut all = Vec::new();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let key = SigningKey::parse(line.trim_end_matches('\r'));
            all.push(key.map_err(|why| format!("line {}: {why}", n + 1))?);
        }
        match all.len() {
            0 => Err("the file holds no secret".to_owned()),
            1..=SIGNING_KEYS_MAX => Ok(all),
            n => Err(format!("it has {n} secrets; there may be {SIGNING_KEYS_MAX}")),
        }
    }

    /// Reads a secret: `whsec_` and base64, or a text whose bytes are the key.
    fn parse(secret: &str) -> Result<SigningKey, String> {
        const MAKE: &str = "`echo whsec_$(openssl rand -base64 32)` makes a secret";
        if let Some(digits) = secret.trim().strip_prefix("whsec_") {
            let key = BASE64.decode(digits);
            let key = key.map_err(|_| format!("no base64 follows after whsec_; {MAKE}"))?;
            let (least, most) = (SIGNING_KEY_BYTES.start(), SIGNING_KEY_BYTES.end());
            return match SIGNING_KEY_BYTES.contains(&key.len()) {
                true => Ok(SigningKey(key)),
                false => Err(format!(
                    "the key after whsec_ has {} bytes, and needs {least} to {most}; {MAKE}",
                    key.len()
                )),
            };
        }
        if secret.contains(char::is_control) {
            return Err("the secret has control characters".to_owned());
        }
        match secret.len() {
            n if n < SIGNING_TEXT_BYTES_MIN => Err(format!(
                "the secret has {n} bytes, and needs {SIGNING_TEXT_BYTES_MIN} at least; {MAKE}"
            )),
            _ => Ok(SigningKey(secret.as_bytes().to_vec())),
        }
    }

    /// The signature of a request.
    fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("keys of any length");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }
}

/// The headers of an attempt to deliver a body. `id` has no `.`, which would be read as its end.
pub(crate) fn headers(
    keys: &[SigningKey],
    id: &str,
    seconds: u64,
    body: &[u8],
) -> Vec<(&'static str, String)> {
    let mut all = vec![("webhook-id", id.to_owned()), ("webhook-timestamp", seconds.to_string())];
    if !keys.is_empty() {
        let signatures: Vec<_> = keys.iter().map(|key| key.sign(id, seconds, body)).collect();
        all.push(("webhook-signature", signatures.join(" ")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn signature(secrets: &str) -> String {
        let keys = SigningKey::parse_all(secrets).expect("keys");
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", b"{\"test\": 2432232314}");
        headers(&keys, id, 1_614_265_330, body).pop().expect("a signature").1
    }

    /// The vector of the libraries of Standard Webhooks; the other values come from Python's `hmac`.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let of_vector = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let of_text = "v1,9q/FQ7CZ3vVX0OYsK0WsCHVCcBCuB0AOJHB1gMvwnOI=";
        assert_eq!(signature(SECRET), of_vector);
        assert_eq!(signature("sixteen bytes it\r\n"), of_text);
        let both = signature(&format!("\nsixteen bytes it\n \r\n {SECRET} \n"));
        assert_eq!(both, format!("{of_text} {of_vector}"));
    }

    #[test]
    fn requests_without_a_key_have_an_id_and_a_time() {
        let all = headers(&[], "run-1", 7, b"{}");
        assert_eq!(all, [("webhook-id", "run-1".into()), ("webhook-timestamp", "7".into())]);
    }

    #[test]
    fn wrong_secrets_are_refused_and_not_shown() {
        let of_bytes = |n: usize| format!("whsec_{}", BASE64.encode(vec![0xa5; n]));
        for (text, why) in [
            ("", "the file holds no secret"),
            ("\n \r\n", "the file holds no secret"),
            ("geheim", "line 1: the secret has 6 bytes, and needs 16 at least; `echo whsec_$("),
            (&format!("{SECRET}\n\ngeheim\n"), "line 3: the secret has 6 bytes"),
            ("a text with a\ttab", "line 1: the secret has control characters"),
            ("whsec_", "the key after whsec_ has 0 bytes, and needs 24 to 64"),
            ("whsec_geheim!", "no base64 follows after whsec_"),
            (&of_bytes(23), "has 23 bytes"),
            (&of_bytes(65), "has 65 bytes"),
            (&format!("{SECRET}\n").repeat(9), "it has 9 secrets; there may be 8"),
        ] {
            let error = SigningKey::parse_all(text).expect_err(text);
            assert!(error.contains(why) && !error.contains("geheim"), "{text}: {error}");
        }
        for n in [24, 64] {
            assert_eq!(SigningKey::parse_all(&of_bytes(n)), Ok(vec![SigningKey(vec![0xa5; n])]));
        }
        let key = SigningKey::parse(&of_bytes(24)).expect("a key");
        assert_eq!(format!("{key:?}"), "SigningKey(…)");
    }
}
