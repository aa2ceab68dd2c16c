//! The functions of URLs.

use std::rc::Rc;

use crate::cel::value::Value;
use crate::url::Url;

/// Calls a function without arguments.
pub(super) fn call<'a>(url: &Url, name: &str) -> Option<Value<'a>> {
    Some(match name {
        "getScheme" => Value::text(url.scheme()),
        "getHost" => Value::text(url.host()),
        "getHostname" => Value::text(url.host_name()),
        "getPort" => Value::text(url.port()),
        "getEscapedPath" => Value::text(url.path()),
        "getQuery" => query(url),
        _ => return None,
    })
}

fn query<'a>(url: &Url) -> Value<'a> {
    let values = |values: Vec<String>| Value::list(values.into_iter().map(Value::text).collect());
    let entries = url.query().into_iter().map(|(key, found)| (Value::text(key), values(found)));
    Value::Map(Rc::new(entries.collect()))
}
