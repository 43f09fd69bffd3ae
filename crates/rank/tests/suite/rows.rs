//! Rows: what they hold, and what is done with them.

use ebbtide_rank::{Column, Expr, Fields, Kind, Order, Pred, Rows, Scalar, ShapeError, UnknownColumn, Vars};
use proptest::prelude::*;

use super::{ids, scalars, values};

fn pred(text: &str) -> Pred {
    text.parse().unwrap()
}

fn expr(text: &str) -> Expr {
    text.parse().unwrap()
}

/// Five rows, some of whose values are null.
fn some() -> Rows {
    Rows::new(vec![1, 2, 3, 4, 5])
        .unwrap()
        .with("likes", Column::collect([Some(3), None, Some(1), Some(3), None]).unwrap())
        .unwrap()
        .with("title", Column::collect([Some("b"), Some("a"), None, Some("c"), Some("a")]).unwrap())
        .unwrap()
}

#[test]
fn a_column_has_a_value_for_each_row_and_a_name_of_its_own() {
    let rows = Rows::new(vec![1, 2]).unwrap();
    let error = rows.clone().with("x", Column::ints(vec![1])).unwrap_err();
    assert_eq!(error.to_string(), "column \"x\" has 1 values for 2 rows");
    let error = rows.clone().with("id", Column::ints(vec![1, 2])).unwrap_err();
    assert_eq!(error.to_string(), "a column cannot be called \"id\": the ids are that");
    let rows = rows.with("x", Column::ints(vec![1, 2])).unwrap();
    let error = rows.with("x", Column::floats(vec![0.5, 1.5])).unwrap_err();
    assert_eq!(error, ShapeError::Taken { column: "x".into() });
}

#[test]
fn a_column_takes_nulls_and_one_kind_and_whole_numbers_become_numbers() {
    let column = Column::collect([Scalar::Null, Scalar::Int(2), Scalar::Float(0.5), Scalar::Int(7)]).unwrap();
    assert_eq!(column.kind(), Kind::Float);
    let expected = [Scalar::Null, Scalar::Float(2.0), Scalar::Float(0.5), Scalar::Float(7.0)];
    assert_eq!((0..4).filter_map(|at| column.get(at)).collect::<Vec<_>>(), expected);
    assert_eq!(column.get(4), None);
    let error = Column::collect([Scalar::Int(2), "two".into()]).unwrap_err();
    assert_eq!(error.to_string(), "a value is text, and the column is int");
    assert_eq!(Column::collect([Scalar::Null, Scalar::Null]).unwrap().kind(), Kind::Null);
}

#[test]
fn a_filter_keeps_rows_in_their_order_and_columns_as_they_are() {
    let rows = some();
    let kept = rows.filter(&pred("title != 'b'"), &Vars::default()).unwrap();
    assert_eq!(ids(&kept), [2, 4, 5]);
    assert_eq!(values(&kept, "likes"), scalars([None, Some(3), None]));
    let again = kept.filter(&pred("likes is null"), &Vars::default()).unwrap();
    assert_eq!(ids(&again), [2, 5], "of a selection");
    assert_eq!(ids(&rows), [1, 2, 3, 4, 5], "what was filtered is as it was");
}

#[test]
fn a_computed_column_is_last_or_in_the_place_of_the_one_it_replaces() {
    let vars = Vars::default();
    let rows = some().compute("twice", &expr("likes * 2"), &vars).unwrap();
    assert_eq!(values(&rows, "twice"), scalars([Some(6), None, Some(2), Some(6), None]));
    let rows = rows.compute("likes", &expr("likes + 0.5"), &vars).unwrap();
    let columns: Vec<_> = rows.columns().map(|(name, kind)| (&**name, kind)).collect();
    assert_eq!(columns, [("likes", Kind::Float), ("title", Kind::Text), ("twice", Kind::Int)]);
    let error = rows.compute("id", &expr("1"), &vars).unwrap_err();
    assert_eq!(error.to_string(), "\"id\" cannot be computed: choose another column");
}

#[test]
fn what_is_computed_for_a_selection_stands_beside_its_rows() {
    let vars = Vars::default();
    let kept = some().filter(&pred("likes == 3"), &vars).unwrap();
    let computed = kept.compute("x", &expr("id * 10"), &vars).unwrap();
    assert_eq!(values(&computed, "x"), scalars([10, 40]));
    assert_eq!(values(&computed, "title"), scalars(["b", "c"]));
}

#[test]
fn a_sort_is_stable_and_nulls_are_last_both_ways() {
    let rows = some();
    assert_eq!(ids(&rows.sort("likes", Order::Ascending).unwrap()), [3, 1, 4, 2, 5]);
    assert_eq!(ids(&rows.sort("likes", Order::Descending).unwrap()), [1, 4, 3, 2, 5]);
    assert_eq!(ids(&rows.sort("title", Order::Ascending).unwrap()), [2, 5, 1, 4, 3]);
    assert_eq!(ids(&rows.sort("title", Order::Descending).unwrap()), [4, 1, 2, 5, 3]);
    assert_eq!(ids(&rows.sort("id", Order::Descending).unwrap()), [5, 4, 3, 2, 1]);
    let zeros = Rows::new(vec![1, 2, 3]).unwrap().with("x", Column::floats(vec![0.0, -0.0, -1.0])).unwrap();
    assert_eq!(ids(&zeros.sort("x", Order::Ascending).unwrap()), [3, 1, 2], "both zeros are alike");
}

#[test]
fn a_column_that_is_not_there_is_told_with_the_nearest() {
    let error = some().sort("tilte", Order::Ascending).unwrap_err();
    assert_eq!(error.to_string(), "there is no column \"tilte\" (did you mean \"title\"?)");
    let error: UnknownColumn = some().sort("country", Order::Ascending).unwrap_err();
    assert_eq!(error.to_string(), "there is no column \"country\" (there are \"likes\", \"title\")");
    assert!(Rows::default().sort("country", Order::Ascending).is_ok(), "of no rows nothing is known");
}

#[test]
fn take_gives_as_many_as_there_are() {
    let rows = some();
    assert_eq!(ids(&rows.clone().take(2)), [1, 2]);
    assert_eq!(ids(&rows.clone().take(9)).len(), 5);
    assert_eq!(ids(&rows.sort("id", Order::Descending).unwrap().take(2)), [5, 4]);
    assert!(rows.take(0).is_empty());
}

#[test]
fn concat_has_the_columns_of_all_and_null_where_one_had_it_not() {
    let a = some().filter(&pred("id <= 2"), &Vars::default()).unwrap();
    let b = Rows::new(vec![9])
        .unwrap()
        .with("score", Column::floats(vec![0.5]))
        .unwrap()
        .with("title", Column::texts(["z"]))
        .unwrap();
    let joined = Rows::concat(&[&a, &Rows::default(), &b]).unwrap();
    assert_eq!(ids(&joined), [1, 2, 9]);
    let names: Vec<_> = joined.columns().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["likes", "title", "score"]);
    assert_eq!(values(&joined, "likes"), scalars([Some(3), None, None]));
    assert_eq!(values(&joined, "title"), scalars(["b", "a", "z"]));
    assert_eq!(values(&joined, "score"), scalars([None, None, Some(0.5)]));
}

#[test]
fn concat_joins_whole_numbers_with_others_and_refuses_what_does_not_go_together() {
    let column = |column| Rows::new(vec![1]).unwrap().with("x", column).unwrap();
    let numbers = [column(Column::ints(vec![2])), column(Column::floats(vec![0.5]))];
    assert_eq!(values(&Rows::concat(&numbers).unwrap(), "x"), scalars([2.0, 0.5]));
    let clash = [column(Column::texts(["a"])), column(Column::ints(vec![2]))];
    let error = Rows::concat(&clash).unwrap_err();
    assert_eq!(error.to_string(), "column \"x\" is text in one input and int in another: rename one of them");
    let nulls = [
        column(Column::nulls(Kind::Null, 1)),
        column(Column::nulls(Kind::Text, 1)),
        column(Column::texts(["a"])),
    ];
    assert_eq!(values(&Rows::concat(&nulls).unwrap(), "x"), scalars([None, None, Some("a")]));
    assert!(Rows::concat::<Rows>(&[]).unwrap().is_empty());
}

#[test]
fn declared_columns_are_there_in_order_and_of_their_kind() {
    let fields =
        Fields::default().field("title", Kind::Text).field("age", Kind::Int).field("likes", Kind::Float);
    let rows = some().project(&fields).unwrap();
    let columns: Vec<_> = rows.columns().map(|(name, kind)| (&**name, kind)).collect();
    assert_eq!(columns, [("title", Kind::Text), ("age", Kind::Int), ("likes", Kind::Float)]);
    assert_eq!(values(&rows, "age"), scalars([None::<i64>; 5]));
    let error = some().project(&Fields::default().field("title", Kind::Int)).unwrap_err();
    assert_eq!(error.to_string(), "column \"title\" is text, and was declared as int");
}

#[test]
fn rows_are_written_as_candidates_with_fields() {
    let rows = Rows::new(vec![7, -1])
        .unwrap()
        .with("tit\"le", Column::texts(["a \"b\"\n", "é"]))
        .unwrap()
        .with("score", Column::floats(vec![1.0, 1e300]))
        .unwrap()
        .with("new", Column::collect([Some(true), None]).unwrap())
        .unwrap();
    let expected = concat!(
        r#"{"request_id":"r\\1","candidates":[{"id":7,"fields":{"tit\"le":"a \"b\"\n","score":1.0,"new":true}},"#,
        r#"{"id":-1,"fields":{"tit\"le":"é","score":1e+300,"new":null}}]}"#
    );
    assert_eq!(rows.to_json("r\\1"), expected);
    assert_eq!(Rows::default().to_json(""), r#"{"request_id":"","candidates":[]}"#);
    let selected = rows.sort("id", Order::Ascending).unwrap().take(1);
    assert!(selected.to_json("").contains("[{\"id\":-1,"), "of a selection");
    let not_finite = Rows::new(vec![1]).unwrap().with("x", Column::floats(vec![f64::NAN])).unwrap();
    assert!(not_finite.to_json("").ends_with("{\"x\":null}}]}"));
}

proptest! {
    /// The order that a stable sort of the standard library gives.
    #[test]
    fn a_sort_gives_the_order_of_a_stable_one(
        keys in prop::collection::vec(prop::option::weighted(0.8, -3_i64..3), 0..40),
        descending: bool,
        column in 0..4,
        count in 0..45_usize,
    ) {
        let rows = Rows::new((0..keys.len() as i64).collect()).unwrap();
        let column = match column {
            0 => Column::collect(keys.iter().copied()),
            1 => Column::collect(keys.iter().map(|key| key.map(|key| key as f64 / 2.0))),
            2 => Column::collect(keys.iter().map(|key| key.map(|key| Scalar::from(&*((key + 3).to_string()))))),
            _ => Column::collect(keys.iter().map(|key| key.map(|key| key > 0))),
        };
        let is_bool = column.as_ref().is_ok_and(|column| column.kind() == Kind::Bool);
        let rows = rows.with("key", column.unwrap()).unwrap();
        let key = |key: i64| if is_bool { i64::from(key > 0) } else { key };
        let mut expected: Vec<i64> = (0..keys.len() as i64).collect();
        expected.sort_by(|a, b| match (keys[*a as usize], keys[*b as usize]) {
            (Some(a), Some(b)) if descending => key(b).cmp(&key(a)),
            (Some(a), Some(b)) => key(a).cmp(&key(b)),
            (a, b) => a.is_none().cmp(&b.is_none()),
        });
        let order = if descending { Order::Descending } else { Order::Ascending };
        prop_assert_eq!(&ids(&rows.sort("key", order).unwrap()), &expected);
        expected.truncate(count);
        prop_assert_eq!(ids(&rows.top("key", order, count).unwrap()), expected, "the first of them");
    }

    /// Value by value, whatever was selected of whichever rows before.
    #[test]
    fn concat_gives_each_value_of_each_part_in_order(
        parts in prop::collection::vec(
            (prop::collection::vec((0_i64..9, prop::option::of("[a-c]{0,2}"), prop::option::of(-9_i64..9)), 0..6), any::<bool>()),
            0..5,
        ),
        shared: bool,
    ) {
        let parts: Vec<Rows> = parts
            .into_iter()
            .map(|(rows, has_number)| {
                let ids = rows.iter().map(|(id, ..)| *id).collect();
                let texts = rows.iter().map(|(_, text, _)| Scalar::from(text.as_deref()));
                let built = Rows::new(ids).unwrap().with("text", Column::collect(texts).unwrap()).unwrap();
                let numbers = rows.iter().map(|(.., number)| *number);
                let built = if has_number { built.with("number", Column::collect(numbers).unwrap()).unwrap() } else { built };
                built.filter(&pred("id != 4"), &Vars::default()).unwrap()
            })
            .collect();
        let parts = if shared { parts.iter().take(1).cycle().take(3).cloned().collect() } else { parts };
        let joined = Rows::concat(&parts).unwrap();
        let mut row = 0;
        for part in &parts {
            for nth in 0..part.len() {
                prop_assert_eq!(joined.ids().nth(row), part.ids().nth(nth));
                for (column, _) in joined.columns() {
                    prop_assert_eq!(joined.get(row, column).unwrap(), part.get(nth, column).unwrap_or_default());
                }
                row += 1;
            }
        }
        prop_assert_eq!(joined.len(), row);
    }
}

#[test]
fn texts_and_names_are_escaped_where_they_have_to_be() {
    let texts = ["plain", "a \"quote\"", "back\\slash", "line\nbreak", "\u{1f}", "Größe", "ends with \\"];
    for text in texts {
        let rows = Rows::new(vec![1]).unwrap().with(text, Column::texts([text])).unwrap();
        let json: serde_json::Value = serde_json::from_str(&rows.to_json(text)).expect(text);
        assert_eq!(
            (json["request_id"].as_str(), json["candidates"][0]["fields"][text].as_str()),
            (Some(text), Some(text))
        );
    }
}
