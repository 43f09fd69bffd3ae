//! Stores: what is read, what is missing, and what is refused.

use ebbtide_rank::{Kind, Rows, Store, WrongType, demo};
use serde_json::json;

use super::{ids, scalars, values};

fn store() -> Store {
    Store::from_json(
        r#"{
            "user:1": {"age": 31, "country": "US", "id": 99},
            "user:2": {"country": "DE"},
            "follow:1": [2, 3],
            "media:2": [{"id": 20, "score": 1}, {"score": 0.5, "id": 21, "title": null}, 22],
            "media:-3": [{"id": 30, "title": "a"}],
            "media:4": []
        }"#,
    )
    .unwrap()
}

#[test]
fn a_hash_is_a_row_and_one_that_is_missing_is_a_row_of_nulls() {
    let (store, columns) = (store(), |rows: &Rows| {
        rows.columns().map(|(name, kind)| (name.to_string(), kind)).collect::<Vec<_>>()
    });
    let found = store.hash("user", 1).unwrap();
    assert_eq!(ids(&found), [1], "the id is that of the key");
    assert_eq!(columns(&found), [("age".to_owned(), Kind::Int), ("country".to_owned(), Kind::Text)]);
    assert_eq!(values(&store.hash("user", 2).unwrap(), "age"), scalars([None::<i64>]));
    let missing = store.hash("user", 7).unwrap();
    assert_eq!((ids(&missing), values(&missing, "country")), (vec![7], scalars([None::<&str>])));
    assert_eq!(columns(&missing), columns(&found));
    assert_eq!(ids(&store.hash("nobody", 7).unwrap()), [7]);
}

#[test]
fn lists_are_read_one_behind_the_other_and_those_that_are_missing_have_no_rows() {
    let store = store();
    let media = store.lists("media", &[-3, 9, 2, 4], 2).unwrap();
    assert_eq!(ids(&media), [30, 20, 21], "two of each at most");
    assert_eq!(values(&media, "score"), scalars([None, Some(1.0), Some(0.5)]));
    assert_eq!(values(&media, "title"), scalars([Some("a"), None, None]));
    assert_eq!(ids(&store.lists("media", &[2], 9).unwrap()), [20, 21, 22]);
    assert!(store.lists("nobody", &[1], 9).unwrap().is_empty());
    assert_eq!(store.len(), 6);
}

#[test]
fn a_hash_is_no_list_and_a_list_no_hash() {
    assert_eq!(store().hash("follow", 1), Err(WrongType { id: 1, wanted: "hash", found: "list" }));
    let error = store().lists("user", &[3, 2], 1).unwrap_err();
    assert_eq!(error.to_string(), "it holds a hash, and a list was asked for");
}

#[test]
fn a_store_is_read_from_a_text_or_from_a_value() {
    let (text, value) = (r#"{"media:1": [{"id": 1, "x": 2}]}"#, json!({"media:1": [{"id": 1, "x": 2}]}));
    let read = |store: Store| store.lists("media", &[1], 9).unwrap();
    assert_eq!(read(Store::from_json(text).unwrap()), read(Store::from_value(&value).unwrap()));
}

#[test]
fn what_cannot_be_put_into_a_store_is_told_with_its_key() {
    let table = [
        ("", "EOF while parsing"),
        ("[]", "expected an object with hashes and lists by key"),
        ("{} x", "trailing characters"),
        (r#"{"user": {}}"#, "key \"user\" is not a name and an id, such as \"user:1\""),
        (r#"{"user:x": {}}"#, "key \"user:x\" is not a name and an id"),
        (r#"{":1": {}}"#, "key \":1\" is not a name and an id"),
        (
            r#"{"user:1": 3}"#,
            "key \"user:1\": invalid type: integer `3`, expected a hash, which is an object, or a list",
        ),
        (r#"{"user:1": {}, "user:1": {}}"#, "key \"user:1\" is given twice"),
        (r#"{"user:1": {}, "user:1": []}"#, "key \"user:1\" is given twice"),
        (r#"{"user:1": [], "user:1": {}}"#, "key \"user:1\" is given twice"),
        (r#"{"user:1": {"a": []}}"#, "expected a string, a number, true, false or null for column \"a\""),
        (r#"{"user:1": {"a": 1, "a": 2}}"#, "key \"user:1\": a field is given twice"),
        (
            r#"{"user:1": {"a": 1}, "user:2": {"a": "x"}}"#,
            "key \"user:2\": column \"a\": a value is text, and the column is int",
        ),
        (r#"{"media:1": [{"a": 1}]}"#, "key \"media:1\": it has no `id`"),
        (r#"{"media:1": [{"id": "x"}]}"#, "key \"media:1\": invalid type: string \"x\", expected i64"),
        (r#"{"media:1": [{"id": 1, "id": 2}]}"#, "key \"media:1\": `id` is given twice"),
        (r#"{"media:1": ["x"]}"#, "expected an id, or an object with an `id` and fields"),
        (r#"{"media:1": [18446744073709551615]}"#, "the id 18446744073709551615 is too large"),
        (r#"{"media:1": [1"#, "key \"media:1\": EOF while parsing a list"),
    ];
    for (text, expected) in table {
        let error = Store::from_json(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn the_embedded_data_set_has_something_for_everybody() {
    let store = demo::store();
    assert_eq!(store.len(), 800);
    for user in 1..=200 {
        assert_eq!(ids(&store.hash("user", user).unwrap()), [user]);
        let [follows, recommended] =
            ["follow", "recommendation"].map(|name| ids(&store.lists(name, &[user], 100).unwrap()));
        let mut all: Vec<_> = follows.iter().chain(&recommended).collect();
        all.sort_unstable();
        assert!(all.is_sorted_by(|one, other| one < other), "{user} would see the same posts twice");
        for name in ["follow", "recommendation"] {
            let others = ids(&store.lists(name, &[user], 100).unwrap());
            assert!(others.iter().all(|other| (1..=200).contains(other) && *other != user), "{name} {user}");
        }
        assert!(store.lists("media", &[user], 100).unwrap().len() >= 3);
    }
}
