//! A cluster of one: a script whose keys were not in one slot would be refused.

use ebbtide_mailbox::{Mailbox, Message, ReplyError, Settlement};
use ebbtide_redis::{Command, testing::Server};

use crate::{Site, finish, receive, waiting};

/// How many slots a cluster has.
const SLOTS: u64 = 16_384;

fn cluster() -> Site {
    let site = Site::at(Server::start_with(&["--cluster-enabled", "yes"]));
    site.ask((0..SLOTS).fold(Command::new("CLUSTER").arg("ADDSLOTS"), Command::int));
    let info = || site.ask(Command::new("CLUSTER").arg("INFO")).bytes().unwrap();
    while !String::from_utf8_lossy(&info()).contains("cluster_state:ok") {}
    site
}

#[test]
fn a_cluster_keeps_the_keys_of_a_mailbox_together_whatever_its_name() {
    let site = cluster();
    for name in ["orders", "a}b", "a{b}c", "{", "{}", "x}", "a:b", "{orders}:pending", "ördérs \r\n\0"] {
        let mailbox = site.open(name);
        finish(mailbox.send(Message::new("one"))).unwrap_or_else(|error| panic!("{name:?}: {error}"));
        let one = receive(&mailbox, waiting(1)).remove(0);
        assert!(receive(&mailbox, waiting(1)).is_empty());
        finish(mailbox.checkpoint(one.receipt, "half".into())).unwrap();
        finish(mailbox.settle(one.receipt, Settlement::Release)).unwrap();
        let again = receive(&mailbox, waiting(1)).remove(0);
        assert_eq!(again.checkpoint.as_deref(), Some(&b"half"[..]));
        finish(mailbox.settle(again.receipt, Settlement::Ack)).unwrap();
        assert_eq!(finish(mailbox.counts()).unwrap().all(), 0);
        let replied = finish(mailbox.reply("nobody".into(), "reply".into()));
        assert!(matches!(replied, Err(ReplyError::Unknown(_))), "{name:?}: {replied:?}");
        finish(mailbox.remove()).unwrap();
    }
    // One in another slot can be replied to.
    let (here, there) = (site.open("here"), site.open("there"));
    finish(here.reply(there.address().clone(), "reply".into())).unwrap();
    assert_eq!(receive(&there, waiting(1)).len(), 1);
}
