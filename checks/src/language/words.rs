//! The words and sentence forms that the prose of this repository does without.

use std::sync::LazyLock;

use super::prose::Word;

/// A form of words, the rule that it breaks, and what to write instead.
struct Form {
    /// Each place holds the alternatives for one word.
    words: Vec<Vec<&'static str>>,
    /// The first word begins a sentence.
    starts: bool,
    /// Punctuation follows the last word.
    ends: bool,
    rule: &'static str,
    hint: &'static str,
}

/// One match of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) line: usize,
    pub(super) rule: &'static str,
    pub(super) text: String,
    pub(super) hint: &'static str,
}

/// The forms of `words.txt`.
static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let lines = include_str!("../../words.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(parse).collect()
});

/// First words that make a doc comment a question or a clause.
const BAD_STARTS: &[&str] = &[
    "what",
    "how",
    "whether",
    "who",
    "whom",
    "whose",
    "why",
    "that",
    "where",
    "whatever",
    "whoever",
    "whichever",
    "what's",
    "who's",
];

/// Returns the hint for a doc comment that begins with `word`, if it may not.
pub(super) fn bad_start(word: &str) -> Option<&'static str> {
    BAD_STARTS
        .contains(&word)
        .then_some("begin with a verb in the third person (Returns, Waits) or a noun phrase")
}

/// Returns every match of a form in `words`.
pub(super) fn search(words: &[Word]) -> Vec<Match> {
    FORMS.iter().flat_map(|form| matches(form, words)).collect()
}

fn matches(form: &'static Form, words: &[Word]) -> impl Iterator<Item = Match> {
    let fits = |window: &&[Word]| {
        let mut pairs = form.words.iter().zip(*window);
        pairs.all(|(alternatives, word)| alternatives.contains(&word.text.as_str()))
            && (!form.starts || window.first().is_some_and(|word| word.starts))
            && (!form.ends || window.last().is_some_and(|word| word.ends))
    };
    words.windows(form.words.len()).filter(fits).map(|window| {
        let text: Vec<_> = window.iter().map(|word| word.text.as_str()).collect();
        Match { line: window[0].line, rule: form.rule, text: text.join(" "), hint: form.hint }
    })
}

fn parse(line: &'static str) -> Form {
    let parts: Vec<_> = line.splitn(3, ": ").collect();
    let &[rule, words, hint] = parts.as_slice() else {
        panic!("words.txt: expected `rule: words: hint`, found {line:?}");
    };
    let mut words: Vec<_> = words.split(' ').collect();
    let starts = words.first() == Some(&"^");
    let ends = words.last() == Some(&"$");
    words.retain(|word| !matches!(*word, "^" | "$"));
    let words = words.iter().map(|word| word.split('|').collect()).collect();
    Form { words, starts, ends, rule, hint }
}
