//! Runtime classes.

use serde_json::Value;

use super::Check;
use super::Test::{Required, Text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

pub(crate) fn runtime_class(class: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    const CLASS: &[Check] = &[("handler", Required("")), ("handler", Text(names::dns_label))];
    super::run(CLASS, &Value::Object(class.clone()), "", causes);
    super::unchanged(&["handler"], class, old, causes);
}
