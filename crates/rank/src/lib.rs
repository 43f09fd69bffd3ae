//! Ranking plans: rows in columns, expressions over them, ops, and the stores that they read.
//!
//! A request is answered by a graph of steps: some read who the user is, whom he follows and what those have posted;
//! others compute a score, filter, sort, and take the best. [`registry`] has the ops, [`ebbtide_dag`] runs them. Each
//! step is also a method of [`Rows`] or [`Endpoint`], for graphs that are written in Rust.
//!
//! ```
//! use ebbtide_lifecycle::wait::block_on;
//! use ebbtide_rank::{Endpoints, Expr, Fields, Order, Pred, Request, Rows};
//!
//! let endpoints = Endpoints::demo();
//! let store = endpoints.get("default").expect("it is always there");
//! let request = Request::new(1);
//! let (score, fresh): (Expr, Pred) = ("coalesce(score, 0.1) * likes".parse()?, "age_hours <= 48".parse()?);
//!
//! let best = block_on(async {
//!     let follows = store.lists("follow", &[request.user_id], 50, &Fields::default()).await?;
//!     let ids: Vec<i64> = follows.ids().collect();
//!     let media = store.lists("media", &ids, 10, &Fields::default()).await?;
//!     let scored = media.filter(&fresh, &request.params)?.compute("rank", &score, &request.params)?;
//!     Ok::<Rows, Box<dyn std::error::Error>>(scored.sort("rank", Order::Descending)?.take(3))
//! })?;
//! assert_eq!(best.len(), 3);
//! println!("{}", best.to_json(&request.request_id));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading order
//! 1. [`Rows`] and [`Column`]: `column` has the values, `builder` fills them; `concat`, `sort` and `json` are what is
//!    done with them. [`Fields`]: columns that are declared.
//! 2. [`expr`]: `token`, `pratt` and `json` read expressions, `tree` is what they become; `lane`, `eval` and `test`
//!    evaluate them.
//! 3. [`Store`], [`Endpoint`], [`Endpoints`]: where rows come from. `item` and `plain`: how they are kept there.
//!    [`demo`]: a data
//!    set.
//! 4. [`ops`]: what plans are made of. [`Request`]: what they are run for.

#![forbid(unsafe_code)]

pub mod demo;
mod endpoint;
pub mod expr;
mod hint;
mod item;
pub mod ops;
mod plain;
mod request;
mod rows;
mod store;
mod text;

pub use self::{
    endpoint::{
        DEFAULT, Endpoint, Endpoints, EndpointsError, IN_FLIGHT, ReadError, ReadWhy, Server, ServerError,
    },
    expr::{EvalError, Expr, Pred, UnknownColumn},
    ops::registry,
    request::{Request, RequestError, Vars},
    rows::{Column, Fields, ID, Kind, Misfit, Order, ROWS_MAX, Rows, Scalar, ShapeError},
    store::{STORE_BYTES_MAX, Store, StoreError, WrongType},
};
