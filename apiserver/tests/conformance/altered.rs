//! Altered replies: each must fail its exchange. This tests the masks of the suite.

use serde_json::{Value, json};

use crate::differences::Differences;
use crate::script::{Answer, Content, Script, Stage};
use crate::suite::{is_as_recorded, play_embedded_with, scripts};

/// An alteration of an unmasked reply: its name, and the change. It returns false for a reply that
/// has nothing to change.
type Alteration = (&'static str, fn(&mut Answer) -> bool);

const ALTERATIONS: &[Alteration] = &[
    ("another status", |answer| {
        answer.status += 1;
        true
    }),
    ("another media type", |answer| {
        let header = answer.headers.iter_mut().find(|(name, _)| name == "Content-Type");
        header.map(|(_, value)| value.push('x')).is_some()
    }),
    ("no warning", |answer| {
        let before = answer.headers.len();
        answer.headers.retain(|(name, _)| name != "Warning");
        answer.headers.len() < before
    }),
    ("no audit id", |answer| {
        let before = answer.headers.len();
        answer.headers.retain(|(name, _)| name != "Audit-Id");
        answer.headers.len() < before
    }),
    ("an audit id that is none", |answer| set_header(answer, "Audit-Id", "banana")),
    ("another caching", |answer| set_header(answer, "Cache-Control", "private")),
    ("a tag that is none", |answer| set_header(answer, "Etag", "\"banana\"")),
    ("a time of another format", |answer| set_header(answer, "Last-Modified", "2026-01-01")),
    ("another address", |answer| set_header(answer, "Location", "/?hash=0000000000000000")),
    ("another variation", |answer| set_header(answer, "Vary", "Origin")),
    ("a header that no reply has", |answer| {
        answer.headers.push(("X-Extra".to_owned(), "1".to_owned()));
        true
    }),
    ("a number for a name", |answer| replace(answer, "/metadata/name", |_| Some(json!(7)))),
    ("a version that is none", |answer| {
        replace(answer, "/metadata/resourceVersion", |_| Some(json!("banana")))
    }),
    ("a list that is older than an object in it", |answer| {
        has_items(answer) && replace(answer, "/metadata/resourceVersion", |_| Some(json!("1")))
    }),
    ("a time that is none", |answer| {
        replace(answer, "/metadata/creationTimestamp", |_| Some(json!("yesterday")))
    }),
    ("a uid that is none", |answer| replace(answer, "/metadata/uid", |_| Some(json!("no-uid")))),
    ("a generated name without its base", |answer| {
        let has_base =
            body(answer).is_some_and(|body| body["metadata"]["generateName"].is_string());
        has_base && replace(answer, "/metadata/name", |_| Some(json!("else-x2x4z")))
    }),
    ("a continue token that is none", |answer| {
        replace(answer, "/metadata/continue", |token| {
            token.as_str().filter(|token| !token.is_empty()).map(|_| json!("banana"))
        })
    }),
    ("items in another order", |answer| {
        replace(answer, "/items", |items| {
            let mut items = items.as_array().filter(|items| items.len() > 1)?.clone();
            items.reverse();
            Some(items.into())
        })
    }),
    ("events in another order", |answer| match &mut answer.body {
        Content::Json(values) if values.len() > 1 && values.first() != values.last() => {
            values.reverse();
            true
        }
        _ => false,
    }),
    ("an age that is none", |answer| {
        replace(answer, "/rows/0/cells", |cells| {
            let mut cells = cells.as_array()?.clone();
            let is_age = |cell: &&mut Value| cell.as_str().is_some_and(|text| text == "0s");
            *cells.iter_mut().find(is_age)? = json!("5 years or so");
            Some(cells.into())
        })
    }),
    ("another message", |answer| {
        replace(answer, "/message", |message| Some(json!(format!("{}.", message.as_str()?))))
    }),
    ("another reason", |answer| replace(answer, "/reason", |_| Some(json!("Because")))),
    ("no apiVersion", |answer| {
        let body = body_mut(answer).and_then(Value::as_object_mut);
        body.is_some_and(|body| body.remove("apiVersion").is_some())
    }),
    ("another member", |answer| {
        let body = body_mut(answer).and_then(Value::as_object_mut);
        body.map(|body| body.insert("extra".to_owned(), json!(1))).is_some()
    }),
];

/// The number of replies that each alteration changes, each in another script.
const SAMPLES: usize = 3;

/// Fails unless each altered reply fails its exchange.
pub(crate) fn altered_replies_fail() {
    let mut scripts = scripts().unwrap();
    // Short scripts are played sooner.
    scripts.sort_by_key(|script| script.exchanges.len());
    let differences = Differences::load(&scripts).unwrap();
    let mut count = 0;
    for (name, alter) in ALTERATIONS {
        let found = scripts.iter().filter_map(|script| {
            let nth = find(script, &differences, *alter)?;
            Some((script, nth))
        });
        let found: Vec<_> = found.take(SAMPLES).collect();
        assert!(!found.is_empty(), "no reply has what {name} needs");
        for (script, nth) in found {
            let title = &script.exchanges[nth].title;
            let passes = passes_altered(script, nth, *alter);
            assert!(!passes, "{} / {title} passes with {name}", script.name);
            count += 1;
        }
    }
    assert!(count >= 50, "{count} replies were altered");
}

/// Returns true if an exchange passes although its reply is altered.
fn passes_altered(script: &Script, nth: usize, alter: fn(&mut Answer) -> bool) -> bool {
    let outcomes = play_embedded_with(script, &mut |at, _, answer| {
        if at == nth {
            alter(answer);
        }
    });
    is_as_recorded(&script.exchanges[nth], outcomes[nth].as_ref())
}

/// Returns the first exchange of a script whose reply the alteration changes.
fn find(
    script: &Script,
    differences: &Differences,
    alter: fn(&mut Answer) -> bool,
) -> Option<usize> {
    let candidates = script.exchanges.iter().enumerate();
    let mut candidates = candidates.filter(|(_, exchange)| {
        let name = format!("{} / {}", script.name, exchange.title);
        exchange.stage == Stage::Compared && differences.reason(&name).is_none()
    });
    // The recorded reply has the same members as the unmasked one.
    candidates.find_map(|(nth, exchange)| {
        let mut answer = exchange.answer.clone()?;
        for value in values_mut(&mut answer) {
            unmask(value);
        }
        alter(&mut answer).then_some(nth)
    })
}

/// Replaces masked ages by one that an alteration recognises.
fn unmask(value: &mut Value) {
    match value {
        Value::String(text) if text == "<age>" => "0s".clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(unmask),
        Value::Object(members) => members.values_mut().for_each(unmask),
        _ => {}
    }
}

fn values_mut(answer: &mut Answer) -> &mut [Value] {
    match &mut answer.body {
        Content::Json(values) => values,
        Content::Text(_) => &mut [],
    }
}

fn body_mut(answer: &mut Answer) -> Option<&mut Value> {
    match values_mut(answer) {
        [body] => Some(body),
        _ => None,
    }
}

fn body(answer: &Answer) -> Option<&Value> {
    match &answer.body {
        Content::Json(values) if values.len() == 1 => values.first(),
        _ => None,
    }
}

fn has_items(answer: &Answer) -> bool {
    let items = body(answer).and_then(|body| body["items"].as_array());
    items.is_some_and(|items| items.iter().any(|item| item["metadata"]["uid"].is_string()))
}

/// Sets a header that the reply has.
fn set_header(answer: &mut Answer, name: &str, value: &str) -> bool {
    let header = answer.headers.iter_mut().find(|(known, _)| known == name);
    header.map(|(_, known)| value.clone_into(known)).is_some()
}

/// Replaces the value at a pointer by what `change` makes of it.
fn replace(answer: &mut Answer, at: &str, change: fn(&Value) -> Option<Value>) -> bool {
    let Some(value) = body_mut(answer).and_then(|body| body.pointer_mut(at)) else { return false };
    let Some(new) = change(value) else { return false };
    *value = new;
    true
}
