//! Replies altered at places that a seed chooses: each must fail its exchange. `altered` alters
//! chosen places instead.
//!
//! Each script is played once. An alteration is judged on a copy of the reply and of the names
//! known so far, so that it does not affect the exchanges behind it. `HOMEOSTAT_CASES` raises the
//! share of the exchanges from one in eight to all of them.

use std::env;

use homeostat_core::Random;
use serde_json::{Value, json};

use crate::differences::Differences;
use crate::normal::Normaliser;
use crate::script::{Answer, Content, Stage};
use crate::suite::{play_embedded_with, scripts};

/// Changes a reply at a place that it draws. Returns false if the reply has nothing to change.
type Alteration = fn(&mut Answer, &mut Random) -> bool;

const ALTERATIONS: &[(&str, Alteration)] = &[
    ("another status", |answer, _| {
        answer.status = if answer.status == 200 { 201 } else { 200 };
        true
    }),
    ("a header less", |answer, random| {
        let at = draw(random, answer.headers.len());
        at.map(|at| answer.headers.remove(at)).is_some()
    }),
    ("an item or event less", |answer, random| {
        let lists = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
        change(answer, random, lists, |list, random| {
            let items = list.as_array_mut().unwrap();
            items.remove(draw(random, items.len()).unwrap());
        })
    }),
    ("two neighbours swapped", |answer, random| {
        change(answer, random, has_neighbours, |list, random| {
            let items = list.as_array_mut().unwrap();
            let differ = |at: &usize| are_different(&items[*at], &items[*at + 1]);
            let places: Vec<usize> = (0..items.len() - 1).filter(differ).collect();
            let at = places[draw(random, places.len()).unwrap()];
            items.swap(at, at + 1);
        })
    }),
    ("an item or event twice", |answer, random| {
        let lists = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
        change(answer, random, lists, |list, random| {
            let items = list.as_array_mut().unwrap();
            let at = draw(random, items.len()).unwrap();
            items.insert(at, items[at].clone());
        })
    }),
    ("an unknown member", |answer, random| {
        change(answer, random, Value::is_object, |object, _| object["extraMember"] = json!("x"))
    }),
    ("a member less", |answer, random| {
        let objects = |value: &Value| value.as_object().is_some_and(|it| !it.is_empty());
        change(answer, random, objects, |object, random| {
            let members = object.as_object_mut().unwrap();
            let names: Vec<String> = members.keys().cloned().collect();
            members.remove(&names[draw(random, names.len()).unwrap()]);
        })
    }),
    ("another name of a member", |answer, random| {
        let objects = |value: &Value| value.as_object().is_some_and(|it| !it.is_empty());
        change(answer, random, objects, |object, random| {
            let members = object.as_object_mut().unwrap();
            let names: Vec<String> = members.keys().cloned().collect();
            let name = &names[draw(random, names.len()).unwrap()];
            let value = members.remove(name).unwrap();
            members.insert(format!("{name}X"), value);
        })
    }),
    ("another text", |answer, random| {
        change(answer, random, Value::is_string, |text, _| {
            *text = json!(format!("{} x", text.as_str().unwrap()));
        })
    }),
    ("another number or boolean", |answer, random| {
        let plain = |value: &Value| value.is_boolean() || value.is_i64();
        change(answer, random, plain, |value, _| {
            *value = match value.as_i64() {
                Some(number) => json!(number.wrapping_add(100_000)),
                None => json!(*value != true),
            };
        })
    }),
    ("text in place of another type", |answer, random| {
        let others = |value: &Value| !value.is_string();
        change(answer, random, others, |value, _| *value = json!("x"))
    }),
];

/// Fails unless each alteration of a sample of all replies fails its exchange.
pub(crate) fn altered_samples_fail() {
    let scripts = scripts().unwrap();
    let differences = Differences::load(&scripts).unwrap();
    let share = if env::var_os("HOMEOSTAT_CASES").is_some() { 1 } else { 8 };
    let (mut count, mut unnoticed) = (0, Vec::new());
    for (number, script) in scripts.iter().enumerate() {
        let random = &mut Random::new(Some(number as u64));
        play_embedded_with(script, &mut |nth, normaliser, raw| {
            let exchange = &script.exchanges[nth];
            let name = format!("{} / {}", script.name, exchange.title);
            let is_compared =
                exchange.stage == Stage::Compared && differences.reason(&name).is_none();
            if !is_compared || random.below(share) > 0 {
                return;
            }
            let recorded = exchange.answer.as_ref().unwrap();
            for (what, alter) in ALTERATIONS {
                let mut altered = compared_parts(raw, normaliser);
                let is_altered = alter(&mut altered, random);
                let passes = || normaliser.clone().normal(&altered, Some(recorded)) == *recorded;
                let is_unnoticed = is_altered && passes();
                count += usize::from(is_altered);
                unnoticed.extend(is_unnoticed.then(|| format!("\n{name}: {what}\n{altered:?}")));
            }
        });
    }
    let shown = unnoticed.iter().take(20).map(|one| one.chars().take(3000).collect::<String>());
    let list = shown.collect::<Vec<_>>().concat();
    assert!(unnoticed.is_empty(), "{} of {count} pass: {list}", unnoticed.len());
    assert!(count > 1_000, "{count} replies were altered");
}

/// Returns a reply without the parts that are not compared.
fn compared_parts(raw: &Answer, normaliser: &Normaliser) -> Answer {
    let mut answer = raw.clone();
    if let Content::Json(values) = &mut answer.body {
        for value in values {
            normaliser.drop_skipped(value);
        }
    }
    answer
}

/// Changes one of the values that `fits` accepts. The events of a watch are a list, too.
fn change(
    answer: &mut Answer,
    random: &mut Random,
    fits: fn(&Value) -> bool,
    alter: fn(&mut Value, &mut Random),
) -> bool {
    let Content::Json(values) = &mut answer.body else { return false };
    let mut body = match values.as_slice() {
        [_] => values.remove(0),
        _ => Value::Array(std::mem::take(values)),
    };
    let mut places = Vec::new();
    find(&body, fits, String::new(), &mut places);
    let is_list = body.is_array();
    let at = draw(random, places.len());
    if let Some(at) = at {
        alter(body.pointer_mut(&places[at]).unwrap(), random);
    }
    *values = match body {
        Value::Array(events) if is_list => events,
        body => vec![body],
    };
    at.is_some()
}

/// Collects the JSON pointers of the values that `fits` accepts.
fn find(value: &Value, fits: fn(&Value) -> bool, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                find(member, fits, format!("{at}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (nth, item) in items.iter().enumerate() {
                find(item, fits, format!("{at}/{nth}"), places);
            }
        }
        _ => {}
    }
    if fits(value) {
        places.push(at);
    }
}

fn has_neighbours(value: &Value) -> bool {
    value.as_array().is_some_and(|items| {
        // The real server lists the causes of these in a random order.
        let is_conflict = |item: &Value| item["reason"] == "FieldManagerConflict";
        !items.iter().all(is_conflict)
            && items.windows(2).any(|pair| are_different(&pair[0], &pair[1]))
    })
}

/// Returns false for two ages, too: they are masked.
fn are_different(one: &Value, other: &Value) -> bool {
    one != other && !(is_age(one) && is_age(other))
}

/// Returns true for an age in a table, such as `25y` or `3m20s`.
fn is_age(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.ends_with(['s', 'm', 'h', 'd', 'y'])
        && text.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c))
}

fn draw(random: &mut Random, count: usize) -> Option<usize> {
    let count = u64::try_from(count).ok().filter(|count| *count > 0)?;
    usize::try_from(random.below(count)).ok()
}
