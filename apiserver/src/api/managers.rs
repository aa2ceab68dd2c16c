//! The managers of fields that `managedFields` records: the client of a request, and the server.

use std::sync::Arc;

use super::conversion::Converter;
use super::server_objects::SERVER;
use crate::admission::field_manager::{Converter as ConvertVersions, FieldManager};
use crate::admission::target::Target;
use crate::clock::rfc3339;
use crate::core::Core;
use crate::request::ApiCall;

/// Returns the client as `managedFields` records it.
pub(super) fn field_manager(core: &Core, call: &ApiCall) -> FieldManager {
    FieldManager {
        name: call.field_manager(),
        subresource: call.target.info.subresource.clone().unwrap_or_default(),
        target: target_of(call),
        now: rfc3339(call.conversation.time(core.clock.now())),
        converter: converter(call),
    }
}

/// Returns the converter of the request's objects, if a webhook converts them.
fn converter(call: &ApiCall) -> Option<Arc<ConvertVersions>> {
    let converter = Converter::of(call);
    converter.calls_webhook().then(|| Arc::new(converter) as Arc<ConvertVersions>)
}

/// Returns the part of the object that a request writes.
pub(super) fn target_of(call: &ApiCall) -> Target {
    match call.target.info.subresource.as_deref() {
        Some("status") => Target::Status,
        Some("finalize") => Target::Finalize,
        Some("resize") => Target::Resize,
        Some(name) => call.target.served.kind.part(name).map_or(Target::Object, Target::Part),
        None => Target::Object,
    }
}

/// Returns the server as the owner of what it writes itself.
pub(super) fn server_manager(core: &Core, target: Target) -> FieldManager {
    let subresource = if target == Target::Status { "status" } else { "" };
    FieldManager {
        name: SERVER.to_owned(),
        subresource: subresource.to_owned(),
        target,
        now: rfc3339(core.clock.now()),
        converter: None,
    }
}
