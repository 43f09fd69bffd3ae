//! What plans read from: the embedded data, a file, or Redis servers.

use std::{net::TcpStream, time::Duration};

use ebbtide::{
    App,
    reactor::Async,
    redis::{Link, Settings},
    shutdown::Priority,
};
use ebbtide_rank::{Endpoint, Endpoints, IN_FLIGHT, Server, Store, demo};

use crate::{
    args,
    fault::{Fault, code},
    library::read_text,
};

/// How large a file with data may be.
const STORE_BYTES_MAX: u64 = 1 << 30;

/// How large a file of endpoints may be: some thousands of them.
const ENDPOINTS_BYTES_MAX: u64 = 1 << 20;

/// How long to wait for a server before it is said not to be there.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a command waits for a connection. Less than the deadline of most plans: so a server that is gone fails the
/// node that needs it, and the answer says which.
const UNCONNECTED: Duration = Duration::from_millis(250);

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
        let link = link(app, &server, settings);
        greet(&link, &server).await?;
        if args.load_demo_data {
            let loaded = demo::load(&link).await;
            loaded
                .map_err(|error| Fault::new(code::UNAVAILABLE, format!("cannot fill {server}: {error}")))?;
        }
        Endpoints::demo().with(Endpoint::redis(ebbtide_rank::DEFAULT, link, IN_FLIGHT))
    } else if let Some(path) = &args.endpoints {
        // One that cannot be read, or is no such file by its size, is told from one that is wrong.
        read_text(path, ENDPOINTS_BYTES_MAX).map_err(|error| Fault::unreadable(path, &error))?;
        Endpoints::open(path, |server, settings| link(app, server, settings))
            .map_err(|error| Fault::data(error.to_string()))?
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

/// For a link that finds out whether a server is there: it says why not before the patience with it is over.
pub(crate) fn hasty() -> Settings {
    let mut settings = Settings::default();
    settings.patience = PATIENCE / 2;
    settings
}

/// Makes sure that a server is there.
pub(crate) async fn greet(link: &Link, server: &Server) -> Result<(), Fault> {
    let ping = link.ask(ebbtide::redis::Command::new("PING"));
    let failed = match ebbtide::timeout::timeout(link.timer().clone(), PATIENCE, ping).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {PATIENCE:?}"),
    };
    Err(Fault::new(code::UNAVAILABLE, format!("cannot reach {server}: {failed}"))
        .hint("is the server running? `redis-cli -u URL ping` tells"))
}
