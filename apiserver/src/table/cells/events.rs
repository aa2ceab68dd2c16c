//! Events.

use serde_json::{Value, json};

use crate::table::Subject;
use crate::table::text::{age, unless_empty};

pub(in crate::table) fn last_seen(event: &Subject<'_>) -> Value {
    if event.get("series").is_some_and(Value::is_object) {
        return json!(event.age("series.lastObservedTime"));
    }
    if event.time("lastTimestamp").is_some() {
        return json!(event.age("lastTimestamp"));
    }
    first_seen(event)
}

pub(in crate::table) fn first_seen(event: &Subject<'_>) -> Value {
    let first = event.time("firstTimestamp").or_else(|| event.time("eventTime"));
    json!(age(first, event.now))
}

pub(in crate::table) fn object(event: &Subject<'_>) -> Value {
    let kind = event.text("involvedObject.kind").to_lowercase();
    json!(match event.text("involvedObject.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    })
}

pub(in crate::table) fn source(event: &Subject<'_>) -> Value {
    let or =
        |first: &str, second: &str| unless_empty(event.text(first).to_owned(), event.text(second));
    let component = or("source.component", "reportingComponent");
    let instance = or("source.host", "reportingInstance");
    json!(if instance.is_empty() { component } else { format!("{component}, {instance}") })
}

pub(in crate::table) fn message(event: &Subject<'_>) -> Value {
    json!(event.text("message").trim())
}

pub(in crate::table) fn count(event: &Subject<'_>) -> Value {
    if event.get("series").is_some_and(Value::is_object) {
        return json!(event.number("series.count"));
    }
    // An event that was never repeated may omit its count.
    json!(event.number("count").max(1))
}
