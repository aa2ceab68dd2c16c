use regex::Regex;

use super::translate;

fn is_match(pattern: &str, text: &str) -> bool {
    Regex::new(&translate(pattern).unwrap()).unwrap().is_match(text)
}

fn problem(pattern: &str) -> String {
    let text = translate(pattern).unwrap_err().to_string();
    text.strip_prefix("error parsing regexp: ").unwrap().to_owned()
}

#[test]
fn classes_have_characters_of_ascii() {
    for (pattern, text) in [(r"^\w$", "é"), (r"\d", "٣"), (r"\s", "\u{a0}"), (r"\s", "\u{b}")] {
        assert!(!is_match(pattern, text), "{pattern} matches {text}");
        let negated = pattern.to_uppercase();
        assert!(is_match(&negated, text), "{negated} does not match {text}");
    }
    assert!(is_match(r"\bb", "éb") && is_match(r"^[\w-]+$", "a-b_9"));
    assert!(is_match(r"\pL", "é") && is_match(r"[\p{^Greek}]", "a") && !is_match(r"\PL", "é"));
    assert!(is_match("[[:alpha:]]", "a") && is_match("[[:^alpha:]]", "é"));
}

#[test]
fn escapes_are_those_of_go() {
    for pattern in [r"^\141$", r"^\x61$", r"^\x{0061}$", r"^\Qa\E$", r"(?i)^A$", r"^(?<x>a)$"] {
        assert!(is_match(pattern, "a"), "{pattern}");
    }
    assert!(is_match(r"^\Q(.*\E+$", "(.***") && !is_match(r"^\Qa.", "ab"));
    assert!(is_match(r"^\_\-\<$", "_-<") && is_match(r"^\07$", "\u{7}"));
    assert!(is_match("^[a&&b]{3}$", "a&b") && is_match("^[a~~b&&[]$", "["));
    assert!(is_match("^[]a]$", "]") && is_match("^[^]a]$", "b") && is_match("^[a-]$", "-"));
}

#[test]
fn repetitions_and_flags_are_those_of_go() {
    assert!(
        is_match("^a{,2}$", "a{,2}") && is_match("^a{2$", "a{2") && is_match("^a{01}$", "a{01}")
    );
    assert!(is_match("^*a{1,1000}?$", "aaa") && is_match("(?:)*", ""));
    assert!(is_match("^a(?i)*$", "aaa") && !is_match("^a(?i)*$", "A"));
    assert!(is_match("^(?ii-mm)a|b$", "B") && is_match("^(?:(?i)a)b$", "Ab"));
    assert!(!is_match("^(?:(?i)a)b$", "AB") && is_match("(?)a", "a") && is_match("(?s:.)", "\n"));
    assert!(is_match("(?i:a(?-i)b)c", "Abc") && !is_match("(?i:a(?-i)b)c", "ABc"));
    assert!(is_match("^(a{500}){0}$", "") && is_match("^(?:a{10}){100}$", &"a".repeat(1000)));
}

#[test]
fn problems_have_texts_of_go() {
    let expected = [
        ("(a", "missing closing ): `(a`"),
        ("a)b", "unexpected ): `a)b`"),
        ("[a", "missing closing ]: `[a`"),
        ("x[]", "missing closing ]: `[]`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a++b", "invalid nested repetition operator: `++`"),
        ("a{2}??", "invalid nested repetition operator: `{2}??`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(|*)", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(a{40}){40}", "invalid repeat count: `{40}`"),
        ("a{99999999999999999999}", "invalid repeat count: `{99999999999999999999}`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"\u0061", r"invalid escape sequence: `\u`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\xzz", r"invalid escape sequence: `\xzz`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        (r"\p{L", r"invalid character class range: `\p{L`"),
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x) a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?<n", "invalid named capture: `(?<n`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
    ];
    for (pattern, wanted) in expected {
        assert_eq!(problem(pattern), wanted);
    }
}
