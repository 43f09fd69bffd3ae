//! What is answered.

use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use serde_json::json;

pub(super) type Reply = Response<Full<Bytes>>;

/// An answer in JSON.
pub(super) fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    with_type(status, "application/json", body)
}

pub(super) fn with_type(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// What is wrong, for people and for machines.
pub(super) fn wrong(status: StatusCode, code: &str, message: impl Into<String>) -> Reply {
    let error = json!({"error": {"code": code, "message": message.into()}});
    json(status, format!("{error}\n"))
}

/// There is too much to do, or the program stops: later, or elsewhere, it may work.
pub(super) fn later(code: &str, message: impl Into<String>) -> Reply {
    let mut reply = wrong(StatusCode::SERVICE_UNAVAILABLE, code, message);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}
