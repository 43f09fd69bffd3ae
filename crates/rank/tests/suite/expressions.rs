//! Expressions: how they are read, the rules of null, and what goes wrong.

use ebbtide_rank::{Column, Expr, Kind, Pred, Request, Rows, Scalar, Vars};
use serde_json::json;

use super::{ids, scalars};

/// Rows with a column of each kind, whose second values are null.
fn rows() -> Rows {
    Rows::new(vec![10, 20, 30])
        .unwrap()
        .with("int", Column::collect([Some(2), None, Some(-3)]).unwrap())
        .unwrap()
        .with("float", Column::collect([Some(0.5), None, Some(4.0)]).unwrap())
        .unwrap()
        .with("flag", Column::collect([Some(true), None, Some(false)]).unwrap())
        .unwrap()
        .with("text", Column::collect([Some("apple"), None, Some("pear")]).unwrap())
        .unwrap()
        .with("none", Column::nulls(Kind::Null, 3))
        .unwrap()
}

fn value(text: &str) -> Vec<Scalar> {
    let expr: Expr = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let column = expr.evaluate(&rows(), &vars()).unwrap_or_else(|error| panic!("{text}: {error}"));
    (0..3).filter_map(|row| column.get(row)).collect()
}

fn kept(text: &str) -> Vec<i64> {
    let pred: Pred = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    ids(&rows().filter(&pred, &vars()).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn vars() -> Vars {
    let mut vars = Vars::default();
    vars.set("two", 2);
    vars.set("word", "pear");
    vars
}

fn failure(text: &str) -> String {
    let failed = match text.parse::<Expr>() {
        Ok(expr) => expr.evaluate(&rows(), &vars()).map(drop).expect_err(text),
        Err(_) => text.parse::<Pred>().expect(text).evaluate(&rows(), &vars()).map(drop).expect_err(text),
    };
    failed.to_string()
}

#[test]
fn what_is_calculated_with_null_is_null() {
    let table = [
        ("int + 1", scalars([Some(3), None, Some(-2)])),
        ("int * float", scalars([Some(1.0), None, Some(-12.0)])),
        ("-int", scalars([Some(-2), None, Some(3)])),
        ("abs(int)", scalars([Some(2), None, Some(3)])),
        ("int / 2", scalars([Some(1.0), None, Some(-1.5)])),
        ("min(int, 0)", scalars([Some(0), None, Some(-3)])),
        ("max(int, float)", scalars([Some(2.0), None, Some(4.0)])),
        ("none + 1", scalars([None::<i64>; 3])),
        ("null * int", scalars([None::<i64>; 3])),
        ("$nobody + 1", scalars([None::<i64>; 3])),
        ("coalesce(int, 7)", scalars([2, 7, -3])),
        ("coalesce(none, int, float)", scalars([Some(2.0), None, Some(-3.0)])),
        ("coalesce(text, 'none')", scalars(["apple", "none", "pear"])),
        ("coalesce(flag, true)", scalars([true, true, false])),
        ("coalesce(none)", scalars([None::<i64>; 3])),
    ];
    for (text, expected) in table {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn a_comparison_with_null_does_not_hold_and_its_opposite_does() {
    let table: [(&str, &[i64]); 26] = [
        ("int == 2", &[10]),
        ("int != 2", &[30]),
        ("not int == 2", &[20, 30]),
        ("int < 100", &[10, 30]),
        ("int == null", &[]),
        ("null == null", &[]),
        ("int == none", &[]),
        ("int is null", &[20]),
        ("int is not null", &[10, 30]),
        ("none is null", &[10, 20, 30]),
        ("1 is null", &[]),
        ("int in (2, 5)", &[10]),
        ("int not in (2, 5)", &[20, 30]),
        ("float in (4)", &[30]),
        ("int in (2.0, 0.5)", &[10]),
        ("text in ('pear', 'plum')", &[30]),
        ("flag in (false)", &[30]),
        ("text ~ '^a'", &[10]),
        ("text !~ '^a'", &[20, 30]),
        ("flag", &[10]),
        ("not flag", &[20, 30]),
        ("none", &[]),
        ("text >= 'b'", &[30]),
        ("flag == false", &[30]),
        ("int < float and flag is not null", &[30]),
        ("text == $word or int == $two", &[10, 30]),
    ];
    for (text, expected) in table {
        assert_eq!(kept(text), expected, "{text}");
    }
}

#[test]
fn signs_bind_as_in_arithmetic_and_what_is_written_is_read_again() {
    let table = [
        ("1 + 2 * 3 - 4", "1 + 2 * 3 - 4"),
        ("(1+2)*3", "(1 + 2) * 3"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("1-2-3", "1 - 2 - 3"),
        ("8/4/2", "8 / 4 / 2"),
        ("-(a+1)*-2", "-(a + 1) * -2"),
        ("- - a", "--a"),
        ("-(3)", "-(3)"),
        ("`a b` + `and` + $`x y`", "`a b` + `and` + $`x y`"),
        ("COALESCE(a, 1e3)", "coalesce(a, 1000.0)"),
        ("'it\\'s' ", "'it\\'s'"),
        ("\"it's\"", "'it\\'s'"),
        (".5", "0.5"),
    ];
    for (text, expected) in table {
        let expr: Expr = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expr.to_string(), expected, "{text}");
        assert_eq!(expected.parse(), Ok(expr), "{text}");
    }
    let table = [
        ("a == 1 or b and not c", "a == 1 or b and not c"),
        ("(a or b) and c", "(a or b) and c"),
        ("not (a and b)", "not (a and b)"),
        ("not not a", "not not a"),
        ("(a and b) and (c and d)", "a and b and c and d"),
        ("a = 1 AND b <> 2", "a == 1 and b != 2"),
        ("a not in ('x', 'b')", "not a in ('b', 'x')"),
        ("a is not null", "not a is null"),
        ("a + 1 > (b)", "a + 1 > b"),
        ("a ~ '^x'", "a ~ '^x'"),
    ];
    for (text, expected) in table {
        let pred: Pred = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(pred.to_string(), expected, "{text}");
        assert_eq!(expected.parse(), Ok(pred), "{text}");
    }
}

#[test]
fn a_backslash_reaches_the_pattern_as_it_is_written() {
    let rows = Rows::new(vec![1, 2]).unwrap().with("t", Column::texts(["a1", "ab"])).unwrap();
    for text in ["t ~ '\\d'", "t ~ '\\\\d'"] {
        let pred: Pred = text.parse().unwrap();
        assert_eq!(ids(&rows.filter(&pred, &Vars::default()).unwrap()), [1], "{text}");
        assert_eq!(pred.to_string().parse(), Ok(pred), "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_column() {
    let long = format!("{}1", "1 + ".repeat(200));
    let nested = format!("{}1{}", "(".repeat(200), ")".repeat(200));
    let table = [
        ("", "expected a value, got the end at column 1"),
        ("score * * 2", "expected a value, got \"*\" at column 9"),
        ("score * 2 3", "expected an operator or the end, got 3 at column 11"),
        ("(a + 1", "expected \")\", got the end at column 7"),
        ("é + §", "unexpected '§' at column 5"),
        ("'abc", "the ' that closes it is missing at column 1"),
        ("a + $", "a name is missing after \"$\" at column 5"),
        ("1e999", "\"1e999\" is too large a number at column 1"),
        ("12abc", "\"12\" is followed by a letter: put a space or a sign between at column 1"),
        ("mni(a, b)", "there is no function \"mni\" (did you mean \"min\"?) at column 1"),
        ("1 + min(a)", "\"min\" takes 2 values, got 1 at column 5"),
        ("coalesce()", "\"coalesce\" takes 1 or more, got 0 at column 1"),
        ("a > 1", "expected a value, got a condition at column 1"),
        ("1 + (a > 1)", "expected a value, got a condition at column 5"),
        ("a % 2", "expected an operator or the end, got \"%\" at column 3"),
        (&long, "it is nested more than 128 levels deep at column 1"),
        (&nested, "it is nested more than 128 levels deep at column 129"),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse::<Expr>().expect_err(text).to_string(), expected, "{text}");
    }
    let table = [
        ("a + 1", "expected a condition, got the value a + 1 at column 1"),
        ("a > 1 and 'x'", "expected a condition, got the value 'x' at column 11"),
        ("a < b < c", "comparisons do not follow each other: join them with \"and\" at column 7"),
        ("a is 3", "expected \"null\", got 3 at column 6"),
        ("a not 3", "expected \"in\", got 3 at column 7"),
        ("a in (1, 'x')", "a list has values of one kind, and no null at column 6"),
        ("a in (1, null)", "a list has values of one kind, and no null at column 6"),
        ("a in (b)", "a list has constants only at column 7"),
        ("a in ()", "expected a value, got \")\" at column 7"),
        ("a ~ b", "expected a pattern in quotes, got \"b\" at column 5"),
        ("a ~ '(['", "'([' is no regular expression: unclosed character class at column 5"),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse::<Pred>().expect_err(text).to_string(), expected, "{text}");
    }
    let chain = vec!["a > 1"; 5000].join(" or ");
    assert!(chain.parse::<Pred>().is_ok(), "a long chain is not a deep one");
    let chain = vec!["a"; 300_000].join(" and ");
    assert!(chain.parse::<Pred>().is_ok(), "and is read in one go");
}

#[test]
fn trees_are_what_their_short_forms_are() {
    let table = [
        (json!(1.5), "1.5"),
        (json!(null), "null"),
        (json!("a + 1"), "a + 1"),
        (json!({"op": "const_number", "value": 2}), "2"),
        (json!({"op": "const_string", "value": "x"}), "'x'"),
        (json!({"op": "const_bool", "value": true}), "true"),
        (json!({"op": "const_null"}), "null"),
        (json!({"op": "key_ref", "key": "score"}), "score"),
        (json!({"op": "column", "name": "score"}), "score"),
        (json!({"op": "param", "name": "boost"}), "$boost"),
        (json!({"op": "add", "a": {"op": "mul", "a": "score", "b": 0.5}, "b": 10}), "score * 0.5 + 10"),
        (json!({"op": "sub", "a": 1, "b": {"op": "div", "a": "x", "b": "y + 1"}}), "1 - x / (y + 1)"),
        (json!({"op": "neg", "a": "x"}), "-x"),
        (
            json!({"op": "abs", "a": {"op": "min", "a": "x", "b": {"op": "max", "a": 1, "b": 2}}}),
            "abs(min(x, max(1, 2)))",
        ),
        (json!({"op": "coalesce", "a": "x", "b": 0}), "coalesce(x, 0)"),
    ];
    for (tree, text) in table {
        assert_eq!(Expr::from_json(&tree), text.parse(), "{tree}");
    }
    let table = [
        (json!("a > 1"), "a > 1"),
        (json!({"op": "cmp", "cmp": ">=", "a": "age", "b": 18}), "age >= 18"),
        (json!({"op": "cmp", "cmp": "ne", "a": "age", "b": 18}), "age != 18"),
        (json!({"op": "in", "a": "country", "list": ["US", "DE"]}), "country in ('US', 'DE')"),
        (json!({"op": "is_null", "a": "x"}), "x is null"),
        (json!({"op": "not_null", "a": "x"}), "x is not null"),
        (json!({"op": "and", "a": "x > 1", "b": {"op": "or", "a": "y", "b": "z"}}), "x > 1 and (y or z)"),
        (json!({"op": "not", "a": {"op": "regex", "a": "t", "pattern": "^a.*"}}), "t !~ '^a.*'"),
        (json!({"op": "const_bool", "value": false}), "false"),
    ];
    for (tree, text) in table {
        assert_eq!(Pred::from_json(&tree), text.parse(), "{tree}");
    }
}

#[test]
fn a_mistake_in_a_tree_is_told_with_its_way() {
    let table = [
        (json!([1]), "expected an expression, got a list at column 1"),
        (json!({"a": 1}), "it has no `op` at column 1"),
        (
            json!({"op": "ad", "a": 1, "b": 2}),
            "there is no op \"ad\" here (did you mean \"add\"?) at column 1",
        ),
        (json!({"op": "add", "a": 1}), "it has no `b` at column 1"),
        (json!({"op": "add", "a": 1, "b": 2, "c": 3}), "there is no field \"c\" at column 1"),
        (
            json!({"op": "add", "a": {"op": "neg", "a": "1 +"}, "b": 2}),
            "`a.a`: expected a value, got the end at column 4 at column 1",
        ),
        (json!({"op": "const_number", "value": "2"}), "`value`: expected a number, got \"2\" at column 1"),
        (json!({"op": "column", "name": 3}), "`name`: expected a string, got 3 at column 1"),
        (json!({"op": "cmp", "cmp": "==", "a": 1, "b": 1}), "there is no op \"cmp\" here at column 1"),
    ];
    for (tree, expected) in table {
        assert_eq!(Expr::from_json(&tree).expect_err(expected).to_string(), expected, "{tree}");
    }
    let table = [
        (json!(3), "expected a predicate, got 3 at column 1"),
        (
            json!({"op": "cmp", "cmp": "=>", "a": 1, "b": 1}),
            "`cmp`: expected one of \"eq\", \"ne\", \"lt\", \"le\", \"gt\", \"ge\", got \"=>\" at column 1",
        ),
        (json!({"op": "in", "a": "x", "list": 3}), "`list`: expected a list, got 3 at column 1"),
        (
            json!({"op": "in", "a": "x", "list": []}),
            "`list`: a list has values of one kind, and no null at column 1",
        ),
        (
            json!({"op": "regex", "a": "x", "pattern": "("}),
            "`pattern`: '(' is no regular expression: unclosed group at column 1",
        ),
    ];
    for (tree, expected) in table {
        assert_eq!(Pred::from_json(&tree).expect_err(expected).to_string(), expected, "{tree}");
    }
    let deep = (0..300).fold(json!(1), |tree, _| json!({"op": "neg", "a": tree}));
    assert!(Expr::from_json(&deep).unwrap_err().message.contains("128 levels"));
}

#[test]
fn what_cannot_be_evaluated_is_told_with_the_row_or_the_column() {
    let table = [
        ("1 / (int - 2)", "`1 / (int - 2)` is not a finite number for the row with id 10"),
        ("float + 1 / (int + 3)", "`1 / (int + 3)` is not a finite number for the row with id 30"),
        ("1e308 * float * 10", "`1e308 * float` is not a finite number for the row with id 30"),
        (
            "int * 9223372036854775807",
            "`int * 9223372036854775807` does not fit into 64 bits for the row with id 10",
        ),
        ("txt", "there is no column \"txt\" (did you mean \"text\"?)"),
        ("text + 1", "`text + 1` needs numbers, but text is text"),
        ("-flag", "`-flag` needs numbers, but flag is bool"),
        (
            "coalesce(int, text)",
            "`coalesce(int, text)` needs values of one kind, but text is text, and what is before it int",
        ),
        ("int > 'a'", "`int > 'a'` needs two values of one kind, but int is int, and 'a' is text"),
        ("text in (1)", "`text in (1)` needs two values of one kind, but text is text, and the list is not"),
        ("int ~ 'a'", "`int ~ 'a'` needs text, but int is int"),
        ("not int", "`int` needs true or false, but int is int"),
        ("int > 1 and 1 / (int - 2) > 0", "`1 / (int - 2)` is not a finite number for the row with id 10"),
    ];
    for (text, expected) in table {
        assert_eq!(failure(text), expected, "{text}");
    }
}

#[test]
fn a_row_that_is_null_is_no_reason_to_fail() {
    let rows = Rows::new(vec![1, 2]).unwrap().with("x", Column::collect([None, Some(2)]).unwrap()).unwrap();
    let column = "1 / x".parse::<Expr>().unwrap().evaluate(&rows, &Vars::default()).unwrap();
    assert_eq!(column, Column::collect([None, Some(0.5)]).unwrap(), "what lies under a null is a zero");
}

#[test]
fn of_no_rows_any_column_can_be_asked_for() {
    let (expr, pred): (Expr, Pred) = ("nobody * 1 / 0".parse().unwrap(), "nobody > 1".parse().unwrap());
    let rows = Rows::default().compute("x", &expr, &Vars::default()).unwrap();
    assert!(rows.filter(&pred, &Request::new(1).params).unwrap().is_empty());
}
