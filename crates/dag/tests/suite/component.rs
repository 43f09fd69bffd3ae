//! component
