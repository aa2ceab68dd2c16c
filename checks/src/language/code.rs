//! Rules about code: width, imports, names.

use crate::lexer::{Kind, Token};

use super::CODE_WIDTH;

/// Identifiers that have a better name, and that name.
const NAMES: &[(&str, &str)] = &[
    ("Courteous", "RateLimitedTransport"),
    ("Refusal", "Status or ApiError"),
    ("Outlet", "Listener"),
    ("Undone", "Unfinished"),
    ("left_out", "skipped_nameless"),
    ("Detour", "ForcedRelist"),
    ("distrust", "watch_list_failures"),
    ("is_inside", "in_callback"),
];

/// Parts of a function's name that say too little.
const VAGUE: &[&str] = &[
    "told",
    "tell",
    "tells",
    "somebody",
    "nobody",
    "everybody",
    "anybody",
    "whoever",
    "who",
    "whom",
    "vain",
];

/// First parts of a test's name that are no subject.
const ARTICLES: &[&str] = &["a", "an", "the", "test", "should"];

/// Calls `report` with line, rule, what was found and the hint.
pub(super) fn check(
    text: &str,
    tokens: &[Token<'_>],
    report: &mut impl FnMut(usize, &'static str, &str, &str),
) {
    width(text, tokens, report);
    repeated_modules(text, report);
    for (index, token) in tokens.iter().enumerate() {
        if token.is("use") && begins_item(&tokens[..index]) {
            imports(&tokens[index..], report);
        }
        if token.is("fn")
            && let Some(name) = tokens.get(index + 1)
        {
            function(name, &tokens[..index], report);
        }
        if token.is("deadline") && types_as_duration(&tokens[index..]) {
            report(token.line, "name", "deadline: Duration", "a Duration is a timeout or a period");
        }
        let better = NAMES.iter().find(|(name, _)| token.is(name));
        if let Some((name, better)) = better {
            report(token.line, "name", name, &format!("decided: {better}"));
        }
    }
}

/// Long lines. Data between the quotes of a raw string, and addresses, may be as long as they are.
fn width(
    text: &str,
    tokens: &[Token<'_>],
    report: &mut impl FnMut(usize, &'static str, &str, &str),
) {
    let is_data = |line: usize| {
        tokens.iter().any(|token| {
            let lines = token.text.matches('\n').count();
            token.kind == Kind::RawText && (token.line..=token.line + lines).contains(&line)
        })
    };
    for (index, line) in text.lines().enumerate() {
        let width = line.chars().count();
        if width > CODE_WIDTH && !line.contains("://") && !is_data(index + 1) {
            let found = format!("{width} columns");
            report(index + 1, "width", &found, "break the line at 100 columns");
        }
    }
}

fn begins_item(before: &[Token<'_>]) -> bool {
    before.last().is_none_or(|token| {
        let ends_item = token.is(";") || token.is("{") || token.is("}") || token.is("]");
        ends_item || token.is("pub") || token.is(")") || !is_code(token)
    })
}

fn is_code(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Punctuation)
}

/// Reports a `use` whose braces hold a path of their own.
fn imports(tokens: &[Token<'_>], report: &mut impl FnMut(usize, &'static str, &str, &str)) {
    let mut depth = 0;
    let item = tokens.iter().take_while(|token| !token.is(";"));
    for token in item {
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth -= 1;
        }
        if depth > 1 || (depth == 1 && token.is(":")) {
            let hint = "one `use` for each module path: braces hold names, not paths";
            report(tokens[0].line, "import", "nested use", hint);
            return;
        }
    }
}

/// Reports the later of two `use` of one block that name the same module.
fn repeated_modules(text: &str, report: &mut impl FnMut(usize, &'static str, &str, &str)) {
    let (mut modules, mut is_conditional) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() {
            modules.clear();
        }
        let is_import =
            line.starts_with("use ") || line.starts_with("pub") && line.contains(" use ");
        let module = line.split('{').next().and_then(|path| path.rsplit_once("::"));
        if let Some((module, name)) = module
            && is_import
            && !is_conditional
            && name != "*;"
        {
            if modules.contains(&module) {
                report(index + 1, "import", module, "one `use` for each module path");
            }
            modules.push(module);
        }
        is_conditional = line.starts_with("#[");
    }
}

fn function(
    name: &Token<'_>,
    before: &[Token<'_>],
    report: &mut impl FnMut(usize, &'static str, &str, &str),
) {
    let mut parts = name.text.split('_');
    if let Some(part) = parts.clone().find(|part| VAGUE.contains(part)) {
        report(name.line, "name", name.text, &format!("not \"{part}\": subject and verb"));
    }
    let first = parts.next().unwrap_or_default();
    if ARTICLES.contains(&first) && parts.next().is_some() && is_test(before) {
        report(name.line, "test-name", name.text, "begin with the subject, without an article");
    }
}

/// Returns true if the attributes just before a function contain `test`.
fn is_test(before: &[Token<'_>]) -> bool {
    let attributes = before
        .iter()
        .rev()
        .take_while(|token| !(token.is(";") || token.is("{") || token.is("}")) || !is_code(token));
    attributes.take(40).any(|token| token.is("test"))
}

/// Returns true for `deadline: Duration` and its paths.
fn types_as_duration(tokens: &[Token<'_>]) -> bool {
    let mut rest = tokens.iter().skip(1);
    if !rest.next().is_some_and(|token| token.is(":")) {
        return false;
    }
    let mut path = rest.skip_while(|token| {
        [":", "std", "time", "tokio", "core", "Option", "<"].iter().any(|part| token.is(part))
    });
    path.next().is_some_and(|token| token.is("Duration"))
}
