//! What the server does in one step, for all mailboxes.

use std::sync::LazyLock;

use ebbtide_redis::Script;

pub(super) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(Scripts::new);

pub(super) struct Scripts {
    pub(super) open: Script,
    pub(super) send: Script,
    pub(super) receive: Script,
    pub(super) settle: Script,
    pub(super) checkpoint: Script,
    pub(super) purge: Script,
    pub(super) counts: Script,
    pub(super) pass: Script,
}

impl Scripts {
    fn new() -> Self {
        let script = |text: &str| Script::new(format!("{}{text}", include_str!("lua/prelude.lua")));
        Self {
            open: script(include_str!("lua/open.lua")),
            send: script(include_str!("lua/send.lua")),
            receive: script(include_str!("lua/receive.lua")),
            settle: script(include_str!("lua/settle.lua")),
            checkpoint: script(include_str!("lua/checkpoint.lua")),
            purge: script(include_str!("lua/purge.lua")),
            counts: script(include_str!("lua/counts.lua")),
            pass: script(include_str!("lua/pass.lua")),
        }
    }
}
