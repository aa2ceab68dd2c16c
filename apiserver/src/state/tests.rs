//! Files that end anywhere, damaged files, and files that grow.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;

use super::contents::{FORMAT, read};
use super::*;

/// A write of a test: to one of a few keys.
#[derive(Debug, Clone)]
enum Step {
    Put(u8, Vec<u8>),
    Delete(u8),
    Skip(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..6_u8, proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(key, object)| Step::Put(key, object)),
        2 => (0..6_u8).prop_map(Step::Delete),
        1 => (1..9_u8).prop_map(Step::Skip),
    ];
    proptest::collection::vec(step, 0..25)
}

fn resource(key: u8) -> &'static str {
    if key.is_multiple_of(2) { "pods." } else { "widgets.example.com" }
}

/// A file, and the contents that it has up to the end of each record.
#[derive(Debug)]
struct Written {
    bytes: Vec<u8>,
    states: Vec<(usize, Contents)>,
}

/// Writes a file: a snapshot of the objects of `first`, then the steps of `then`.
fn write(first: &[Step], then: &[Step]) -> Written {
    let mut contents = Contents { revision: 1, ..Contents::default() };
    let mut ignored = Vec::new();
    for step in first {
        take(&mut contents, step, &mut ignored);
    }
    let mut bytes = FORMAT.to_vec();
    let puts: Vec<Record<'_>> = contents.records().collect();
    Record::Snapshot { revision: contents.revision, objects: puts.len() as u64 }.encode(&mut bytes);
    for put in &puts {
        put.encode(&mut bytes);
    }
    let mut states = vec![(bytes.len(), contents.clone())];
    for step in then {
        take(&mut contents, step, &mut bytes);
        states.push((bytes.len(), contents.clone()));
    }
    Written { bytes, states }
}

/// Carries out a step, and appends its record.
fn take(contents: &mut Contents, step: &Step, bytes: &mut Vec<u8>) {
    let revision = contents.revision + 1;
    match step {
        Step::Put(key, object) => {
            let (resource, key) = (resource(*key), key.to_string());
            Record::Put { revision, resource, key: &key, object }.encode(bytes);
            let kept = Kept { revision, bytes: Bytes::copy_from_slice(object) };
            contents.resources.entry(resource.to_owned()).or_default().insert(key, kept);
        }
        Step::Delete(key) => {
            let (resource, key) = (resource(*key), key.to_string());
            let objects = contents.resources.get_mut(resource);
            if objects.and_then(|objects| objects.remove(&key)).is_none() {
                return;
            }
            Record::Delete { revision, resource, key: &key }.encode(bytes);
        }
        Step::Skip(revisions) => {
            let revision = contents.revision + u64::from(*revisions);
            Record::Revision { revision }.encode(bytes);
            contents.revision = revision;
            return;
        }
    }
    contents.revision = revision;
}

/// Returns the objects, without resources that have none.
fn objects(contents: &Contents) -> BTreeMap<(&str, &str), &Kept> {
    let all = contents.resources.iter().flat_map(|(resource, objects)| {
        objects.iter().map(move |(key, kept)| ((resource.as_str(), key.as_str()), kept))
    });
    all.collect()
}

proptest! {
    #[test]
    fn file_that_ends_anywhere_has_all_complete_records(first in steps(), then in steps()) {
        let Written { bytes, states } = write(&first, &then);
        let file = Bytes::from(bytes);
        for length in 1..=file.len() {
            let result = read(&file.slice(..length));
            let Some((end, expected)) = states.iter().rfind(|(end, _)| *end <= length) else {
                prop_assert!(result.is_err(), "half a snapshot of {} bytes is read", length);
                continue;
            };
            let (contents, read_up_to) = result.unwrap();
            prop_assert_eq!(read_up_to, *end);
            prop_assert_eq!(contents.revision, expected.revision);
            prop_assert_eq!(objects(&contents), objects(expected));
        }
    }

    #[test]
    fn changed_byte_is_damage(first in steps(), then in steps()) {
        let Written { bytes, .. } = write(&first, &then);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            // No byte becomes zero, which an unwritten end consists of.
            damaged[at] = if damaged[at] == 0xff { 0xfe } else { 0xff };
            prop_assert!(read(&Bytes::from(damaged)).is_err(), "byte {at} may have any value");
        }
    }
}

fn put(revision: u64, key: &str) -> Record<'_> {
    Record::Put { revision, resource: "pods.", key, object: b"{}" }
}

#[test]
fn reopened_file_has_what_was_appended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut state = State::open(&path).unwrap();
    assert_eq!(state.revision(), 0);
    state.journal.append(&put(2, "n/a"));
    state.journal.append(&put(3, "n/b"));
    drop(state);
    let mut state = State::open(&path).unwrap();
    assert_eq!((state.revision(), objects(&state.contents).len()), (3, 2));
    state.journal.append(&Record::Delete { revision: 4, resource: "pods.", key: "n/a" });
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!((state.revision(), objects(&state.contents).len()), (4, 1));
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    // What a snapshot of an earlier run has left.
    fs::write(folder.path().join("state.new"), "half").unwrap();
    let mut state = State::open(&path).unwrap();
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    state.journal.compact(1, std::iter::empty());
    assert_eq!(mode(), 0o600);
}

#[test]
fn torn_end_is_removed_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    State::open(&path).unwrap().journal.append(&put(2, "n/a"));
    let complete = fs::metadata(&path).unwrap().len();
    State::open(&path).unwrap().journal.append(&put(3, "n/b"));
    let torn = fs::OpenOptions::new().write(true).open(&path).unwrap();
    torn.set_len(complete + 20).unwrap();
    let mut state = State::open(&path).unwrap();
    assert_eq!(state.revision(), 2);
    assert_eq!(fs::metadata(&path).unwrap().len(), complete);
    state.journal.append(&put(3, "n/c"));
    drop(state);
    let state = State::open(&path).unwrap();
    let keys: Vec<_> = objects(&state.contents).into_keys().map(|(_, key)| key).collect();
    assert_eq!(keys, ["n/a", "n/c"]);
}

#[test]
fn file_of_another_server_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let state = State::open(&path).unwrap();
    let error = State::open(&path).unwrap_err();
    assert!(matches!(error, StateError::InUse { .. }), "{error}");
    drop(state);
    State::open(&path).unwrap();
}

#[test]
fn foreign_and_damaged_files_are_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    fs::write(&path, "apiVersion: v1\n").unwrap();
    let error = State::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("is no state file of homeostat-apiserver"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");

    fs::remove_file(&path).unwrap();
    let mut state = State::open(&path).unwrap();
    let start = fs::metadata(&path).unwrap().len();
    state.journal.append(&put(2, "n/a"));
    state.journal.append(&put(3, "n/b"));
    drop(state);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(start).unwrap() + 30] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = State::open(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("is damaged at byte {start}: a record has")), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn snapshot_replaces_a_file_that_has_grown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut state = State::open(&path).unwrap();
    let object = vec![b'x'; 10_000];
    let mut revision = 1;
    while !state.journal.is_full() {
        revision += 1;
        let record = Record::Put { revision, resource: "pods.", key: "n/a", object: &object };
        state.journal.append(&record);
    }
    assert!(revision > 100, "a file of {revision} records is full");
    let mut unserved = Contents::default();
    let kept = Kept { revision: 1, bytes: Bytes::from_static(b"{}") };
    unserved.resources.entry("foos.".to_owned()).or_default().insert("n/z".to_owned(), kept);
    state.journal.keep_unserved(unserved);
    let last = Record::Put { revision, resource: "pods.", key: "n/a", object: &object };
    state.journal.compact(revision, std::iter::once(last));
    assert!(!state.journal.is_full());
    state.journal.append(&put(revision + 1, "n/b"));
    drop(state);
    assert!(fs::metadata(&path).unwrap().len() < 20_000);
    let state = State::open(&path).unwrap();
    assert_eq!(state.revision(), revision + 1);
    let keys: Vec<_> = objects(&state.contents).into_keys().collect();
    assert_eq!(keys, [("foos.", "n/z"), ("pods.", "n/a"), ("pods.", "n/b")]);
}
