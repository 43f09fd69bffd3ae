//! From words to trees, by how tightly signs bind.

use std::sync::Arc;

use ebbtide_dag::json::ExpressionError;
use regex::Regex;

use super::{
    DEPTH_MAX,
    token::{Token, Word, tokens},
    tree::{Arith, Cmp, Pattern, Set, Test, Value},
};
use crate::{hint::did_you_mean, rows::Scalar};

// How tightly signs bind what is left and right of them.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const MINUS: u8 = 7;

const FUNCTIONS: [&str; 4] = ["coalesce", "min", "max", "abs"];

pub(super) fn value(text: &str) -> Result<Value, ExpressionError> {
    let (piece, at) = whole(text)?;
    piece.value(at)
}

pub(super) fn test(text: &str) -> Result<Test, ExpressionError> {
    let (piece, at) = whole(text)?;
    piece.test(at)
}

/// All of the text, and where it begins.
fn whole(text: &str) -> Result<(Tree, usize), ExpressionError> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let at = parser.peek().at;
    let tree = parser.tree(0)?;
    match &parser.peek().word {
        Word::End => Ok((tree.what, at)),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// What a part of the text turned out to be.
enum Tree {
    Value(Value),
    Test(Test),
}

impl Tree {
    fn value(self, at: usize) -> Result<Value, ExpressionError> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Test(_) => Err(ExpressionError::new(at, "expected a value, got a condition")),
        }
    }

    fn test(self, at: usize) -> Result<Test, ExpressionError> {
        match self {
            Self::Test(test) => Ok(test),
            Self::Value(
                value @ (Value::Column(_)
                | Value::Var(_)
                | Value::Coalesce(_)
                | Value::Const(Scalar::Bool(_))),
            ) => Ok(Test::Is(value)),
            Self::Value(value) => {
                Err(ExpressionError::new(at, format!("expected a condition, got the value {value}")))
            }
        }
    }
}

/// A tree, and how many levels it has: what is built from left to right gets deep without any recursion.
struct Piece {
    what: Tree,
    levels: usize,
}

struct Parser {
    /// The last one is the end, which is never taken.
    tokens: Vec<Token>,
    next: usize,
    /// How many calls of `tree` are under way.
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next]
    }

    fn take(&mut self) -> Token {
        let token = self.tokens[self.next].clone();
        if token.word != Word::End {
            self.next += 1;
        }
        token
    }

    fn takes(&mut self, word: &Word) -> bool {
        let is_it = self.peek().word == *word;
        self.next += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), ExpressionError> {
        if self.takes(&Word::Sign(sign)) { Ok(()) } else { Err(self.unexpected(&format!("\"{sign}\""))) }
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let Token { at, word } = self.peek();
        let found = match word {
            Word::Literal(value) => value.to_string(),
            Word::Name(name) => format!("\"{name}\""),
            Word::Var(name) => format!("\"${name}\""),
            Word::Keyword(word) | Word::Sign(word) => format!("\"{word}\""),
            Word::End => "the end".to_owned(),
        };
        ExpressionError::new(*at, format!("expected {expected}, got {found}"))
    }

    /// What holds together at least as tightly as this.
    fn tree(&mut self, tightness: u8) -> Result<Piece, ExpressionError> {
        let at = self.peek().at;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep(at));
        }
        let mut left = self.prefix()?;
        while let Some((binds, word)) = self.infix().filter(|(binds, _)| *binds >= tightness) {
            left = self.join(left, at, binds, &word)?;
            if left.levels > DEPTH_MAX {
                return Err(too_deep(at));
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Piece, ExpressionError> {
        let at = self.peek().at;
        let leaf = |value| Ok(Piece { what: Tree::Value(value), levels: 1 });
        match self.peek().word.clone() {
            Word::Literal(value) => {
                self.take();
                leaf(Value::Const(value))
            }
            Word::Keyword(word @ ("null" | "true" | "false")) => {
                self.take();
                leaf(Value::Const(if word == "null" { Scalar::Null } else { Scalar::Bool(word == "true") }))
            }
            Word::Var(name) => {
                self.take();
                leaf(Value::Var(name.into()))
            }
            Word::Name(name) => {
                self.take();
                if self.takes(&Word::Sign("(")) {
                    self.function(&name, at)
                } else {
                    leaf(Value::Column(name.into()))
                }
            }
            Word::Sign("(") => {
                self.take();
                let inner = self.tree(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Word::Sign("-") => {
                self.take();
                // Of a number it is a part.
                let minus = match &self.peek().word {
                    Word::Literal(Scalar::Int(number)) => Some(Scalar::Int(-number)),
                    Word::Literal(Scalar::Float(number)) => Some(Scalar::Float(-number)),
                    _ => None,
                };
                if let Some(number) = minus {
                    self.take();
                    return leaf(Value::Const(number));
                }
                let at = self.peek().at;
                let inner = self.tree(MINUS)?;
                let value = Value::Neg(inner.what.value(at)?.into());
                Ok(Piece { what: Tree::Value(value), levels: inner.levels + 1 })
            }
            Word::Keyword("not") => {
                self.take();
                let at = self.peek().at;
                let inner = self.tree(NOT)?;
                let test = Test::Not(inner.what.test(at)?.into());
                Ok(Piece { what: Tree::Test(test), levels: inner.levels + 1 })
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    fn function(&mut self, name: &str, at: usize) -> Result<Piece, ExpressionError> {
        let mut args = Vec::new();
        let mut levels = 0;
        while !self.takes(&Word::Sign(")")) {
            if !args.is_empty() {
                self.expect(",")?;
            }
            let at = self.peek().at;
            let piece = self.tree(0)?;
            levels = levels.max(piece.levels);
            args.push(piece.what.value(at)?);
        }
        let known = FUNCTIONS.iter().find(|known| known.eq_ignore_ascii_case(name));
        let Some(known) = known else {
            let hint = did_you_mean(name, FUNCTIONS);
            return Err(ExpressionError::new(at, format!("there is no function \"{name}\"{hint}")));
        };
        let count = args.len();
        let value = function(known, args).ok_or_else(|| {
            let wanted = if *known == "abs" {
                "1 value"
            } else if *known == "coalesce" {
                "1 or more"
            } else {
                "2 values"
            };
            ExpressionError::new(at, format!("\"{known}\" takes {wanted}, got {count}"))
        })?;
        Ok(Piece { what: Tree::Value(value), levels: levels + 1 })
    }

    /// The operator that is next, and how tightly it binds.
    fn infix(&self) -> Option<(u8, Word)> {
        let word = &self.peek().word;
        let binds = match word {
            Word::Keyword("or") => OR,
            Word::Keyword("and") => AND,
            Word::Keyword("in" | "is" | "not") => COMPARISON,
            Word::Sign("==" | "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" | "~" | "!~") => COMPARISON,
            Word::Sign("+" | "-") => SUM,
            Word::Sign("*" | "/") => PRODUCT,
            _ => return None,
        };
        Some((binds, word.clone()))
    }

    /// What is left of an operator, with the operator and what is right of it.
    fn join(&mut self, left: Piece, at: usize, binds: u8, word: &Word) -> Result<Piece, ExpressionError> {
        let mut levels = left.levels;
        let operator = self.take().at;
        let what = match word {
            Word::Keyword("or" | "and") => {
                let left = left.what.test(at)?;
                let right_at = self.peek().at;
                let right = self.tree(binds + 1)?;
                // A chain of them is one level.
                levels = levels.max(right.levels + 1);
                let right = right.what.test(right_at)?;
                return Ok(Piece { what: Tree::Test(chain(left, right, binds == AND)), levels });
            }
            Word::Sign(sign) if binds > COMPARISON => {
                let left = left.what.value(at)?;
                let (right, more) = self.operand(binds + 1)?;
                levels = levels.max(more);
                let arith = match *sign {
                    "+" => Arith::Add,
                    "-" => Arith::Sub,
                    "*" => Arith::Mul,
                    _ => Arith::Div,
                };
                Tree::Value(Value::Binary(arith, left.into(), right.into()))
            }
            word => {
                let Tree::Value(left) = left.what else {
                    let message = "comparisons do not follow each other: join them with \"and\"";
                    return Err(ExpressionError::new(operator, message));
                };
                let (test, more) = self.comparison(left, word)?;
                levels = levels.max(more);
                Tree::Test(test)
            }
        };
        Ok(Piece { what, levels: levels + 1 })
    }

    /// The value to the right of an operator, and its levels.
    fn operand(&mut self, tightness: u8) -> Result<(Value, usize), ExpressionError> {
        let at = self.peek().at;
        let piece = self.tree(tightness)?;
        Ok((piece.what.value(at)?, piece.levels))
    }

    fn comparison(&mut self, left: Value, word: &Word) -> Result<(Test, usize), ExpressionError> {
        let test = match word {
            Word::Keyword("is") => {
                let is_not = self.takes(&Word::Keyword("not"));
                if !self.takes(&Word::Keyword("null")) {
                    return Err(self.unexpected("\"null\""));
                }
                negated(is_not, Test::Null(left))
            }
            Word::Keyword("in") => Test::In(left, self.set()?),
            Word::Keyword(_) => {
                if !self.takes(&Word::Keyword("in")) {
                    return Err(self.unexpected("\"in\""));
                }
                negated(true, Test::In(left, self.set()?))
            }
            Word::Sign(sign @ ("~" | "!~")) => {
                let Token { at, word } = self.peek().clone();
                let Word::Literal(Scalar::Text(text)) = word else {
                    return Err(self.unexpected("a pattern in quotes"));
                };
                self.take();
                negated(*sign == "!~", Test::Match(left, pattern(&text, at)?))
            }
            word => {
                let Word::Sign(sign) = word else { return Err(self.unexpected("an operator")) };
                let (right, levels) = self.operand(COMPARISON + 1)?;
                let cmp = cmp(sign).ok_or_else(|| self.unexpected("an operator"))?;
                return Ok((Test::Cmp(cmp, left, right), levels));
            }
        };
        Ok((test, 1))
    }

    /// `('US', 'DE')`
    fn set(&mut self) -> Result<Set, ExpressionError> {
        let at = self.peek().at;
        self.expect("(")?;
        let mut values = Vec::new();
        loop {
            let item = self.peek().at;
            match self.tree(SUM)?.what {
                Tree::Value(Value::Const(value)) => values.push(value),
                _ => return Err(ExpressionError::new(item, "a list has constants only")),
            }
            if self.takes(&Word::Sign(")")) {
                break;
            }
            self.expect(",")?;
        }
        Set::of(&values).ok_or_else(|| ExpressionError::new(at, MIXED))
    }
}

pub(super) const MIXED: &str = "a list has values of one kind, and no null";

pub(super) fn function(name: &str, mut args: Vec<Value>) -> Option<Value> {
    match (name, args.len()) {
        ("coalesce", 1..) => Some(Value::Coalesce(args)),
        ("abs", 1) => args.pop().map(|arg| Value::Abs(arg.into())),
        ("min" | "max", 2) => {
            let arith = if name == "min" { Arith::Min } else { Arith::Max };
            let (b, a) = (args.pop()?, args.pop()?);
            Some(Value::Binary(arith, a.into(), b.into()))
        }
        _ => None,
    }
}

pub(super) fn cmp(sign: &str) -> Option<Cmp> {
    Some(match sign {
        "==" | "=" => Cmp::Eq,
        "!=" | "<>" => Cmp::Ne,
        "<" => Cmp::Lt,
        "<=" => Cmp::Le,
        ">" => Cmp::Gt,
        ">=" => Cmp::Ge,
        _ => return None,
    })
}

pub(super) fn pattern(text: &Arc<str>, at: usize) -> Result<Pattern, ExpressionError> {
    Regex::new(text).map(Pattern).map_err(|error| {
        // The last line says what is wrong; those before show where, for a terminal.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        ExpressionError::new(at, format!("'{text}' is no regular expression: {reason}"))
    })
}

/// Both, or one of both; what is a chain already gets longer, in its place: chains are built one by one from the left.
pub(super) fn chain(left: Test, right: Test, is_and: bool) -> Test {
    let mut tests = match (left, is_and) {
        (Test::All(inner), true) | (Test::Any(inner), false) => inner,
        (left, _) => vec![left],
    };
    match (right, is_and) {
        (Test::All(inner), true) | (Test::Any(inner), false) => tests.extend(inner),
        (right, _) => tests.push(right),
    }
    if is_and { Test::All(tests) } else { Test::Any(tests) }
}

pub(super) fn negated(is_negated: bool, test: Test) -> Test {
    if is_negated { Test::Not(test.into()) } else { test }
}

pub(super) fn too_deep(at: usize) -> ExpressionError {
    ExpressionError::new(at, format!("it is nested more than {DEPTH_MAX} levels deep"))
}
