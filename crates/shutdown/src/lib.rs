//! A shutdown coordinator.

#![forbid(unsafe_code)]

mod pace;
