//! The effects of a `CustomResourceDefinition`: its conditions, its kinds, and the deletion of its
//! objects. The API server's own controllers carry them out, a moment after each write.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::conversion::Converter;
use super::delete::delete_object;
use super::managers::server_manager;
use super::{api_services, kept_objects};
use crate::admission::create::{self, SystemMetadata};
use crate::admission::delete::DeleteOptions;
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::admission::update::{self, Change, Outcome};
use crate::admission::{finalizers, is_terminating, meta_text, metadata_mut};
use crate::clock::rfc3339;
use crate::core::{Core, Settling};
use crate::fields::Fields;
use crate::kinds::crd::conditions::{self, Condition};
use crate::kinds::crd::names_in_use::NamesInUse;
use crate::kinds::crd::{CLEANUP, steps};
use crate::kinds::{Kinds, Served};
use crate::object::Stored;
use crate::status::{Failure, Result};

/// The time between a write and its next effect.
const MOMENT: Duration = Duration::from_millis(10);

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The definition is done, or its next step follows a write.
    Done,
    /// Objects with finalizers are still to be removed.
    Waiting,
}

/// Serves the new state of definitions whose kinds are served already. The next request sees it: on
/// the real server, too, the change is faster than a client.
///
/// Each write is served by one call. The others wait for it: one of them may be the request that
/// wrote.
pub(crate) fn serve_changed_definitions(core: &Core) {
    let _installing = core.installing.lock();
    for name in core.take_unserved_definitions() {
        let kinds = core.kinds();
        let stored =
            kinds.installed(&name).and_then(|_| core.get(kinds.definitions().resource, &name));
        if let Some(stored) = stored {
            api_services::following(core, &name, || install_kinds(core, &name, &stored.fields()));
        }
    }
}

/// Carries out the effects of written definitions, until none is left.
pub(crate) async fn settle(mut settling: Settling) {
    let core = Arc::clone(settling.core());
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = core.stopped.cancelled() => return,
            () = tokio::time::sleep(MOMENT) => {}
        }
        let changed = core.changes.next();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let written = if waiting.is_empty() {
            let Some(written) = settling.next() else { return };
            written
        } else {
            core.take_written_definitions()
        };
        let is_idle = written.is_empty();
        let visited: BTreeSet<String> = written.into_iter().chain(waiting).collect();
        waiting =
            visited.into_iter().filter(|name| step(&core, name) == Progress::Waiting).collect();
        if is_idle && !waiting.is_empty() {
            tokio::select! {
                biased;
                () = core.stopped.cancelled() => return,
                () = changed => {}
            }
        }
    }
}

/// Stores a definition and carries out all of its effects.
///
/// # Errors
///
/// Fails if the definition is invalid, or if one of its name exists.
pub(crate) fn install(core: &Core, definition: Fields) -> Result<()> {
    let served = core.kinds().definitions();
    let now = core.clock.now();
    let owners = &Ownership::Tracked(server_manager(core, Target::Object));
    let (uid, author) = (core.chance.uid(), core.access.admin());
    let suffix = String::new();
    let system = SystemMetadata { now, uid, suffix, owners, author, allocator: None };
    let new = create::prepare(&served.home, &served.kind, "", definition, &system)?;
    let name = meta_text(&new, "name").to_owned();
    let encoded = served.encode(new);
    if core.put(served.resource, &name, None, encoded).is_err() {
        return Err(Failure::already_exists(&served.kind, &name, false));
    }
    loop {
        let written = core.take_written_definitions();
        if written.is_empty() {
            return Ok(());
        }
        for name in written {
            step(core, &name);
        }
    }
}

/// Builds the kinds of all stored definitions again, after a backup was restored.
pub(crate) fn reinstall(core: &Core) {
    let _installing = core.installing.lock();
    drop(core.take_unserved_definitions());
    let kinds = core.kinds();
    let definitions = kinds.definitions().resource;
    let stored = core.read(|storage| storage.objects(definitions).clone());
    for name in kinds.installed_names().filter(|name| !stored.contains_key(name.as_str())) {
        uninstall(core, name);
    }
    *core.names_in_use.lock() = NamesInUse::default();
    for (name, definition) in &stored {
        let fields = definition.fields();
        core.names_in_use.lock().record(name, Some(&fields));
        install_kinds(core, name, &fields);
        core.revisit_definition(name);
    }
}

/// Carries out the next effect of a definition.
fn step(core: &Core, name: &str) -> Progress {
    api_services::following(core, name, || next_effect(core, name))
}

fn next_effect(core: &Core, name: &str) -> Progress {
    let served = core.kinds().definitions();
    let Some((stored, definition)) = install_stored(core, &served, name) else {
        let mut names = core.names_in_use.lock();
        names.record(name, None);
        // They may take over the names.
        names.refused(name).iter().for_each(|other| core.revisit_definition(other));
        return Progress::Done;
    };
    let now = rfc3339(core.clock.now());
    let next = {
        let mut names = core.names_in_use.lock();
        names.record(name, Some(&definition));
        steps::next(&definition, names.of_others(name), &now)
    };
    if let Some(new) = next {
        write(core, &served, &stored, &definition, new);
        return Progress::Done;
    }
    if is_terminating(&definition) && finalizers(&definition).contains(&CLEANUP) {
        return clean_up(core, &served, &stored, &definition);
    }
    Progress::Done
}

/// Serves the kinds of a definition as it is stored, and returns it; `None` if it is gone.
fn install_stored(core: &Core, served: &Served, name: &str) -> Option<(Arc<Stored>, Fields)> {
    let _installing = core.installing.lock();
    let Some(stored) = core.get(served.resource, name) else {
        uninstall(core, name);
        return None;
    };
    let definition = stored.packed_fields();
    install_kinds(core, name, &definition);
    Some((stored, definition))
}

/// Serves the kinds of an established definition.
fn install_kinds(core: &Core, name: &str, definition: &Fields) {
    if !conditions::is_true(definition, "Established") {
        return uninstall(core, name);
    }
    // The storage is ready before a request can use the new kinds.
    let prepared = |kinds: &Kinds| {
        let after = kinds.with_definition(name, definition)?;
        let served = &after.installed(name)?.served;
        // Writes by the old kinds that come after this have the fields of the old ones.
        end_watches(kinds, name);
        core.name_resource(served.resource, name);
        kept_objects::adopt(core, served);
        core.reopen(served.resource, |stored| Arc::new(served.relabel(stored)));
        Some(after)
    };
    let Some((_, after)) = core.update_kinds(prepared) else { return };
    let Some(installed) = after.installed(name) else { return };
    let kind = &installed.served.kind;
    let others = kind.other_names();
    core.faults.add_resource(&kind.plural, others.iter().map(String::as_str));
}

/// Gives the objects of a kind the fields of its present definition, if a write was carried out by
/// an earlier one: the definition has changed while the write waited, as for a webhook.
pub(super) fn relabel_after_write(core: &Core, served: &Served) {
    let definition = served.kind.definition.as_ref();
    if !definition.is_some_and(|definition| definition.retired().is_cancelled()) {
        return;
    }
    let kinds = core.kinds();
    let Some(installed) = kinds.installed(&served.resource_name()) else { return };
    let served = &installed.served;
    core.reopen(served.resource, |stored| Arc::new(served.relabel(stored)));
}

fn uninstall(core: &Core, name: &str) {
    if let Some((before, _)) = core.update_kinds(|kinds| kinds.without_definition(name)) {
        end_watches(&before, name);
    }
}

fn end_watches(kinds: &Kinds, name: &str) {
    if let Some(installed) = kinds.installed(name) {
        installed.retired.cancel();
    }
}

/// Deletes the objects of a definition, then lets the definition go.
fn clean_up(core: &Core, served: &Served, stored: &Arc<Stored>, definition: &Fields) -> Progress {
    let name = meta_text(definition, "name");
    let now = rfc3339(core.clock.now());
    let begun = Condition::new("Terminating", "True", "InstanceDeletionInProgress")
        .with_message("CustomResource deletion is in progress");
    if let Some(new) = conditions::with_condition(definition, &begun, &now) {
        write(core, served, stored, definition, new);
        return Progress::Done;
    }
    let kinds = core.kinds();
    let mut ended = Condition::new("Terminating", "False", "NeverEstablished")
        .with_message("resource was never established");
    if let Some(installed) = kinds.installed(name) {
        if !delete_objects(core, &installed.served) {
            return Progress::Waiting;
        }
        ended = Condition::new("Terminating", "False", "InstanceDeletionCompleted")
            .with_message("removed all instances");
    }
    let mut new = definition.clone();
    conditions::set(&mut new, &ended, &now);
    if let Some(Value::Array(list)) = metadata_mut(&mut new).get_mut("finalizers") {
        list.retain(|finalizer| *finalizer != CLEANUP);
    }
    write(core, served, stored, definition, new);
    Progress::Done
}

/// Deletes all objects of a kind; returns whether none is left.
fn delete_objects(core: &Core, served: &Served) -> bool {
    let objects = core.read(|storage| storage.objects(served.resource).clone());
    let converter = Converter::without_webhook(served);
    for (key, stored) in objects.iter().filter(|(_, stored)| !stored.selectable.terminating) {
        // An object that a client deletes at the same time is gone as well.
        let options = DeleteOptions::default();
        let named = (&**key, &*stored.selectable.name);
        drop(delete_object(core, &converter, named, &options, &|_| Ok(())));
    }
    core.read(|storage| storage.objects(served.resource).is_empty())
}

/// Writes the status of a definition. If the definition has changed in the meantime, the write is
/// dropped: the change has made the definition pending.
fn write(core: &Core, served: &Served, stored: &Stored, old: &Fields, new: Fields) {
    let owners = &Ownership::Tracked(server_manager(core, Target::Status));
    let change = Change { old, new, target: Target::Status, owners };
    let (name, revision) = (&stored.selectable.name, stored.revision);
    match update::prepare(&served.home, &served.kind, change, None, None) {
        Ok((Outcome::Store(new), _)) => {
            let _installing = core.installing.lock();
            let present = core.get(served.resource, name);
            if present.is_none_or(|present| present.revision != revision) {
                return;
            }
            core.names_in_use.lock().record(name, Some(&new));
            // A client that sees the condition `Established` uses the kind at once.
            install_kinds(core, name, &new);
            drop(core.put(served.resource, name, Some(revision), served.encode(new)));
        }
        Ok((Outcome::Delete(_), _)) => {
            drop(core.delete(served.resource, name, revision));
        }
        Ok((Outcome::Unchanged, _)) => {}
        Err(failure) => {
            tracing::warn!(definition = %name, error = %failure.message, "cannot write the status");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use homeostat_core::WallClock;
    use homeostat_faults::Faults;

    use super::*;
    use crate::clock::Chance;

    /// Longer than a request takes that does not wait.
    const SOON: Duration = Duration::from_millis(100);
    /// Ends a test that hangs.
    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn request_waits_while_another_one_serves_its_definition() {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let (clock, faults) = (WallClock::new(Some(epoch)), Faults::seeded(1));
        let core = Core::new(Kinds::new(Vec::new()), clock, Chance::new(1), faults);
        let (done, is_done) = mpsc::sync_channel(1);
        thread::scope(|scope| {
            let installing = core.installing.lock();
            scope.spawn(|| {
                serve_changed_definitions(&core);
                done.send(()).unwrap();
            });
            assert_eq!(is_done.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Timeout));
            drop(installing);
            is_done.recv_timeout(TIMEOUT).unwrap();
        });
    }
}
