//! The traits of `futures` for executors.

use futures_task::{FutureObj, LocalFutureObj, LocalSpawn, Spawn, SpawnError};

use crate::{Handle, Local, Runtime};

/// What is spawned goes on by itself. What is refused is dropped: the trait has no room to hand it back.
impl Spawn for Handle {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn(future).map(drop).map_err(|_refused| SpawnError::shutdown())
    }

    fn status(&self) -> Result<(), SpawnError> {
        if self.shared.inbox.is_shut() { Err(SpawnError::shutdown()) } else { Ok(()) }
    }
}

impl Spawn for Local {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn_local_obj(future.into())
    }
}

impl LocalSpawn for Local {
    fn spawn_local_obj(&self, future: LocalFutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn(future).map(drop).map_err(|_refused| SpawnError::shutdown())
    }
}

impl Spawn for Runtime {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn_local_obj(future.into())
    }
}

impl LocalSpawn for Runtime {
    fn spawn_local_obj(&self, future: LocalFutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn(future).map(drop).map_err(|_refused| SpawnError::shutdown())
    }
}
