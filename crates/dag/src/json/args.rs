//! Reading the parameters of a node.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use super::{
    mistakes::{Mistakes, Path},
    names::{Nodes, Table},
    op::OpInfo,
    param::{ParamKind, Presence},
    params::{Arg, Params},
    text::Found,
};
use crate::error::Code;

/// What parameters may refer to.
pub(super) struct Scope<'s> {
    pub(super) nodes: &'s Nodes,
    pub(super) expressions: &'s Table,
    pub(super) predicates: &'s Table,
    pub(super) endpoints: &'s BTreeSet<Arc<str>>,
}

/// What the parameters of one node refer to, in order.
#[derive(Default)]
pub(super) struct References {
    pub(super) nodes: Vec<u32>,
    pub(super) endpoints: Vec<Arc<str>>,
}

/// Reads the parameters of a node, or notes what is wrong with them. `at` is where the node is, for those that are
/// missing; `own` is the node's number.
pub(super) fn read<'t>(
    op: &OpInfo,
    params: Option<Found<'t>>,
    (at, own, path): (usize, u32, Path<'_>),
    scope: &Scope<'_>,
    mistakes: &mut Mistakes<'t>,
) -> Option<(Params, References)> {
    let known: Vec<&str> = op.params.iter().map(|param| &**param.name()).collect();
    let (at, values) = match params {
        Some(params) => (params.at, mistakes.record(params, path, &known, Code::P012)?),
        None => (at, vec![None; known.len()]),
    };
    let mut reader = Reader { own, scope, mistakes, references: References::default() };
    let (mut args, mut nodes) = (Vec::with_capacity(known.len()), Vec::with_capacity(known.len()));
    for (param, value) in op.params.iter().zip(values) {
        let path = path.field(param.name());
        let first = reader.references.nodes.len();
        args.push(match (value, param.presence()) {
            (Some(value), _) => reader.read(param.kind(), value, path),
            (None, Presence::Default(value)) => param.kind().literal(value),
            (None, Presence::Optional) => None,
            (None, Presence::Required) => {
                let message = format!("op \"{}\" needs it: {}", op.name, param.kind());
                reader.mistakes.add(Code::P012, at, path, message);
                None
            }
        });
        nodes.push(first..reader.references.nodes.len());
    }
    let references = reader.references;
    let (op, declared) = (op.name.clone(), op.params.clone());
    Some((
        Params {
            op,
            declared,
            args: args.into(),
            nodes: nodes.into(),
            looked_at: None,
            prepared: OnceLock::new(),
        },
        references,
    ))
}

struct Reader<'r, 's, 't> {
    own: u32,
    scope: &'r Scope<'s>,
    mistakes: &'r mut Mistakes<'t>,
    references: References,
}

impl<'t> Reader<'_, '_, 't> {
    fn read(&mut self, kind: &ParamKind, value: Found<'t>, path: Path<'_>) -> Option<Arg> {
        match kind {
            ParamKind::List(kind) => {
                let items = self.mistakes.keep(Code::P012, path, value.list())?;
                let items = items.into_iter().enumerate();
                // All of them, so that each mistake is told.
                let args: Vec<_> = items.map(|(nth, item)| self.read(kind, item, path.item(nth))).collect();
                args.into_iter().collect::<Option<_>>().map(Arg::List)
            }
            ParamKind::Expression => {
                self.scope.expressions.find(value, path, self.mistakes).map(Arg::Expression)
            }
            ParamKind::Predicate => {
                self.scope.predicates.find(value, path, self.mistakes).map(Arg::Predicate)
            }
            ParamKind::Node => self.node(value, path),
            ParamKind::Endpoint => self.endpoint(value, path),
            kind => self.literal(kind, value, path),
        }
    }

    fn literal(&mut self, kind: &ParamKind, value: Found<'t>, path: Path<'_>) -> Option<Arg> {
        let json = self.mistakes.keep(Code::P012, path, value.json())?;
        let arg = kind.literal(&json);
        if arg.is_none() {
            let hint = match (kind, json.as_str()) {
                (ParamKind::OneOf(words), Some(word)) => {
                    let similar = self.mistakes.similar(word, words.iter().map(|word| &**word));
                    similar.map(super::mistakes::did_you_mean)
                }
                _ => None,
            };
            let misfit = value.misfit(&kind.to_string());
            self.mistakes.add_with_hint(Code::P012, misfit.at, path, misfit.message, hint);
        }
        arg
    }

    fn node(&mut self, value: Found<'t>, path: Path<'_>) -> Option<Arg> {
        if !value.is_string() {
            return self.mistakes.keep(Code::P012, path, Err(value.misfit("the name of a node")));
        }
        let node = self.scope.nodes.find(value, path, (Code::P007, Some(self.own)), self.mistakes)?;
        if node == self.own {
            self.mistakes.add(Code::P008, value.at, path, "it depends on itself");
            return None;
        }
        self.references.nodes.push(node);
        Some(Arg::Node(self.scope.nodes.name(node).clone()))
    }

    fn endpoint(&mut self, value: Found<'t>, path: Path<'_>) -> Option<Arg> {
        let name = self.mistakes.keep(Code::P012, path, value.string())?;
        let Some(name) = self.scope.endpoints.get(&*name) else {
            let hint = self.mistakes.hint(&name, self.scope.endpoints.iter().map(|name| &**name));
            let message = format!("there is no endpoint \"{}\"", name.escape_debug());
            self.mistakes.add_with_hint(Code::P016, value.at, path, message, hint);
            return None;
        };
        self.references.endpoints.push(name.clone());
        Some(Arg::Endpoint(name.clone()))
    }
}
