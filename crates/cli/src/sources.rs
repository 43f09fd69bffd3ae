//! What plans read from: the embedded data, a file, or Redis servers.

use std::{net::TcpStream, time::Duration};

use ebbtide::{
    App,
    reactor::Async,
    redis::{Command, Link, Settings, Why},
    shutdown::Priority,
    timeout::timeout,
};
use ebbtide_rank::{Endpoint, Endpoints, IN_FLIGHT, STORE_BYTES_MAX, Server, Store, demo};

use crate::{
    args,
    fault::{Fault, code},
    inside,
    library::read_text,
};

/// How long a server may take to say at the start that it is there, wherever it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a command waits for a connection. Less than the deadline of most plans: so a server that is gone fails the
/// node that needs it, and the answer says which.
const UNCONNECTED: Duration = Duration::from_millis(250);

/// How long a source waits at most before it tries to connect again: a server that is back is to be used at once.
const BACKOFF_MAX: Duration = Duration::from_millis(250);

/// When links are stopped: after those who use them, and before the loop, which waits for their drivers.
pub(crate) const LINKS: Priority = Priority::POOLS;

/// The endpoints that were asked for. Links are stopped with the app.
pub(crate) async fn endpoints(args: &args::Sources, app: &App) -> Result<Endpoints, Fault> {
    let endpoints = if let Some(path) = &args.store {
        let text = read_text(path, STORE_BYTES_MAX).map_err(|error| Fault::unreadable(path, &error))?;
        let store =
            Store::from_json(&text).map_err(|error| Fault::data(format!("{}: {error}", path.display())))?;
        Endpoints::demo().with(Endpoint::store(ebbtide_rank::DEFAULT, store))
    } else if let Some(url) = &args.redis {
        let server = server(url)?;
        let mut settings = Settings::default();
        settings.patience = UNCONNECTED;
        settings.timeout = args.redis_timeout_ms;
        let link = source(app, &server, settings);
        greet(app, &link).await?;
        if args.load_demo_data {
            let loaded = demo::load(&link).await;
            loaded
                .map_err(|error| Fault::new(code::UNAVAILABLE, format!("cannot fill {server}: {error}")))?;
        }
        Endpoints::demo().with(Endpoint::redis(ebbtide_rank::DEFAULT, link, IN_FLIGHT))
    } else if let Some(path) = &args.endpoints {
        let endpoints = Endpoints::open(path, |server, settings| source(app, server, settings));
        let endpoints = endpoints.map_err(|error| {
            // A file that cannot be read is told from one that is wrong.
            let code = if error.is_unreadable() { code::NO_INPUT } else { code::DATA };
            Fault::new(code, error.to_string())
        })?;
        for link in endpoints.links() {
            greet(app, link).await?;
        }
        endpoints
    } else {
        Endpoints::demo()
    };
    for (nth, link) in endpoints.links().enumerate() {
        let name = format!("link {} to {}", nth + 1, link.address());
        // The names are all different.
        let _ = app.register(name, LINKS, link.clone());
    }
    Ok(endpoints)
}

/// Reads the address of a server.
pub(crate) fn server(url: &str) -> Result<Server, Fault> {
    url.parse().map_err(|error| {
        Fault::new(code::USAGE, format!("\"{url}\" is no address of a Redis server: {error}"))
    })
}

/// A link to a server, on the app's loop.
pub(crate) fn link(app: &App, server: &Server, mut settings: Settings) -> Link {
    let (host, handle) = (format!("{}:{}", server.host(), server.port()), app.handle().clone());
    settings.greeting = server.greeting();
    Link::new(
        server.to_string(),
        settings,
        handle.clone(),
        move || Async::<TcpStream>::connect_host(host.clone()),
        move |driver| drop(handle.spawn(driver)),
    )
}

/// The same for one that plans read from.
fn source(app: &App, server: &Server, mut settings: Settings) -> Link {
    settings.backoff_max = BACKOFF_MAX;
    link(app, server, settings)
}

/// For a link that finds out whether a server is there: it says soon why not.
pub(crate) fn hasty() -> Settings {
    let mut settings = Settings::default();
    settings.patience = UNCONNECTED;
    settings
}

/// Makes sure that a server is there.
pub(crate) async fn greet(app: &App, link: &Link) -> Result<(), Fault> {
    let answered = async {
        loop {
            match link.ask(Command::new("PING")).await {
                // It is still being connected to: one that is far away takes longer than a command waits.
                Err(error) if matches!(error.why(), Why::Unreachable { trouble: None, .. }) => {}
                answered => return answered,
            }
        }
    };
    let (address, token) = (link.address(), app.token());
    let in_time = timeout(link.timer().clone(), PATIENCE, answered);
    let failed = match token.wrap(in_time).await {
        Ok(Ok(Ok(_))) => return Ok(()),
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(_)) => format!("no answer within {PATIENCE:?}"),
        Err(_) => return Err(inside::stopped(app)),
    };
    let hint = hint(&failed);
    Err(Fault::new(code::UNAVAILABLE, format!("cannot reach {address}: {failed}")).hint(hint))
}

/// What to do about a server that cannot be reached.
fn hint(failed: &str) -> &'static str {
    const HINTS: [(&str, &str); 5] = [
        ("NOAUTH", "it wants a password: redis://:PASSWORD@HOST:PORT, or redis://USER:PASSWORD@HOST:PORT"),
        ("WRONGPASS", "it does not know this user with this password: see those in the URL"),
        ("without any password", "it has no password: leave the one in the URL out"),
        (
            "not connected within",
            "is the server running? One that is far away is given more time with --redis-timeout-ms, or with \
             `request_timeout_ms` in an endpoints file",
        ),
        ("it is no Redis server", "what listens there is no Redis server: is it another port?"),
    ];
    let fitting = HINTS.iter().find(|(part, _)| failed.contains(part));
    fitting.map_or("is the server running? `redis-cli -u URL ping` tells", |(_, hint)| hint)
}
