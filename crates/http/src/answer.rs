//! Answers of the API to requests that it does not serve, and the bodies of those that it does.

use crate::request::HttpRequest;
use crate::response::{Response, Status};
use serde::de::DeserializeOwned;
use serde_json::json;

/// The answer to a request that cannot be understood.
pub(crate) fn bad(reason: &str) -> Box<Response> {
    Box::new(error(Status::BadRequest, reason, ""))
}

/// An answer that says why nothing was done. `text`: more for people, such as diagnostics.
pub(crate) fn error(status: Status, reason: &str, text: &str) -> Response {
    let mut body = json!({ "error": reason });
    if !text.is_empty() {
        body["text"] = text.into();
    }
    Response::json(status, &body)
}

/// The body of a request, which is JSON.
///
/// # Errors
/// If it is not such a value.
pub(crate) fn body<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Box<Response>> {
    serde_json::from_slice(&request.body).map_err(|e| bad(&format!("the body: {e}")))
}
