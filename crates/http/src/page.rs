//! The files of a page for browsers. They say nothing of the run, so they need no token.

use crate::request::HttpRequest;
use crate::response::{Response, Status};
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The document. All other files are below [`FILES`].
const DOCUMENT: &str = "/";

/// Where the other files are.
const FILES: &str = "/assets/";

/// The placeholder in the document where its nonce goes: CodeMirror adds styles, which the policy
/// allows only to those who know it.
const NONCE: &str = "{{nonce}}";

/// A file of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageFile {
    /// `/` for the document, `/assets/NAME` for the others.
    pub path: String,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The bytes. Where the document has `{{nonce}}`, each answer has another text.
    pub bytes: &'static [u8],
}

/// A page.
pub struct Page {
    /// The files, and a tag of the bytes of each.
    files: Vec<(PageFile, String)>,
    /// The secret that nonces come from.
    secret: RandomState,
    served: AtomicU64,
}

/// Whether a path is one of the page, which everybody may read.
pub(crate) fn is_of_page(path: &str) -> bool {
    path == DOCUMENT || path.starts_with(FILES)
}

impl Page {
    /// A page of these files.
    pub fn new(files: Vec<PageFile>) -> Page {
        let tagged = |file: PageFile| {
            let mut hasher = DefaultHasher::new();
            file.bytes.hash(&mut hasher);
            (file, format!("\"{:016x}\"", hasher.finish()))
        };
        let (secret, served) = (RandomState::new(), AtomicU64::new(0));
        Page { files: files.into_iter().map(tagged).collect(), secret, served }
    }

    /// A file of the page; `None` if there is none at this path.
    pub(crate) fn answer(&self, request: &HttpRequest) -> Option<Response> {
        let head = &request.head;
        let (file, tag) = self.files.iter().find(|(file, _)| file.path == head.path)?;
        if !matches!(head.method.as_str(), "GET" | "HEAD") {
            let status = Status::MethodNotAllowed("GET, HEAD");
            return Some(Response::text(status, "only GET and HEAD"));
        }
        if file.path == DOCUMENT {
            return Some(self.document(file));
        }
        let known = head.all("if-none-match").split(',').any(|one| one.trim() == tag);
        let mut response = match known {
            true => Response::typed(Status::NotModified, file.content_type, Vec::new()),
            false => Response::typed(Status::Ok, file.content_type, file.bytes),
        };
        response.headers = format!("Cache-Control: no-cache\r\nETag: {tag}\r\n");
        Some(response)
    }

    /// The document with a nonce that nobody can guess.
    fn document(&self, file: &PageFile) -> Response {
        let number = self.served.fetch_add(1, Ordering::Relaxed);
        let half = |which: u8| self.secret.hash_one((number, which));
        let nonce = format!("{:016x}{:016x}", half(0), half(1));
        let text = String::from_utf8_lossy(file.bytes).replace(NONCE, &nonce);
        let mut response = Response::typed(Status::Ok, file.content_type, text);
        response.headers = format!(
            "Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; script-src \
             'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\nX-Frame-Options: \
             DENY\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n"
        );
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::read_request;

    fn page() -> Page {
        let html = PageFile {
            path: "/".to_owned(),
            content_type: "text/html; charset=utf-8",
            bytes: b"<p title='{{nonce}}'>",
        };
        let path = "/assets/a.css".to_owned();
        let css = PageFile { path, content_type: "text/css", bytes: b"p {}" };
        Page::new(vec![html, css])
    }

    fn get(page: &Page, line: &str) -> Option<Response> {
        let text = format!("{line}\r\n\r\n");
        let request = read_request(&mut text.as_bytes(), |_| Ok(())).expect("it is there");
        page.answer(&request.expect("a request"))
    }

    #[test]
    fn each_document_has_a_nonce_of_its_own() {
        let page = page();
        let nonce = || {
            let answer = get(&page, "GET / HTTP/1.1").expect("a document");
            let body = String::from_utf8(answer.body).expect("text");
            let nonce = body.trim_start_matches("<p title='").trim_end_matches("'>").to_owned();
            assert_eq!(nonce.len(), 32, "{body}");
            assert!(answer.headers.contains(&format!("'nonce-{nonce}'")), "{}", answer.headers);
            assert!(answer.headers.contains("frame-ancestors 'none'"));
            nonce
        };
        assert_ne!(nonce(), nonce());
    }

    #[test]
    fn files_are_known_by_their_tags() {
        let page = page();
        let first = get(&page, "GET /assets/a.css HTTP/1.1").expect("a file");
        assert_eq!((first.status, first.body.as_slice()), (Status::Ok, &b"p {}"[..]));
        let tag = first.headers.split("ETag: ").nth(1).expect("a tag").trim();
        for (tags, expected) in [
            (tag.to_owned(), Status::NotModified),
            (format!("\"x\", {tag}"), Status::NotModified),
            ("\"x\"".to_owned(), Status::Ok),
        ] {
            let line = format!("GET /assets/a.css HTTP/1.1\r\nIf-None-Match: {tags}");
            assert_eq!(get(&page, &line).expect("a file").status, expected, "{tags}");
        }
        let posted = get(&page, "POST / HTTP/1.1\r\nContent-Length: 0").expect("refused");
        assert!(matches!(posted.status, Status::MethodNotAllowed(_)));
    }

    #[test]
    fn only_the_files_themselves_are_there() {
        let page = page();
        for path in [
            "/assets/",
            "/assets/../assets/a.css",
            "/assets/%2e%2e/a.css",
            "/assets//a.css",
            "/assets/a.css/",
            "//",
            "/index.html",
            "/../../etc/passwd",
        ] {
            assert_eq!(get(&page, &format!("GET {path} HTTP/1.1")), None, "{path}");
        }
    }
}
