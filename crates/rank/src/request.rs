//! What a plan is run for.

use std::{
    collections::BTreeMap,
    error, fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;

use crate::{
    hint::did_you_mean,
    plain::{Plain, Reader},
    rows::Scalar,
};

/// What a plan is run for: a user, and what else its expressions want to know.
///
/// ```
/// use ebbtide_rank::Request;
///
/// let mut request = Request::from_json(r#"{"user_id": 7, "request_id": "r1", "params": {"boost": 2}}"#)?;
/// request.params.set_from("country=US")?;
/// assert_eq!(request.user_id, 7);
///
/// let error = Request::from_json(r#"{"user": 7}"#).unwrap_err();
/// assert_eq!(error.to_string(), "the request has no field \"user\" (there are \"user_id\", \"request_id\", \"params\")");
/// # Ok::<(), ebbtide_rank::RequestError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// Whom it is for.
    pub user_id: i64,
    /// What it is called in its answer.
    pub request_id: Arc<str>,
    /// What expressions know as `$name`.
    pub params: Vars,
}

/// The parameters of a request, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vars(BTreeMap<Arc<str>, Scalar>);

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError(String);

const FIELDS: [&str; 3] = ["user_id", "request_id", "params"];

impl Request {
    /// A request for a user, with an id that no other one of this process has.
    #[must_use]
    pub fn new(user_id: i64) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Self { user_id, request_id: format!("r{number}").into(), params: Vars::default() }
    }

    /// Reads `{"user_id": 7, "request_id": "r1", "params": {"boost": 2}}`. Only the user has to be given.
    ///
    /// # Errors
    /// Says what is wrong, and where.
    pub fn from_json(text: &str) -> Result<Self, RequestError> {
        if let Some(request) = Self::plain(text.trim_ascii_end()) {
            return Ok(request);
        }
        let json = serde_json::from_str(text)
            .map_err(|error| RequestError(format!("the request is not JSON: {error}")))?;
        Self::from_value(&json)
    }

    /// Reads what most requests are: a user, and an id. None if it is more, or wrong.
    fn plain(text: &str) -> Option<Self> {
        let (mut user, mut name) = (None, None);
        let mut reader = Reader::new(text);
        reader.object(|field| match (field.name, field.value) {
            ("user_id", Plain::Int(id)) => user.replace(id).is_none().then_some(()),
            ("request_id", Plain::Text(id)) => name.replace(id).is_none().then_some(()),
            _ => None,
        })?;
        reader.end()?;
        let user_id = user?;
        Some(match name {
            Some(name) => Self { user_id, request_id: name.into(), params: Vars::default() },
            None => Self::new(user_id),
        })
    }

    /// The same, from JSON that is read already, as a plan's sample request is.
    ///
    /// # Errors
    /// Says what is wrong, and where.
    pub fn from_value(json: &Value) -> Result<Self, RequestError> {
        let Draft { user_id, request_id, params } = Draft::read(json)?;
        Ok(match request_id {
            Some(request_id) => Self { user_id, request_id, params },
            None => Self { params, ..Self::new(user_id) },
        })
    }

    /// Whether that would be a request. None is made, which would have an id.
    ///
    /// # Errors
    /// Says what is wrong, and where.
    pub fn check(json: &Value) -> Result<(), RequestError> {
        Draft::read(json).map(drop)
    }
}

/// What a request says.
struct Draft {
    user_id: i64,
    request_id: Option<Arc<str>>,
    params: Vars,
}

impl Draft {
    fn read(json: &Value) -> Result<Self, RequestError> {
        let Some(fields) = json.as_object() else {
            return Err(RequestError(format!(
                "expected an object such as {{\"user_id\": 1}}, got {}",
                shown(json)
            )));
        };
        if let Some(other) = fields.keys().find(|field| !FIELDS.contains(&&***field)) {
            let hint = match did_you_mean(other, FIELDS) {
                hint if hint.is_empty() => format!(" (there are \"{}\")", FIELDS.join("\", \"")),
                hint => hint,
            };
            return Err(RequestError(format!("the request has no field {other:?}{hint}")));
        }
        let Some(user) = fields.get("user_id") else {
            return Err(RequestError("the request has no `user_id`: say whom it is for".to_owned()));
        };
        let user_id = user.as_i64().ok_or_else(|| misfit("user_id", "a whole number", user))?;
        let request_id = match fields.get("request_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.as_str().into()),
            Some(Value::Number(id)) => Some(id.to_string().into()),
            Some(other) => return Err(misfit("request_id", "a string", other)),
        };
        let mut draft = Self { user_id, request_id, params: Vars::default() };
        match fields.get("params") {
            None | Some(Value::Null) => {}
            Some(Value::Object(params)) => {
                for (name, value) in params {
                    let misfit = || {
                        misfit(&format!("params.{name}"), "a string, a number, true, false or null", value)
                    };
                    draft.params.set(name.as_str(), Scalar::from_json(value).ok_or_else(misfit)?);
                }
            }
            Some(other) => return Err(misfit("params", "an object", other)),
        }
        Ok(draft)
    }
}

impl Vars {
    /// Gives a parameter a value.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: impl Into<Scalar>) {
        self.0.insert(name.into(), value.into());
    }

    /// Reads `name=value`, as on a command line. What looks like a number is one.
    ///
    /// # Errors
    /// If there is no name, or no `=`.
    pub fn set_from(&mut self, text: &str) -> Result<(), RequestError> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                self.set(name.trim(), Scalar::guess(value));
                Ok(())
            }
            _ => Err(RequestError(format!("expected a parameter such as boost=2, got {text:?}"))),
        }
    }

    /// The value of a parameter, if it has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        self.0.get(name)
    }

    /// All, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Scalar)> {
        self.0.iter()
    }
}

fn misfit(field: &str, expected: &str, got: &Value) -> RequestError {
    RequestError(format!("`{field}` of the request: expected {expected}, got {}", shown(got)))
}

/// So much of a value is shown in a message.
const SHOWN_MAX: usize = 40;

fn shown(json: &Value) -> String {
    match json {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        json => {
            let text = json.to_string();
            let end = text.floor_char_boundary(SHOWN_MAX);
            if end < text.len() { format!("{}…", &text[..end]) } else { text }
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl error::Error for RequestError {}
