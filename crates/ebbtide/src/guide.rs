//! From a future that is waited for to a service that drains.
#![doc = include_str!("guide.md")]
