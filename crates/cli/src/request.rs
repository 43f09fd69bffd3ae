//! Where a request comes from: the command line, a file, standard input, or the plan's own sample.

use std::io::{self, IsTerminal, Read};

use ebbtide::App;
use ebbtide_rank::Request;

use crate::{
    args,
    fault::{Fault, code},
    inside,
    library::read_text,
    registry::Plan,
    stdin::{Pieces, Tray},
};

/// How large a request may be.
pub(crate) const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// The request that was asked for. With a terminal at standard input, or nothing in it, the plan's sample.
pub(crate) async fn request(app: &App, args: &args::RequestArgs, plan: &Plan) -> Result<Request, Fault> {
    let mut request = match (&args.request, &args.request_file) {
        (Some(text), _) => parse(text, "--request")?,
        (None, Some(path)) if path.as_os_str() == "-" => match unhurried(app, stdin).await? {
            Some(text) => parse(&text, STDIN)?,
            None => return Err(Fault::data("there is no request at standard input")),
        },
        (None, Some(path)) => {
            let file = path.clone();
            let text = unhurried(app, move || {
                read_text(&file, REQUEST_BYTES_MAX).map_err(|error| Fault::unreadable(&file, &error))
            });
            parse(&text.await?, &path.display().to_string())?
        }
        (None, None) => {
            let given = if io::stdin().is_terminal() { None } else { unhurried(app, stdin).await? };
            match given {
                Some(text) => parse(&text, STDIN)?,
                None => sample(plan)?,
            }
        }
    };
    for (name, value) in &args.params {
        request
            .params
            .set_from(&format!("{name}={value}"))
            .map_err(|error| Fault::data(error.to_string()))?;
    }
    Ok(request)
}

/// What errors call standard input.
const STDIN: &str = "standard input";

/// Reads what somebody may still be writing, off the loop, until the app is told to stop.
async fn unhurried<T: Send + 'static>(
    app: &App,
    read: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let read = |tray: &Tray<_>| {
        // Whoever waits for it may have been told to stop.
        let _ = tray.put(read());
    };
    let mut pieces = Pieces::read(1, read)?;
    let read = app.token().wrap(pieces.next()).await.map_err(|_| inside::stopped(app))?;
    // Without an answer the thread has panicked, and said why.
    read.unwrap_or_else(|| Err(Fault::new(code::NO_INPUT, "the request cannot be read")))
}

fn sample(plan: &Plan) -> Result<Request, Fault> {
    let Some(sample) = plan.sample_request() else {
        return Err(Fault::data(format!("the plan {} has no sample request", plan.name()))
            .hint("give one with --request '{\"user_id\": 1}'"));
    };
    Request::from_value(sample).map_err(|error| Fault::data(format!("the plan's sample request: {error}")))
}

fn parse(text: &str, place: &str) -> Result<Request, Fault> {
    Request::from_json(text).map_err(|error| {
        Fault::data(format!("{place}: {error}"))
            .hint("a request looks like {\"user_id\": 1, \"params\": {\"boost\": 2}}")
    })
}

/// What is at standard input; none if it is closed, empty or blank.
fn stdin() -> Result<Option<String>, Fault> {
    let mut bytes = Vec::new();
    match io::stdin().lock().take(REQUEST_BYTES_MAX + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > REQUEST_BYTES_MAX => Err(Fault::data(format!(
            "the request at standard input is larger than {REQUEST_BYTES_MAX} bytes"
        ))),
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
            Err(_) => Err(Fault::data("the request at standard input is not UTF-8 text")),
        },
        // Closed.
        Err(error) if error.raw_os_error() == Some(9) => Ok(None),
        Err(error) => Err(Fault::new(code::NO_INPUT, format!("cannot read standard input: {error}"))),
    }
}
