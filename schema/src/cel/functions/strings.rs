//! Texts and regular expressions.

use regex::Regex;

use super::{Result, patterns};
use crate::cel::error::EvalError;
use crate::cel::steps::Steps;
use crate::cel::value::Value;

pub(super) fn call<'a>(steps: &Steps, name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    if name == "join" {
        return join(steps, arguments);
    }
    let [Value::String(text), rest @ ..] = arguments else { return None };
    let text: &str = text;
    Some(match (name, rest) {
        ("contains", [Value::String(part)]) => {
            let cost = (text.len() / 10 + 1).saturating_mul(part.len() / 10 + 1);
            steps.spend(cost).map(|()| Value::Bool(text.contains(&**part)))
        }
        ("startsWith", [Value::String(part)]) => Ok(Value::Bool(text.starts_with(&**part))),
        ("endsWith", [Value::String(part)]) => Ok(Value::Bool(text.ends_with(&**part))),
        ("matches", [Value::String(pattern)]) => {
            regex(steps, text, pattern).map(|regex| Value::Bool(regex.is_match(text)))
        }
        ("find", [Value::String(pattern)]) => searched(steps, text, pattern).map(|regex| {
            Value::text(regex.find(text).map(|found| found.as_str()).unwrap_or_default())
        }),
        ("findAll", [Value::String(pattern), rest @ ..]) => {
            let most = limit(rest)?;
            searched(steps, text, pattern).map(|regex| {
                let found = regex.find_iter(text).take(most);
                Value::list(found.map(|found| Value::text(found.as_str())).collect())
            })
        }
        ("charAt", [Value::Int(at)]) => char_at(text, *at),
        ("indexOf", [Value::String(part), rest @ ..]) => index_of(steps, text, part, rest, false),
        ("lastIndexOf", [Value::String(part), rest @ ..]) => {
            index_of(steps, text, part, rest, true)
        }
        ("lowerAscii", []) => Ok(Value::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::text(text.to_ascii_uppercase())),
        ("jsonpatch.escapeKey", []) => Ok(Value::text(text.replace('~', "~0").replace('/', "~1"))),
        ("trim", []) => Ok(Value::text(text.trim())),
        ("strings.quote", []) => Ok(Value::text(quoted(text))),
        ("replace", [Value::String(from), Value::String(to), rest @ ..]) => {
            let most = limit(rest)?;
            let longest = text.len() + (text.len() + 1).saturating_mul(to.len());
            let replaced = steps.spend(longest / 10);
            replaced.map(|()| Value::text(text.replacen(&**from, to, most)))
        }
        ("split", [Value::String(mark), rest @ ..]) => {
            Ok(Value::list(split(text, mark, limit(rest)?)))
        }
        ("substring", [Value::Int(from)]) => {
            let end = i64::try_from(text.chars().count()).ok()?;
            substring(text, *from, end)
        }
        ("substring", [Value::Int(from), Value::Int(to)]) => substring(text, *from, *to),
        _ => return None,
    })
}

/// Reads the largest number of results; a negative one is no limit.
fn limit(rest: &[Value<'_>]) -> Option<usize> {
    match rest {
        [] => Some(usize::MAX),
        [Value::Int(most)] => Some(usize::try_from(*most).unwrap_or(usize::MAX)),
        _ => None,
    }
}

/// Compiles the pattern of a search.
fn searched(steps: &Steps, text: &str, pattern: &str) -> std::result::Result<Regex, EvalError> {
    regex(steps, text, pattern).map_err(|error| match error {
        EvalError::Failed(problem) => EvalError::new(format!("Illegal regex: {problem}")),
        EvalError::Limit => EvalError::Limit,
    })
}

/// Compiles a pattern and counts the steps of one search.
fn regex(steps: &Steps, text: &str, pattern: &str) -> std::result::Result<Regex, EvalError> {
    steps.spend((text.len() / 10 + 1).saturating_mul(pattern.len() / 4 + 1))?;
    patterns::compiled(pattern).map_err(|error| EvalError::new(error.to_string()))
}

/// Quotes a text; of the control characters those with a letter are escaped alone.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        let letter = match c {
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\\' | '"' => c,
            other => {
                quoted.push(other);
                continue;
            }
        };
        quoted.extend(['\\', letter]);
    }
    quoted.push('"');
    quoted
}

fn out_of_range(at: i64) -> EvalError {
    EvalError::new(format!("index out of range: {at}"))
}

fn char_at<'a>(text: &str, at: i64) -> Result<'a> {
    let index = usize::try_from(at).map_err(|_| out_of_range(at))?;
    match text.chars().nth(index) {
        Some(c) => Ok(Value::text(c.to_string())),
        None if index == text.chars().count() => Ok(Value::text("")),
        None => Err(out_of_range(at)),
    }
}

fn substring<'a>(text: &str, from: i64, to: i64) -> Result<'a> {
    let length = text.chars().count();
    let bound = |at: i64| {
        let index = usize::try_from(at).ok().filter(|index| *index <= length);
        index.ok_or_else(|| out_of_range(at))
    };
    let (start, end) = (bound(from)?, bound(to)?);
    if start > end {
        return Err(EvalError::new(format!("invalid substring range. start: {from}, end: {to}")));
    }
    Ok(Value::text(text.chars().skip(start).take(end - start).collect::<String>()))
}

fn index_of<'a>(
    steps: &Steps,
    text: &str,
    part: &str,
    rest: &[Value<'a>],
    last: bool,
) -> Result<'a> {
    steps.spend((text.len() / 10 + 1).saturating_mul(part.len() / 10 + 1))?;
    let length = text.chars().count();
    let bound = match rest {
        [] => None,
        [Value::Int(at)] => {
            let index = usize::try_from(*at).map_err(|_| out_of_range(*at))?;
            if index >= length && !part.is_empty() {
                return Ok(Value::Int(-1));
            }
            Some(index.min(length))
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    let byte_of =
        |index: usize| text.char_indices().nth(index).map_or(text.len(), |(byte, _)| byte);
    let found = match (last, bound) {
        (false, bound) => {
            let from = byte_of(bound.unwrap_or_default());
            text[from..].find(part).map(|at| at + from)
        }
        (true, None) => text.rfind(part),
        (true, Some(bound)) => {
            let end = (byte_of(bound) + part.len()).min(text.len());
            text.get(..end).and_then(|head| head.rfind(part))
        }
    };
    let index = found.map(|byte| text[..byte].chars().count());
    Ok(Value::Int(index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)))
}

fn split<'a>(text: &str, mark: &str, most: usize) -> Vec<Value<'a>> {
    if most == 0 {
        return Vec::new();
    }
    if mark.is_empty() {
        return text.chars().map(|c| Value::text(c.to_string())).collect();
    }
    text.splitn(most, mark).map(Value::text).collect()
}

fn join<'a>(steps: &Steps, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    let mark = match arguments {
        [_] => "",
        [_, Value::String(mark)] => mark,
        _ => return None,
    };
    let mut texts = Vec::new();
    for item in arguments[0].items()? {
        let Value::String(text) = item else { return None };
        if let Err(error) = steps.spend((text.len() + mark.len()) / 10) {
            return Some(Err(error));
        }
        texts.push(text);
    }
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    Some(Ok(Value::text(texts.join(mark))))
}
