//! Requests: what is read, and what is refused.

use ebbtide_rank::{Request, Scalar, Vars};

#[test]
fn a_request_has_a_user_and_may_have_more() {
    let request =
        Request::from_json(r#"{"user_id": 7, "request_id": "a", "params": {"x": 1, "y": null}}"#).unwrap();
    assert_eq!((request.user_id, &*request.request_id), (7, "a"));
    assert_eq!(request.params.get("x"), Some(&Scalar::Int(1)));
    assert_eq!(request.params.get("y"), Some(&Scalar::Null));
    assert_eq!(&*Request::from_json(r#"{"user_id": 7, "request_id": 12}"#).unwrap().request_id, "12");
    assert_ne!(
        Request::new(1).request_id,
        Request::new(1).request_id,
        "no two have the same id by themselves"
    );
}

#[test]
fn what_is_wrong_with_a_request_is_told() {
    let long = format!("{{\"user_id\": \"{}\"}}", "x".repeat(1 << 20));
    let table = [
        ("", "the request is not JSON: EOF while parsing a value at line 1 column 0"),
        ("{\"user_id\": 1", "the request is not JSON: EOF while parsing an object at line 1 column 13"),
        ("[1]", "expected an object such as {\"user_id\": 1}, got a list"),
        ("{}", "the request has no `user_id`: say whom it is for"),
        ("{\"user_id\": 1.5}", "`user_id` of the request: expected a whole number, got 1.5"),
        (
            "{\"user_id\": 1, \"request_id\": []}",
            "`request_id` of the request: expected a string, got a list",
        ),
        ("{\"user_id\": 1, \"params\": 3}", "`params` of the request: expected an object, got 3"),
        (
            "{\"user_id\": 1, \"params\": {\"x\": {}}}",
            "`params.x` of the request: expected a string, a number, true, false or null, got an object",
        ),
        ("{\"usr_id\": 1}", "the request has no field \"usr_id\" (did you mean \"user_id\"?)"),
        (
            &long,
            "`user_id` of the request: expected a whole number, got \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(Request::from_json(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn parameters_come_from_a_command_line_too() {
    let mut vars = Vars::default();
    for text in ["boost=2", "country=US", "share=0.5", "empty=", "a=b=c"] {
        vars.set_from(text).unwrap();
    }
    let expected = [
        ("a", "b=c".into()),
        ("boost", 2.into()),
        ("country", "US".into()),
        ("empty", "".into()),
        ("share", 0.5.into()),
    ];
    let found: Vec<(&str, Scalar)> = vars.iter().map(|(name, value)| (&**name, value.clone())).collect();
    assert_eq!(found, expected);
    for text in ["boost", "=2", " =2", ""] {
        let error = vars.set_from(text).unwrap_err().to_string();
        assert_eq!(error, format!("expected a parameter such as boost=2, got {text:?}"));
    }
}
