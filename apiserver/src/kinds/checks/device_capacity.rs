//! Attributes and capacities of a device, and the amounts of a capacity that a request can take.

use homeostat_quantity::Quantity;
use serde_json::{Value, json};

use super::device_parts::identifier;
use super::{Causes, NOT_NEGATIVE, items, join, member, text, volumes};
use crate::quantity;
use crate::status::Cause;

/// The longest text or version of an attribute.
const MAX_TEXT: usize = 64;
/// The longest name of an attribute or a capacity in a message: a domain, a slash and a name.
const MAX_SHOWN: usize = 63 + 1 + 32;
/// The most amounts of which a request can take one.
const MAX_VALUES: usize = 10;

/// The values of an attribute. The lists are of a feature that is off: none of them is stored.
const VALUES: [&str; 8] =
    ["int", "bool", "string", "version", "ints", "bools", "strings", "versions"];

/// Checks the attributes of a device.
pub(super) fn attributes(device: &Value, at: &str, causes: Causes<'_>) {
    let at = join(at, "attributes");
    for (name, attribute) in member(device, "attributes").as_object().into_iter().flatten() {
        key(name, &at, causes);
        let shown = shortened(name);
        let at = format!("{at}[{shown}]");
        lengths(attribute, &at, causes);
        // The declared rule has the whole name, so that it replaces no cause with a shortened one.
        if shown != *name && values_of(attribute).is_empty() {
            let detail = "exactly one value must be specified";
            causes.push(Cause::invalid(at, &json!(""), detail));
        }
    }
}

/// Checks the name of an attribute or a capacity, with or without a domain.
fn key(name: &str, at: &str, causes: Causes<'_>) {
    let refuse_empty =
        |part: &str| Cause::invalid(at, &json!(""), &format!("the {part} must not be empty"));
    match name.split('/').collect::<Vec<_>>()[..] {
        [id] => identifier(id, at, causes),
        [domain, id] => {
            match domain {
                "" => causes.push(refuse_empty("domain")),
                domain => volumes::driver(&Value::Null, &json!(domain), at, causes),
            }
            match id {
                "" => causes.push(refuse_empty("name")),
                id => identifier(id, at, causes),
            }
        }
        // As in upstream, names with two slashes are not checked.
        _ => {}
    }
}

/// Returns a name without its middle if it is too long.
fn shortened(name: &str) -> String {
    let kept = MAX_SHOWN - 3;
    let start = name.get(..kept.div_ceil(2));
    let end = name.get(name.len().saturating_sub(kept / 2)..);
    match (start, end) {
        (Some(start), Some(end)) if name.len() > MAX_SHOWN => format!("{start}...{end}"),
        _ => name.to_owned(),
    }
}

fn lengths(attribute: &Value, at: &str, causes: Causes<'_>) {
    let too_long = |name: &str| text(attribute, name).len() > MAX_TEXT;
    if too_long("string") {
        causes.push(Cause::too_long(join(at, "string"), MAX_TEXT));
    }
    let version = member(attribute, "version");
    if version.as_str().is_some_and(|version| !is_version(version)) {
        let detail = "must be a string compatible with semver.org spec 2.0.0";
        causes.push(Cause::invalid(join(at, "version"), version, detail));
    }
    if too_long("version") {
        causes.push(Cause::too_long(join(at, "version"), MAX_TEXT));
    }
}

/// Returns true if a text is a version of the form `1.2.3-rc.1+build`.
fn is_version(text: &str) -> bool {
    let (rest, build) =
        text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, release) =
        rest.split_once('-').map_or((rest, None), |(core, release)| (core, Some(release)));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3
        && parts.into_iter().all(is_number)
        && release.is_none_or(|release| {
            release.split('.').all(|part| is_word(part) && (!is_digits(part) || is_number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(is_word))
}

/// Checks by the declared rules that each attribute has one value.
pub(super) fn declared_attributes(device: &Value, at: &str, causes: Causes<'_>) {
    for (name, attribute) in member(device, "attributes").as_object().into_iter().flatten() {
        one_value(attribute, &format!("{at}.attributes[{name}]"), causes);
    }
}

/// Returns the names of the values that an attribute has.
fn values_of(attribute: &Value) -> Vec<&'static str> {
    VALUES.into_iter().filter(|name| !member(attribute, name).is_null()).collect()
}

fn one_value(attribute: &Value, at: &str, causes: Causes<'_>) {
    let known = VALUES.map(|name| format!("`{name}`")).join(", ");
    let given = values_of(attribute);
    match given.len() {
        0 => {
            let detail = format!("must specify one of: {known}");
            causes.push(Cause::invalid(at, &json!(""), &detail));
        }
        1 => {}
        _ => {
            let shown = json!(format!("{{{}}}", given.join(", ")));
            let detail = format!("must specify exactly one of: {known}");
            causes.push(Cause::invalid(at, &shown, &detail));
        }
    }
}

// === capacities ===

/// Checks the capacities of a device, and the amounts of them that a request can take.
pub(super) fn capacities(device: &Value, at: &str, causes: Causes<'_>) {
    let is_shared = *member(device, "allowMultipleAllocations") == true;
    let at = join(at, "capacity");
    for (name, capacity) in member(device, "capacity").as_object().into_iter().flatten() {
        key(name, &at, causes);
        let at = format!("{at}[{}].requestPolicy", shortened(name));
        match member(capacity, "requestPolicy") {
            Value::Null => {}
            policy if is_shared => {
                let all = quantity::read(member(capacity, "value")).unwrap_or_default();
                request_policy(policy, &all, &at, causes);
            }
            _ => causes.push(Cause::forbidden(at, "allowMultipleAllocations must be true")),
        }
    }
}

fn request_policy(policy: &Value, all: &Quantity, at: &str, causes: Causes<'_>) {
    let (values, range) = (items(member(policy, "validValues")), member(policy, "validRange"));
    let amount = quantity::read(member(policy, "default"));
    let by = match (values.is_empty(), range.is_null()) {
        (true, true) => return,
        (false, true) => "validValues",
        (true, false) => "validRange",
        (false, false) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \
                \"validRange\" at the same time";
            causes.push(Cause::forbidden(at, detail));
            return;
        }
    };
    let Some(amount) = amount else {
        let detail = format!("required when {by} is defined");
        causes.push(Cause::required(join(at, "default"), &detail));
        return;
    };
    if range.is_null() {
        valid_values(values, &amount, all, &join(at, by), causes);
    } else if let Some(range) = Range::read(range, amount, &join(at, by), causes) {
        range.check(all, &join(at, by), causes);
    }
}

fn shown(amount: &Quantity) -> Value {
    json!(amount.to_string())
}

fn valid_values(values: &[Value], amount: &Quantity, all: &Quantity, at: &str, causes: Causes<'_>) {
    let values: Vec<Quantity> = values.iter().filter_map(quantity::read).collect();
    for (place, pair) in values.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let at = format!("{at}[{}]", place + 1);
            let detail = "values must be sorted in ascending order";
            causes.push(Cause::invalid(at, &shown(&pair[1]), detail));
        }
    }
    let checked: &[Quantity] = if values.len() > MAX_VALUES { &[] } else { &values };
    if values.len() > MAX_VALUES {
        causes.push(Cause::too_many(at, values.len(), MAX_VALUES));
    }
    for (place, value) in checked.iter().enumerate().filter(|(_, value)| *value > all) {
        let detail = format!("option is larger than capacity value: {all}");
        causes.push(Cause::invalid(format!("{at}[{place}]"), &shown(value), &detail));
    }
    for (place, value) in checked.iter().enumerate() {
        // Fractions are of a feature that is off: the real server compares rounded amounts.
        let same = |other: &Quantity| other.value() == value.value();
        if checked[..place].iter().any(same) {
            let key = json!(value.value().to_string());
            causes.push(Cause::duplicate(format!("{at}[{place}]"), &key));
        }
    }
    if !checked.contains(amount) {
        let detail = "default value is not valid according to the requestPolicy";
        causes.push(Cause::invalid(at, &shown(amount), detail));
    }
}

/// Amounts between two ends, which are a number of steps apart.
struct Range {
    default: Quantity,
    min: Quantity,
    max: Option<Quantity>,
    step: Option<Quantity>,
}

// === impl Range ===

impl Range {
    fn read(range: &Value, default: Quantity, at: &str, causes: Causes<'_>) -> Option<Self> {
        let [min, max, step] = ["min", "max", "step"].map(|key| quantity::read(member(range, key)));
        if min.is_none() {
            let detail = "required when validRange is defined";
            causes.push(Cause::required(join(at, "min"), detail));
        }
        Some(Self { default, min: min?, max, step })
    }

    fn check(&self, all: &Quantity, at: &str, causes: Causes<'_>) {
        let Self { default, min, max, step } = self;
        let mut refuse = |key: &str, value: &Quantity, problem: &str, limit: &Quantity| {
            let detail = format!("{problem}: {limit}");
            causes.push(Cause::invalid(join(at, key), &shown(value), &detail));
        };
        if min > all {
            refuse("min", min, "min is larger than capacity value", all);
        }
        if default < min {
            refuse("default", default, "default is less than min", min);
        }
        if let Some(max) = max {
            if min > max {
                refuse("max", min, "min is larger than max", max);
            }
            if max > all {
                refuse("max", max, "max is larger than capacity value", all);
            }
            if default > max {
                refuse("default", default, "default is more than max", max);
            }
        }
        match step {
            Some(step) if step.is_positive() => self.check_step(step, all, at, causes),
            Some(step) => {
                let at = join(at, "step");
                causes.push(Cause::invalid(at, &shown(step), "must be greater than zero"));
            }
            None => {}
        }
    }

    fn check_step(&self, step: &Quantity, all: &Quantity, at: &str, causes: Causes<'_>) {
        let Self { default, min, max, .. } = self;
        let step_at = join(at, "step");
        let next = min + step;
        if next > *all {
            let detail = format!("one step {next} is larger than capacity value: {all}");
            causes.push(Cause::invalid(&step_at, &shown(step), &detail));
        }
        let before = causes.len();
        let ends = [("default", Some(default)), ("min", Some(min)), ("max", max.as_ref())];
        for (key, value) in ends.into_iter().chain([("step", Some(step))]) {
            let wrong = value.and_then(out_of_range).zip(value);
            causes.extend(
                wrong.map(|(detail, value)| Cause::invalid(join(at, key), &shown(value), detail)),
            );
        }
        if causes.len() > before {
            return;
        }
        for value in [Some(default), max.as_ref()].into_iter().flatten() {
            if (value.value() - min.value()) % step.value() != 0 {
                let detail =
                    format!("value is not a multiple of a given step ({step}) from ({min})");
                causes.push(Cause::invalid(&step_at, &shown(value), &detail));
            }
        }
    }
}

/// Returns why an amount cannot be counted in steps.
fn out_of_range(amount: &Quantity) -> Option<&'static str> {
    if amount.is_negative() {
        Some(NOT_NEGATIVE)
    } else if *amount > Quantity::from(i64::MAX) {
        Some("must not be larger than 9223372036854775807")
    } else {
        None
    }
}
