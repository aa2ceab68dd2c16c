//! Admission by limit ranges: pods get defaults, and a write that exceeds a limit range of its
//! namespace is refused (the plugin `LimitRanger` of kube-apiserver).

use std::sync::Arc;

use homeostat_schema::aggregate;
use serde_json::Value;

use crate::admission::target::Target;
use crate::admission::{is_terminating, meta_text};
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::Served;
use crate::kinds::limit_range::{LimitRange, Limited};
use crate::status::{Failure, Result};

/// Fills in the defaults of a new object, or of one that is resized.
pub(super) fn complete(core: &Core, served: &Served, namespace: &str, object: &mut Fields) {
    let Some(limited) = served.home.limited else { return };
    let ranges = ranges(core, namespace);
    if !ranges.is_empty() {
        // A request that follows from a limit comes before the defaults.
        served.home.complete(object);
        for range in &ranges {
            (limited.complete)(range, object);
        }
    }
}

/// Fills in the defaults of an object that is updated.
pub(super) fn complete_update(
    core: &Core,
    served: &Served,
    old: &Fields,
    target: Target,
    new: &mut Fields,
) {
    if target == Target::Resize && !is_terminating(old) {
        complete(core, served, meta_text(old, "namespace"), new);
    }
}

/// Checks a new object.
pub(super) fn check(core: &Core, served: &Served, new: &Fields) -> Result<()> {
    let Some(limited) = served.home.limited else { return Ok(()) };
    check_with(core, served, &limited, new)
}

/// Checks the new state of an object.
pub(super) fn check_update(
    core: &Core,
    served: &Served,
    old: &Fields,
    target: Target,
    new: &Fields,
) -> Result<()> {
    let Some(limited) = served.home.limited else { return Ok(()) };
    let is_checked = target == Target::Resize || limited.on_update && target == Target::Object;
    if !is_checked || is_terminating(old) {
        return Ok(());
    }
    check_with(core, served, &limited, new)
}

fn check_with(core: &Core, served: &Served, limited: &Limited, new: &Fields) -> Result<()> {
    for range in ranges(core, meta_text(new, "namespace")) {
        let refusals = (limited.check)(&range, new);
        if !refusals.is_empty() {
            let detail = aggregate(refusals);
            return Err(Failure::forbidden(&served.kind, meta_text(new, "name"), &detail));
        }
    }
    Ok(())
}

/// Returns the limit ranges of a namespace, in the order of their names.
fn ranges(core: &Core, namespace: &str) -> Vec<LimitRange> {
    let Some(kind) = core.kinds().find("", "v1", "limitranges") else { return Vec::new() };
    let all = core.read(|storage| storage.objects(kind.resource).clone());
    let prefix = format!("{namespace}/");
    let from: Arc<str> = prefix.as_str().into();
    let own = all.range(from..).take_while(|(key, _)| key.starts_with(&prefix));
    own.filter_map(|(_, range)| serde_json::from_value(Value::Object(range.fields())).ok())
        .collect()
}
