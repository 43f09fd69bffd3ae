//! Expressions, against an evaluator that looks at one value at a time.

use ebbtide_rank::{Column, Expr, Kind, Pred, Rows, Scalar, Vars};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// A number for each row. Written and evaluated here, in the plainest way.
#[derive(Clone, Debug)]
enum Number {
    Const(Scalar),
    Column(&'static str),
    Neg(Box<Number>),
    Abs(Box<Number>),
    /// With its op in trees, and its sign.
    Binary(&'static str, Box<Number>, Box<Number>),
    Coalesce(Box<Number>, Box<Number>),
}

#[derive(Clone, Debug)]
enum Condition {
    Cmp(&'static str, Number, Number),
    Text(&'static str, &'static str),
    In(Number, Vec<i64>),
    Null(Number),
    Match(&'static str),
    Flag,
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

/// A row: a whole number, a number, a text and a flag, each of which may be missing.
type Row = (Option<i64>, Option<f64>, Option<String>, Option<bool>);

/// A number that is not finite, or does not fit.
#[derive(Debug)]
struct Bad;

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Const(value) => value.to_string(),
            Self::Column(name) => (*name).to_owned(),
            Self::Neg(inner) => format!("-({})", inner.text()),
            Self::Abs(inner) => format!("abs({})", inner.text()),
            Self::Binary(op @ ("min" | "max"), a, b) => format!("{op}({}, {})", a.text(), b.text()),
            Self::Binary(op, a, b) => {
                let sign = match *op {
                    "add" => "+",
                    "sub" => "-",
                    "mul" => "*",
                    _ => "/",
                };
                format!("({}) {sign} ({})", a.text(), b.text())
            }
            Self::Coalesce(a, b) => format!("coalesce({}, {})", a.text(), b.text()),
        }
    }

    fn tree(&self) -> Json {
        match self {
            Self::Const(Scalar::Int(value)) => json!(value),
            Self::Const(Scalar::Float(value)) => json!({"op": "const_number", "value": value}),
            Self::Const(_) => Json::Null,
            Self::Column(name) => json!({"op": "column", "name": name}),
            Self::Neg(inner) => json!({"op": "neg", "a": inner.tree()}),
            Self::Abs(inner) => json!({"op": "abs", "a": inner.tree()}),
            Self::Binary(op, a, b) => json!({"op": op, "a": a.tree(), "b": b.tree()}),
            Self::Coalesce(a, b) => json!({"op": "coalesce", "a": a.tree(), "b": b.tree()}),
        }
    }

    /// What kind its column is of, whatever the rows.
    fn kind(&self) -> Kind {
        match self {
            Self::Const(value) => value.kind(),
            Self::Column("i" | "id") => Kind::Int,
            Self::Column("f") => Kind::Float,
            Self::Column(_) => Kind::Null,
            Self::Neg(inner) | Self::Abs(inner) => inner.kind(),
            Self::Coalesce(a, b) => a.kind().with(b.kind()).unwrap(),
            Self::Binary(op, a, b) => match (*op, a.kind(), b.kind()) {
                (_, Kind::Null, _) | (_, _, Kind::Null) => Kind::Null,
                ("div", ..) => Kind::Float,
                (_, a, b) => a.with(b).unwrap(),
            },
        }
    }

    fn of(&self, id: i64, row: &Row) -> Result<Scalar, Bad> {
        Ok(match self {
            Self::Const(value) => value.clone(),
            Self::Column("id") => Scalar::Int(id),
            Self::Column("i") => row.0.into(),
            Self::Column("f") => row.1.into(),
            Self::Column(_) => Scalar::Null,
            Self::Neg(inner) => match inner.of(id, row)? {
                Scalar::Int(value) => Scalar::Int(value.checked_neg().ok_or(Bad)?),
                Scalar::Float(value) => Scalar::Float(-value),
                _ => Scalar::Null,
            },
            Self::Abs(inner) => match inner.of(id, row)? {
                Scalar::Int(value) => Scalar::Int(value.checked_abs().ok_or(Bad)?),
                Scalar::Float(value) => Scalar::Float(value.abs()),
                _ => Scalar::Null,
            },
            Self::Coalesce(a, b) => {
                let (a, b) = (a.of(id, row)?, b.of(id, row)?);
                let found = if a == Scalar::Null { b } else { a };
                match (found, self.kind()) {
                    (Scalar::Int(value), Kind::Float) => Scalar::Float(value as f64),
                    (found, _) => found,
                }
            }
            Self::Binary(op, a, b) => {
                let kind = self.kind();
                let (a, b) = (a.of(id, row)?, b.of(id, row)?);
                match (a, b) {
                    (Scalar::Null, _) | (_, Scalar::Null) => Scalar::Null,
                    (Scalar::Int(a), Scalar::Int(b)) if kind == Kind::Int => Scalar::Int(match *op {
                        "add" => a.checked_add(b).ok_or(Bad)?,
                        "sub" => a.checked_sub(b).ok_or(Bad)?,
                        "mul" => a.checked_mul(b).ok_or(Bad)?,
                        "min" => a.min(b),
                        _ => a.max(b),
                    }),
                    (a, b) => {
                        let (a, b) = (float(&a), float(&b));
                        let result = match *op {
                            "add" => a + b,
                            "sub" => a - b,
                            "mul" => a * b,
                            "div" => a / b,
                            "min" => a.min(b),
                            _ => a.max(b),
                        };
                        if !result.is_finite() {
                            return Err(Bad);
                        }
                        Scalar::Float(result)
                    }
                }
            }
        })
    }
}

impl Condition {
    fn text(&self) -> String {
        match self {
            Self::Cmp(sign, a, b) => format!("({}) {sign} ({})", a.text(), b.text()),
            Self::Text(sign, word) => format!("t {sign} '{word}'"),
            Self::In(number, list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                format!("({}) in ({})", number.text(), list.join(", "))
            }
            Self::Null(number) => format!("({}) is null", number.text()),
            Self::Match(pattern) => format!("t ~ '{pattern}'"),
            Self::Flag => "b".to_owned(),
            Self::And(a, b) => format!("({}) and ({})", a.text(), b.text()),
            Self::Or(a, b) => format!("({}) or ({})", a.text(), b.text()),
            Self::Not(inner) => format!("not ({})", inner.text()),
        }
    }

    fn holds(&self, id: i64, row: &Row) -> Result<bool, Bad> {
        Ok(match self {
            Self::Cmp(sign, a, b) => match (a.of(id, row)?, b.of(id, row)?) {
                (Scalar::Null, _) | (_, Scalar::Null) => false,
                (Scalar::Int(a), Scalar::Int(b)) if self.is_whole() => compared(sign, &a, &b),
                (a, b) => compared(sign, &float(&a), &float(&b)),
            },
            Self::Text(sign, word) => row.2.as_deref().is_some_and(|text| compared(sign, text, word)),
            Self::In(number, list) => match number.of(id, row)? {
                Scalar::Null => false,
                value => list.iter().any(|item| float(&value) == *item as f64),
            },
            Self::Null(number) => number.of(id, row)? == Scalar::Null,
            Self::Match(pattern) => row.2.as_deref().is_some_and(|text| match *pattern {
                "^a" => text.starts_with('a'),
                _ => text.contains('b'),
            }),
            Self::Flag => row.3 == Some(true),
            Self::And(a, b) => a.holds(id, row)? & b.holds(id, row)?,
            Self::Or(a, b) => a.holds(id, row)? | b.holds(id, row)?,
            Self::Not(inner) => !inner.holds(id, row)?,
        })
    }

    fn is_whole(&self) -> bool {
        matches!(self, Self::Cmp(_, a, b) if a.kind() == Kind::Int && b.kind() == Kind::Int)
    }
}

fn float(value: &Scalar) -> f64 {
    match value {
        Scalar::Int(value) => *value as f64,
        Scalar::Float(value) => *value,
        other => panic!("{other}"),
    }
}

fn compared<T: PartialOrd + ?Sized>(sign: &str, a: &T, b: &T) -> bool {
    match sign {
        "==" => a == b,
        "!=" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        _ => a >= b,
    }
}

fn numbers() -> impl Strategy<Value = Number> {
    let leaf = prop_oneof![
        (-5_i64..5).prop_map(|value| Number::Const(Scalar::Int(value))),
        prop::sample::select(vec![0.5, -2.0, 0.0, 1e200, 3.25])
            .prop_map(|value| Number::Const(Scalar::Float(value))),
        Just(Number::Const(Scalar::Int(i64::MAX))),
        Just(Number::Const(Scalar::Null)),
        prop::sample::select(vec!["i", "f", "i", "f", "n", "id"]).prop_map(Number::Column),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let op = prop::sample::select(vec!["add", "sub", "mul", "div", "min", "max"]);
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Number::Binary(op, a.into(), b.into())),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Number::Coalesce(a.into(), b.into())),
            1 => inner.clone().prop_map(|a| Number::Neg(a.into())),
            1 => inner.prop_map(|a| Number::Abs(a.into())),
        ]
    })
}

fn conditions() -> impl Strategy<Value = Condition> {
    let sign = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        (sign(), numbers(), numbers()).prop_map(|(sign, a, b)| Condition::Cmp(sign, a, b)),
        (sign(), prop::sample::select(vec!["a", "ab", "", "b"]))
            .prop_map(|(sign, word)| Condition::Text(sign, word)),
        (numbers(), prop::collection::vec(-4_i64..4, 1..4))
            .prop_map(|(number, list)| Condition::In(number, list)),
        numbers().prop_map(Condition::Null),
        prop::sample::select(vec!["^a", "b"]).prop_map(Condition::Match),
        Just(Condition::Flag),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::And(a.into(), b.into())),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::Or(a.into(), b.into())),
            inner.prop_map(|a| Condition::Not(a.into())),
        ]
    })
}

fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    let float = prop::sample::select(vec![0.0, -0.0, 0.5, -3.0, 2.0, 1e200]);
    let row = (
        prop::option::weighted(0.8, -4_i64..4),
        prop::option::weighted(0.8, float),
        prop::option::weighted(0.8, "[ab]{0,2}"),
        prop::option::weighted(0.8, any::<bool>()),
    );
    prop::collection::vec(row, 0..12)
}

/// The rows in columns, with every third one put in between and filtered out again if they are to be a selection.
fn columns(rows: &[Row], is_selection: bool) -> Rows {
    let mut ids: Vec<i64> = (0..rows.len() as i64).collect();
    let mut rows = rows.to_vec();
    if is_selection {
        for at in (0..=rows.len()).rev().step_by(3) {
            ids.insert(at, -1);
            rows.insert(at, (Some(i64::MAX), Some(f64::MAX), Some("zz".into()), Some(true)));
        }
    }
    let typed = |kind, column: Column| {
        if column.kind() == Kind::Null { Column::nulls(kind, column.len()) } else { column }
    };
    let whole = Rows::new(ids)
        .unwrap()
        .with("i", typed(Kind::Int, Column::collect(rows.iter().map(|row| row.0)).unwrap()))
        .unwrap()
        .with("f", typed(Kind::Float, Column::collect(rows.iter().map(|row| row.1)).unwrap()))
        .unwrap()
        .with("t", typed(Kind::Text, Column::collect(rows.iter().map(|row| row.2.as_deref())).unwrap()))
        .unwrap()
        .with("b", typed(Kind::Bool, Column::collect(rows.iter().map(|row| row.3)).unwrap()))
        .unwrap()
        .with("n", Column::nulls(Kind::Null, rows.len()))
        .unwrap();
    whole.filter(&"id >= 0".parse().unwrap(), &Vars::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_expression_gives_what_one_gets_row_by_row(number in numbers(), rows in some_rows(), is_selection: bool) {
        let expr: Expr = number.text().parse().unwrap();
        let expected: Result<Vec<Scalar>, Bad> =
            rows.iter().enumerate().map(|(id, row)| number.of(id as i64, row)).collect();
        let found = expr.evaluate(&columns(&rows, is_selection), &Vars::default());
        match (found, expected) {
            (Ok(column), Ok(expected)) => {
                let found: Vec<Scalar> = (0..column.len()).filter_map(|at| column.get(at)).collect();
                prop_assert_eq!(found, expected, "{}", expr);
            }
            (found, expected) => prop_assert_eq!(found.is_err(), expected.is_err(), "{}: {:?}", expr, found),
        }
    }

    #[test]
    fn a_predicate_holds_where_it_does_row_by_row(condition in conditions(), rows in some_rows(), is_selection: bool) {
        let pred: Pred = condition.text().parse().unwrap();
        let expected: Result<Vec<bool>, Bad> =
            rows.iter().enumerate().map(|(id, row)| condition.holds(id as i64, row)).collect();
        let found = pred.evaluate(&columns(&rows, is_selection), &Vars::default());
        match (found, expected) {
            (Ok(found), Ok(expected)) => prop_assert_eq!(found, expected, "{}", pred),
            (found, expected) => prop_assert_eq!(found.is_err(), expected.is_err(), "{}: {:?}", pred, found),
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_is_the_same_as_its_tree(number in numbers(), condition in conditions()) {
        let expr: Expr = number.text().parse().unwrap();
        prop_assert_eq!(&expr.to_string().parse::<Expr>().unwrap(), &expr);
        prop_assert_eq!(&Expr::from_json(&number.tree()).unwrap(), &expr);
        let pred: Pred = condition.text().parse().unwrap();
        prop_assert_eq!(&pred.to_string().parse::<Pred>().unwrap(), &pred);
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "[-a-c0-9 ()'\"`$.,+*/<>=!~%é\\\\]{0,24}|(and|or|not|in|is|null|[(]|[)]|a|1| ){0,16}") {
        let _ = text.parse::<Expr>();
        let _ = text.parse::<Pred>();
    }
}
