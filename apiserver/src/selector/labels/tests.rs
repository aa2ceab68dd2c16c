use proptest::prelude::*;

use super::*;

fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
    let selector = Labels::parse(selector).unwrap();
    selector.matches(|key| labels.iter().find(|(name, _)| *name == key).map(|it| it.1))
}

#[test]
fn every_form_selects_what_it_says() {
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
fn only_the_selector_without_requirements_is_empty() {
    assert!(Labels::parse("").unwrap().is_empty());
    assert!(!Labels::parse("a").unwrap().is_empty());
}

#[test]
fn bad_grammar_is_refused_in_the_servers_words() {
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
        assert_eq!(Labels::parse(selector).unwrap_err().to_string(), message, "{selector}");
    }
}

#[test]
fn keys_and_values_that_no_label_has_are_refused() {
    let long = "x".repeat(64);
    for (selector, beginning, end) in [
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
            "<nil>: Invalid value: \"a/b/c\": a qualified name must",
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
            "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            "",
        ),
    ] {
        let message = Labels::parse(&selector).unwrap_err().to_string();
        let reason = message.strip_prefix("unable to parse requirement: ").unwrap();
        assert!(reason.starts_with(beginning), "{message}");
        assert!(reason.ends_with(end), "{message}");
    }
}

#[test]
fn a_whole_message_about_a_value_reads_as_the_servers() {
    assert_eq!(
        Labels::parse("a=b_").unwrap_err().to_string(),
        "unable to parse requirement: values[0][a]: Invalid value: \"b_\": a valid label must be an empty string or \
         consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
         (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    );
}

proptest! {
    #[test]
    fn not_in_is_the_opposite_of_in(value in prop::option::of("[xyz]"), values in "[xyz](,[xyz]){0,2}") {
        let inside = Labels::parse(&format!("a in ({values})")).unwrap();
        let outside = Labels::parse(&format!("a notin ({values})")).unwrap();
        let label = |_: &str| value.as_deref();
        prop_assert_ne!(inside.matches(label), outside.matches(label));
    }

    #[test]
    fn nothing_panics(selector in r"([ab!=<>(),é \-]|in|notin){0,10}") {
        let _outcome = Labels::parse(&selector);
    }
}
