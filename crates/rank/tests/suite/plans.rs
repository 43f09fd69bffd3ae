//! The plans of the repository: the good ones run, and every mistake of the bad ones is told.

use std::{collections::BTreeMap, fs, path::PathBuf};

use ebbtide_rank::{Endpoints, Request, Scalar};

use super::{Site, values};

/// The plans of a folder, by name.
fn plans(folder: &str) -> BTreeMap<String, String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files
        .map(|path| {
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn each_good_plan_answers_its_sample_request_on_the_embedded_data_set() {
    let site = Site::new(Endpoints::demo());
    let plans = plans("plans");
    assert_eq!(plans.keys().collect::<Vec<_>>(), ["feed", "hello", "late", "wide"]);
    for (name, text) in plans {
        let plan = site.plan(&text);
        assert_eq!(plan.name(), name);
        assert!(plan.warnings().is_empty(), "{:?}", plan.warnings());
        let request = Request::from_value(plan.sample_request().unwrap()).unwrap();
        let expected = match &*name {
            "late" => Err("R003 node \"slow\" timed out after 50ms".to_owned()),
            "hello" => Ok(2),
            "wide" => Ok(16),
            _ => Ok(10),
        };
        let answer = site.run(&text, request).map(|rows| rows.len()).map_err(|error| error.to_string());
        assert_eq!(answer, expected, "{name}");
    }
}

#[test]
fn the_feed_of_every_user_is_sorted_and_fresh_also_of_one_whom_nobody_knows() {
    let (site, feed) = (Site::new(Endpoints::demo()), &plans("plans")["feed"]);
    for user in 1..=201 {
        let mut request = Request::new(user);
        request.params.set("max_age_hours", 24);
        let rows = site.run(feed, request).unwrap();
        assert_eq!(rows.is_empty(), user == 201, "{user}");
        let number = |value: Scalar| match value {
            Scalar::Float(number) => number,
            Scalar::Int(number) => number as f64,
            other => panic!("{other}"),
        };
        if !rows.is_empty() {
            let ranks: Vec<f64> = values(&rows, "rank").into_iter().map(number).collect();
            assert!(ranks.is_sorted_by(|a, b| a >= b), "{ranks:?}");
            assert!(values(&rows, "age_hours").into_iter().map(number).all(|age| age <= 24.0));
        }
    }
}

#[test]
fn hello_is_answered_to_the_letter() {
    let site = Site::new(Endpoints::demo());
    let rows = site.run(&plans("plans")["hello"], Request::new(1)).unwrap();
    let expected = concat!(
        r#"{"request_id":"hello","candidates":[{"id":1,"fields":{"title":"hello","likes":20,"twice":40}},"#,
        r#"{"id":2,"fields":{"title":"world","likes":null,"twice":null}}]}"#
    );
    // What a plan says in an object may be read in any order.
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parsed(&rows.to_json("hello")), parsed(expected));
}

#[test]
fn every_mistake_of_a_bad_plan_is_told() {
    let expected = [
        ("circle", "P009 P008 P010 P010 P011"),
        ("empty", "P001 P003 P015 P001 P002"),
        ("names", "P004 P005 P006 P011 P007 P002 P002 P015"),
        ("params", "P014 P014 P014 P014 P014 P012 P016 P012 P012 P012 P014 P012 P012 P016"),
        ("syntax", "P001"),
    ];
    let registry = Site::new(Endpoints::demo()).registry();
    let bad = plans("plans/bad");
    assert_eq!(bad.len(), expected.len());
    for (name, codes) in expected {
        let errors = registry.plan(&bad[name]).expect_err(name);
        let told: Vec<String> = errors.codes().iter().map(ToString::to_string).collect();
        assert_eq!(told.join(" "), codes, "{name}:\n{errors}");
    }
    let params = registry.plan(&bad["params"]).unwrap_err().to_string();
    let lines = [
        "P014 4:37 expr_table.rank: expected a value, got \"*\" at column 9",
        "P014 4:50 expr_table.sum: there is no op \"ad\" here (did you mean \"add\"?) at column 1",
        "P014 5:38 pred_table.title: '([' is no regular expression: unclosed character class at column 9",
        "P016 8:70 nodes[1].params.endpoint: there is no endpoint \"defualt\" (did you mean \"default\"?)",
    ];
    for line in lines {
        assert!(params.lines().any(|told| told == line), "{line}\n{params}");
    }
}
