//! Accepts connections until the stop begins, spreads them over the loops, and waits for them.

use std::{sync::Arc, time::Duration};

use ebbtide::{
    app::{Connection, Listener},
    reactor::Task,
    sleep, spawn_named,
};

use super::{connection::converse, service::Service};

/// How long to wait when there are as many connections as there may be.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until the app closes, and all connections have ended.
pub(super) async fn serve(mut listener: Listener, service: &Arc<Service>, most: usize) {
    let closing = service.app.closing();
    loop {
        // Whoever comes waits in the system's queue. Who is in it when the stop begins is let in.
        while service.connections() >= most && closing.wrap(sleep(PAUSE)).await.is_ok() {}
        let Some(connection) = listener.accept().await else { break };
        begin(connection, service);
    }
    for site in &service.sites {
        site.connections.idle().await;
    }
}

/// Begins a conversation on one of the loops. If the app gives up on everything, and takes no more, the connection is
/// closed.
fn begin(connection: Connection, service: &Arc<Service>) {
    let desk = service.quietest();
    let Ok(permit) = desk.site().connections.enter_owned() else { return };
    let events = desk.site().events.clone();
    let _ = events.post(move || {
        let name = connection.name().clone();
        let conversation = async move {
            converse(connection, desk).await;
            drop(permit);
        };
        let _ = spawn_named(name, conversation).map(Task::detach);
    });
}
