use super::*;

/// Returns `rule: words` of each finding in `text`, as the content of the file `path`.
fn found(path: &str, text: &str) -> Vec<String> {
    let source = Source { path: path.to_owned(), text: text.to_owned() };
    check(&source).iter().map(|finding| format!("{}: {}", finding.rule, finding.found)).collect()
}

#[track_caller]
fn finds(path: &str, text: &str, expected: &str) {
    assert_eq!(found(path, text), [expected], "in {text:?}");
}

#[track_caller]
fn leaves(path: &str, text: &str) {
    assert_eq!(found(path, text), [""; 0], "in {text:?}");
}

#[test]
fn doc_comment_begins_with_a_verb_or_a_noun() {
    finds("a.rs", "/// What is stored.\nstruct A;", "doc-start: what");
    finds("a.rs", "//! How it works.", "doc-start: how");
    finds("a.rs", "/// Whether it\n/// is full.\nfn is_full() {}", "doc-start: whether");
    leaves("a.rs", "/// Returns what was stored.\nfn a() {}");
    leaves("a.rs", "/// Returns it.\n///\n/// What follows is no summary.\nfn a() {}");
    leaves("a.rs", "/// `what` is a name.\nfn a() {}");
    leaves("a.rs", "// What a plain comment begins with is free.");
    leaves("a.md", "## What it promises");
}

#[test]
fn actor_has_a_name() {
    finds("a.md", "Nobody reads this.", "actor: nobody");
    finds("a.md", "For whom?", "actor: whom");
    finds("a.rs", "// Who asks gets it.", "actor: who asks");
    leaves("a.md", "The handler reads this, and the callers who wait do not.");
}

#[test]
fn telling_is_notifying() {
    finds("a.rs", "// The handler is told.", "tell: told");
    finds("a.rs", "fn f() { panic!(\"the queue tells it\") }", "tell: tells");
    leaves("a.rs", "// The handler is notified.");
    leaves("a.rs", "fn f() { g(\"told\") }");
}

#[test]
fn voice_is_active() {
    finds("a.md", "The server is asked for a list.", "passive: is asked");
    finds("a.md", "Objects are looked at.", "passive: are looked at");
    leaves("a.md", "The reflector asks the server for a list, and looks at objects.");
}

#[test]
fn clause_is_not_the_subject() {
    finds("a.md", "What is not here is added.", "relative: what is not");
    leaves("a.md", "It adds what is not here.");
}

#[test]
fn forms_match_across_lines_of_one_paragraph() {
    finds("a.rs", "// It waits in\n// vain.", "form: in vain");
    finds("a.md", "At the\nbegin of a run.", "form: the begin");
    finds("a.md", "It has a queue of its.", "form: of its");
    finds("a.md", "It failed so often.", "form: so often");
    leaves("a.rs", "// It waits in\n\n// vain.");
    leaves("a.md", "The owner; the uid of its owner; of its `uid`; so often that it stops.");
}

#[test]
fn code_in_prose_is_left_alone() {
    leaves(
        "a.md",
        "```text\nnobody is told\n```\n\nThe user `nobody` and [this](https://nobody.example).",
    );
    leaves("a.rs", "/// Runs.\n///\n/// ```\n/// // nobody is told\n/// ```\nfn f() {}");
    finds("a.md", "```text\nfree\n```\nnobody", "actor: nobody");
}

#[test]
fn log_lines_have_no_full_stop() {
    finds(
        "a.rs",
        "fn f() { info!(key = %k, \"stopped the informer.\") }",
        "log-stop: stopped the informer.",
    );
    finds("a.rs", "#[error(\"failed to list {0}.\")]\nstruct E;", "log-stop: failed to list {0}.");
    leaves("a.rs", "fn f() { info!(\"stopped the informer\"); print(\"A sentence.\") }");
    leaves("a.rs", "fn f() { info!(\"waiting for etcd ...\") }");
}

#[test]
fn scripts_and_go_are_read_too() {
    finds("a.sh", "#!/bin/sh\n# Nobody is there.\necho nobody", "actor: nobody");
    finds("a.go", "x := 1 // told\nvar nobody int", "tell: told");
    leaves("a.sh", "echo '#'; nobody=1");
}

#[test]
fn code_is_100_columns_wide() {
    let long = "x".repeat(101);
    finds("a.rs", &format!("const A: &str = \"a\"; // {}", &long[..80]), "width: 104 columns");
    leaves("a.rs", &format!("// {}", &long[..97]));
    leaves("a.rs", &format!("// https://example.org/{long}"));
    leaves("a.rs", &format!("const A: &str = r#\"{{\"{long}\": 1}}\"#;"));
}

#[test]
fn markdown_is_120_columns_wide() {
    let long = "word ".repeat(30);
    finds("a.md", long.trim(), "width: 149 columns");
    leaves("a.md", &format!("| {long} |"));
    leaves("a.md", &format!("```\n{long}\n```"));
    leaves("a.md", &format!("[a link](https://example.org/{})", long.replace(' ', "")));
}

#[test]
fn imports_are_not_nested() {
    finds("a.rs", "use std::{fmt, sync::Arc};", "import: nested use");
    finds("a.rs", "pub(crate) use crate::a::{b::{C, D}, E};", "import: nested use");
    leaves("a.rs", "use std::fmt::{self, Debug as _, Display};\nfn f() { S { a: b::C } }");
}

#[test]
fn imports_of_one_module_are_one() {
    finds("a.rs", "use std::fmt;\nuse std::io;", "import: use std");
    finds(
        "a.rs",
        "    pub(crate) use a::b;\n    pub(crate) use a::{c, d};",
        "import: pub(crate) use a",
    );
    leaves("a.rs", "use a::b;\npub use a::c;\nuse a::b::c;\n#[cfg(test)]\nuse a::d;\nuse a::*;");
    leaves("a.rs", "use a::b;\n\nmod tests {\n    use a::c;\n}");
}

#[test]
fn tests_begin_with_their_subject() {
    finds("a.rs", "#[test]\nfn a_queue_is_empty() {}", "test-name: a_queue_is_empty");
    finds(
        "a.rs",
        "#[tokio::test(start_paused = true)]\nasync fn the_queue() {}",
        "test-name: the_queue",
    );
    leaves("a.rs", "#[test]\nfn queue_is_empty() {}\nfn a_helper() {}");
    leaves("a.rs", "fn test() {}\nfn the_helper() {}");
}

#[test]
fn names_are_those_of_the_table() {
    finds("a.rs", "struct Courteous;", "name: Courteous");
    finds("a.rs", "fn who_waits() {}", "name: who_waits");
    finds("a.rs", "fn f(deadline: Duration) {}", "name: deadline: Duration");
    finds("a.rs", "struct A { deadline: Option<std::time::Duration> }", "name: deadline: Duration");
    leaves(
        "a.rs",
        "struct RateLimitedTransport;\nfn wait_for_sync(deadline: Instant, timeout: Duration) {}",
    );
}

#[test]
fn finding_says_where_and_what_to_write() {
    let source = Source { path: "a/b.md".to_owned(), text: "Good.\n\nThe begin.".to_owned() };
    let finding = check(&source).remove(0);
    let expected = "a/b.md:3: form: \"the begin\": the start, the initial list";
    assert_eq!(finding.to_string(), expected);
}

#[test]
fn exception_allows_its_words_in_its_file() {
    let finding = |path: &str| {
        let source = Source { path: path.to_owned(), text: "nobody".to_owned() };
        check(&source).remove(0)
    };
    let list =
        "# comment\n\na.md: actor: nobody: a reason: the user's name\nb.md: tell: told: never used";
    let mut exceptions = Exceptions::parse(list).unwrap();
    assert!(exceptions.allow(&finding("a.md")));
    assert!(!exceptions.allow(&finding("c.md")));
    assert_eq!(exceptions.unused().collect::<Vec<_>>(), ["b.md: tell: told: never used"]);
}

#[test]
fn exception_needs_a_reason_and_the_list_is_short() {
    assert!(Exceptions::parse("a.md: actor: nobody").is_err());
    assert!(Exceptions::parse("a.md: actor: nobody: ").is_err());
    let line = "a.md: actor: nobody: a reason\n";
    assert!(Exceptions::parse(&line.repeat(20)).is_ok());
    assert!(Exceptions::parse(&line.repeat(21)).is_err());
}
