use proptest::prelude::*;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn matches(selector: &str, pairs: &[(&str, &str)]) -> bool {
    LabelSelector::parse(selector).unwrap().matches(&labels(pairs))
}

#[test]
fn every_form_matches_as_upstream() {
    let labels = [("app", "web"), ("n", "5"), ("empty", ""), ("in", "notin")];
    for (selector, expected) in [
        ("", true),
        ("  ", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web , n=5", true),
        ("app=api", false),
        ("app!=web", false),
        ("app!=api", true),
        ("none!=x", true),
        ("none=", false),
        ("empty=", true),
        ("empty=,app", true),
        ("app in (api, web)", true),
        ("app in (api)", false),
        ("app in ()", false),
        ("empty in ()", true),
        ("empty in (,)", true),
        ("empty in (x,)", true),
        ("empty in (x,,y)", true),
        ("app notin (api)", true),
        ("app notin (api,web)", false),
        ("none notin (x)", true),
        ("app", true),
        ("none", false),
        ("!app", false),
        ("! none", true),
        ("n>4", true),
        ("n>5", false),
        ("n<6", true),
        ("n<5", false),
        ("app>4", false),
        ("none<4", false),
        ("app=web,n in (5),!none", true),
        ("app=web,n in (5),!app", false),
        ("in=notin", true),
        ("in in (notin, in)", true),
        ("\tapp\r\n", true),
        ("app.kubernetes.io/name!=x", true),
    ] {
        assert_eq!(matches(selector, &labels), expected, "{selector}");
    }
}

#[test]
fn selector_without_requirements_is_empty_and_matches_everything() {
    let empty = LabelSelector::parse("").unwrap();
    assert!(empty.is_empty());
    assert_eq!(empty, LabelSelector::default());
    assert!(empty.matches(None));
    assert!(empty.matches(&labels(&[("app", "web")])));
    assert!(!LabelSelector::parse("a").unwrap().is_empty());
}

#[test]
fn bad_grammar_is_rejected_with_the_servers_text() {
    for (selector, message) in [
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a(b)", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a in (b,,)", "unable to parse requirement: found ')', expected: ',', or identifier"),
        ("a notin (b)c", "found 'c', expected: ',' or 'end of string'"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
    ] {
        assert_eq!(LabelSelector::parse(selector).unwrap_err().to_string(), message, "{selector}");
    }
}

#[test]
fn impossible_keys_and_values_are_rejected() {
    let long = "x".repeat(64);
    for (selector, beginning, end) in [
        ("\u{1}=b".to_owned(), "<nil>: Invalid value: \"\\x01\": name part must consist of", ""),
        ("-a=b".to_owned(), "<nil>: Invalid value: \"-a\": name part must consist of", ""),
        ("/a".to_owned(), "<nil>: Invalid value: \"/a\": prefix part must be non-empty", ""),
        (
            "p/".to_owned(),
            "<nil>: Invalid value: \"p/\": name part must be non-empty; name part must consist",
            "",
        ),
        (
            "P/a".to_owned(),
            "<nil>: Invalid value: \"P/a\": prefix part a lowercase RFC 1123 subdomain must",
            "",
        ),
        (
            "a/b/c".to_owned(),
            "<nil>: Invalid value: \"a/b/c\": a valid label key must",
            "(e.g. 'example.com/MyName')",
        ),
        (
            long.clone(),
            "<nil>: Invalid value: \"xxx",
            "\": name part must be no more than 63 bytes",
        ),
        (
            format!("a={long}"),
            "values[0][a]: Invalid value: \"xxx",
            "\": must be no more than 63 bytes",
        ),
        (
            "a=-b".to_owned(),
            "values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or",
            "",
        ),
        (
            "a in (b,c_,d-)".to_owned(),
            "[values[1][a]: Invalid value: \"c_\": a valid label must be an empty string or",
            "[A-Za-z0-9])?')]",
        ),
        (
            "a>-1".to_owned(),
            "values[0][a]: Invalid value: \"-1\": a valid label must be an empty string or",
            "",
        ),
        (
            "a>x".to_owned(),
            "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, ",
            "the value must be an integer",
        ),
    ] {
        let message = LabelSelector::parse(&selector).unwrap_err().to_string();
        let reason = message.strip_prefix("unable to parse requirement: ").unwrap();
        assert!(reason.starts_with(beginning), "{message}");
        assert!(reason.ends_with(end), "{message}");
    }
}

#[test]
fn value_problem_reads_as_the_servers() {
    assert_eq!(
        LabelSelector::parse("a=b_").unwrap_err().to_string(),
        "unable to parse requirement: values[0][a]: Invalid value: \"b_\": a valid label must be \
         an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
         and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
         regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    );
}

#[test]
fn every_requirement_of_the_object_form_must_hold() {
    let selector = LabelSelector::default()
        .with_label("app", "web")
        .and_then(|it| it.with_expression("tier", "In", &["b", "a"]))
        .and_then(|it| it.with_expression("zone", "NotIn", &["x"]))
        .and_then(|it| it.with_expression("example.com/owned", "Exists", &[]))
        .and_then(|it| it.with_expression("retired", "DoesNotExist", &[]))
        .unwrap();
    let good = labels(&[("app", "web"), ("tier", "b"), ("example.com/owned", "")]);
    assert!(selector.matches(&good), "an absent label is in no set of values");
    for (key, value) in [("app", "db"), ("tier", "c"), ("zone", "x"), ("retired", "")] {
        let mut bad = good.clone();
        bad.insert(key.to_owned(), value.to_owned());
        assert!(!selector.matches(&bad), "{key}={value}");
    }
    assert!(!selector.matches(None));
    assert_eq!(
        selector.to_string(),
        "app=web,example.com/owned,!retired,tier in (a,b),zone notin (x)"
    );
}

#[test]
fn bad_object_form_is_rejected_with_upstreams_text() {
    let long = "x".repeat(64);
    let none = LabelSelector::default;
    for (result, beginning) in [
        (
            none().with_expression("a", "Near", &["b"]),
            r#""Near" is not a valid label selector operator"#,
        ),
        (
            none().with_expression("a", "In", &[]),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            none().with_expression("a", "Exists", &["b", "c"]),
            r#"values: Invalid value: ["b","c"]: values set must be empty for exists and does not"#,
        ),
        (none().with_label("a/b/c", "d"), r#"key: Invalid value: "a/b/c": a valid label key must"#),
        (none().with_label("", "d"), r#"key: Invalid value: "": name part must be non-empty; "#),
        (none().with_label("a", "-"), r#"values[0][a]: Invalid value: "-": a valid label must be"#),
        (
            none().with_label("-a", "-"),
            r#"[key: Invalid value: "-a": name part must consist of alphanumeric characters"#,
        ),
        (
            none().with_expression("a", "In", &["b", &long]),
            &format!("values[1][a]: Invalid value: {long:?}: must be no more than 63 bytes"),
        ),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(beginning), "{error}");
    }
}

proptest! {
    #[test]
    fn not_in_is_the_opposite_of_in(
        value in prop::option::of("[xyz]"),
        values in "[xyz](,[xyz]){0,2}",
    ) {
        let inside = LabelSelector::parse(&format!("a in ({values})")).unwrap();
        let outside = LabelSelector::parse(&format!("a notin ({values})")).unwrap();
        let labels = value.map(|value| BTreeMap::from([("a".to_owned(), value)]));
        prop_assert_ne!(inside.matches(labels.as_ref()), outside.matches(labels.as_ref()));
    }

    #[test]
    fn parser_never_panics_and_reads_its_own_output(
        selector in r"([ab1!=<>(),é \-]|in|notin){0,10}",
    ) {
        if let Ok(parsed) = LabelSelector::parse(&selector) {
            prop_assert_eq!(LabelSelector::parse(&parsed.to_string()), Ok(parsed), "{}", selector);
        }
    }
}
