//! Files for a test: a folder of its own, and plans that the repository has no use for.

use std::{
    fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// A folder of its own, removed with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("cli-{}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of a file in it, which need not be there.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file. Gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.0.join(name), content).unwrap();
        self.path(name)
    }

    /// Writes a plan of one node, which is its output, and is called like the plan.
    pub(crate) fn plan(&self, name: &str, op: &str, params: &str) -> String {
        let text = format!(
            r#"{{"schema_version": 1, "plan_name": "{name}",
                "nodes": [{{"node_id": "{name}", "op": "{op}", "params": {params}}}],
                "outputs": ["{name}"], "sample_request": {{"user_id": 1, "request_id": "sample"}}}}"#
        );
        self.file(&format!("{name}.json"), text)
    }

    /// Writes a plan that sleeps.
    pub(crate) fn sleeping(&self, name: &str, milliseconds: u32) -> String {
        self.plan(name, "sleep", &format!(r#"{{"duration_ms": {milliseconds}}}"#))
    }

    /// Writes a plan that always fails.
    pub(crate) fn failing(&self, name: &str) -> String {
        self.plan(name, "sleep", r#"{"duration_ms": 0, "fail_after_sleep": true}"#)
    }

    /// Writes a plan whose rows show the parameter `boost`.
    pub(crate) fn boosted(&self) -> String {
        let text = r#"{"schema_version": 1, "plan_name": "boosted",
            "expr_table": {"boost": "id * $boost"},
            "nodes": [{"node_id": "source", "op": "fixed_source", "params": {"row_count": 2}},
                {"node_id": "boosted", "op": "vm", "inputs": ["source"], "params": {"expr": "boost", "out": "x"}}],
            "outputs": ["boosted"], "sample_request": {"user_id": 1, "params": {"boost": 10}}}"#;
        self.file("boosted.json", text)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
