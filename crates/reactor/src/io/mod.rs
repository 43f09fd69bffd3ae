//! I/O: sources that are waited for by a loop.

mod async_io;
mod driver;
#[cfg(all(target_os = "linux", not(ebbtide_portable)))]
mod epoll;
mod os;
mod poll;
#[cfg(any(not(target_os = "linux"), ebbtide_portable))]
mod portable;
#[cfg_attr(not(any(loom, shuttle)), expect(unreachable_pub, reason = "public for the models"))]
pub mod source;

pub use self::async_io::{Async, Ready};
pub(crate) use self::{
    driver::{Driver, ended},
    os::set_nonblocking,
    poll::Limit,
    source::{Direction, Slot},
};
