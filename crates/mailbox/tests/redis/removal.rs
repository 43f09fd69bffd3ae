//! Mailboxes that are taken off the server.

use ebbtide_mailbox::{Mailbox, Message, ReplyError};
use ebbtide_redis::{Command, Value};

use super::{Site, finish};

#[test]
fn a_mailbox_that_is_removed_leaves_nothing_on_the_server_and_takes_no_replies() {
    let site = Site::new();
    let (stays, goes) = (site.open("stays"), site.open("goes"));
    finish(goes.send(Message::new("left behind"))).unwrap();
    let address = goes.address().clone();
    finish(goes.remove()).unwrap();
    let keys = site.ask(Command::new("KEYS").arg("{goes}:*"));
    assert_eq!(keys, Value::Array(Vec::new()));
    let refused = finish(stays.reply(address, "hello".into())).unwrap_err();
    assert!(matches!(refused, ReplyError::Unknown(_)), "{refused}");
}
