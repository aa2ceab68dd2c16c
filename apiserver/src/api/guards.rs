//! Admission that may refuse a complete object: pod security, the rights on owners, and the guards
//! of its kind.

use super::access::Requester;
use super::write::Write;
use super::{owner_rights, pod_security};
use crate::core::Core;
use crate::kinds::GuardedWrite;
use crate::request::ApiCall;
use crate::status::{Failure, Result};

/// Checks a write.
pub(super) fn check(core: &Core, call: &ApiCall, write: Write<'_>) -> Result<()> {
    pod_security::check(core, call, write)?;
    owner_rights::check(core, call, write)?;
    let served = &call.target.served;
    let subresource = call.target.info.subresource.as_deref().unwrap_or_default();
    let Write { new, old, name } = write;
    let find = |group: &str, plural: &str, name: &str| {
        let kind = core.kinds().find(group, "v1", plural)?;
        Some(core.get(kind.resource, name)?.fields())
    };
    let list = |group: &str, plural: &str| {
        let Some(kind) = core.kinds().find(group, "v1", plural) else { return Vec::new() };
        let objects = core.read(|storage| storage.objects(kind.resource).clone());
        objects.iter().map(|(_, stored)| stored.fields()).collect()
    };
    let author = &Requester { core, call };
    let write = GuardedWrite { new, old, find: &find, list: &list, author };
    let due = served.home.guards.iter().filter(|guard| guard.subresource == subresource);
    due.into_iter().try_for_each(|guard| {
        let refused = |detail: String| Failure::forbidden(&served.kind, name, &detail);
        (guard.check)(&write).map_err(refused)
    })
}
