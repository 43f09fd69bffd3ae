//! `ebbtide serve`: plans over HTTP.
//!
//! Connections are spread over loops, each with its own engines and counters (`service.rs`), and stay where they are.
//!
//! The listener is one piece of accepted work; connections are forked off it, and requests off their connection. So
//! the drain waits for all of them, and names the ones that are stuck. When the stop begins, each answer says that it
//! is the last one of its connection; connections that nothing is heard of are closed after a while. None that came
//! before the listener was closed is lost.

mod connection;
mod listener;
mod metrics;
mod reply;
mod routes;
mod seldom;
mod service;
mod wire;

use std::{io, net::TcpListener, sync::Arc, time::Duration};

use ebbtide::{
    lifecycle::{Gate, Terms},
    reactor::Async,
    shutdown::DrainTimeout,
};

use self::service::{Service, Site};
use crate::{
    args,
    engine::Engine,
    fault::{Fault, code},
    inside,
    library::Library,
    loops::loops,
    registry, sources,
    terminal::Terminal,
};

pub(crate) fn serve(args: args::Serve, library: Library, terminal: Terminal) -> Result<(), Fault> {
    let mut app = inside::lasting(&args.terms).readiness_delay(args.drain.readiness_delay_ms);
    if let Some(timeout) = drain_timeout(&args.drain)? {
        app = app.drain_timeout(timeout);
    }
    if let Some(health) = args.health {
        app = app.health_server(health);
    }
    inside::run(app, async move |app| {
        // Before anything else: a port that is taken is known at once.
        let socket = Async::<TcpListener>::bind(args.listen).map_err(|error| in_use(&args, &error))?;
        let endpoints = sources::endpoints(&args.sources, &app).await?;
        let registry = ebbtide_rank::registry(app.handle().clone(), &endpoints);
        let mut engines = Vec::new();
        for wanted in &args.plans {
            let plan = registry::read(&registry, &library, wanted)?;
            for warning in plan.warnings() {
                terminal.warn(warning);
            }
            engines.push(Engine::bind(&app, plan, &endpoints, &args.terms)?);
        }
        let mut sites = Vec::new();
        for events in loops(&app, args.loops, usize::MAX)?.into_iter().skip(1) {
            let engine = |engine: &Engine| engine.for_loop(&app, &events, &endpoints, &args.terms);
            let engines = engines.iter().map(engine).collect::<Result<_, _>>()?;
            sites.push(Site::new(events, engines));
        }
        sites.insert(0, Site::new(app.handle().clone(), engines));
        let service = Arc::new(Service {
            app: app.clone(),
            sites: sites.into(),
            requests: Gate::with(Terms { limit: Some(args.max_in_flight as usize), ..Terms::default() }),
            requests_max: args.max_in_flight as usize,
            body_max: args.max_body,
            body_timeout: args.body_timeout_ms,
        });
        let told = service.clone();
        let listener = app.listen(socket).on_trouble(move |error, failed| {
            told.sites[0].metrics.not_accepted();
            // Once, until somebody is accepted again.
            if failed == 1 {
                terminal.warn(format_args!("cannot accept connections: {error}"));
            }
        });
        let address = listener.address().unwrap_or(args.listen);
        terminal.announce(format!("listening on http://{address}\n"));
        app.ready();
        listener::serve(listener, &service, args.max_connections as usize).await;
        Ok(())
    })
}

/// The time that a stop may take.
pub(crate) fn drain_timeout(args: &args::Drain) -> Result<Option<DrainTimeout>, Fault> {
    let Some(seconds) = args.drain_timeout_seconds else { return Ok(None) };
    let timeout = Duration::try_from_secs_f64(seconds).map_err(|_| {
        Fault::new(
            code::USAGE,
            format!("--drain-timeout-seconds: expected seconds from 1 to 300, got {seconds}"),
        )
    })?;
    Ok(Some(timeout.into()))
}

fn in_use(args: &args::Serve, error: &io::Error) -> Fault {
    let fault = Fault::new(code::UNAVAILABLE, format!("cannot listen at {}: {error}", args.listen));
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            fault.hint("another program listens there: choose another port, or 0 for any")
        }
        io::ErrorKind::PermissionDenied => fault.hint("ports below 1024 need privileges"),
        _ => fault,
    }
}
