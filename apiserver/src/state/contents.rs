//! The objects that a log leads to.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::record::{Broken, Record};

/// The first line of a state file.
pub(super) const FORMAT: &[u8] = b"homeostat-apiserver state 1\n";

/// The objects of a state file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The revision of the last write; 0 for a new file.
    pub(crate) revision: u64,
    /// The objects of each resource, by key.
    pub(crate) resources: BTreeMap<String, BTreeMap<String, Kept>>,
}

/// An object in a state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) revision: u64,
    pub(crate) bytes: Bytes,
}

/// A file cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Foreign,
    Damaged { offset: usize, detail: &'static str },
}

/// Reads a file that is not empty. Returns its contents, and the offset after the last complete
/// record.
pub(super) fn read(file: &Bytes) -> Result<(Contents, usize), Problem> {
    if !file.starts_with(FORMAT) {
        return Err(Problem::Foreign);
    }
    let mut contents = Contents::default();
    // The number of objects that the snapshot still has; `None` before it.
    let mut missing = None;
    let mut at = FORMAT.len();
    while at < file.len() || missing != Some(0) {
        let damaged = |detail| Problem::Damaged { offset: at, detail };
        let next = match file.get(at..).filter(|rest| !rest.is_empty()) {
            Some(rest) => Record::read(rest),
            None => Err(Broken::Torn),
        };
        let (record, size) = match next {
            Ok(next) => next,
            Err(Broken::Torn) if missing == Some(0) => break,
            // A snapshot is complete before the file has its name.
            Err(Broken::Torn) => return Err(damaged("the snapshot at its start is incomplete")),
            Err(Broken::Damaged(detail)) => return Err(damaged(detail)),
        };
        missing = match (missing, record) {
            (None, Record::Snapshot { revision, objects }) => {
                contents.revision = revision;
                Some(objects)
            }
            (None, _) | (_, Record::Snapshot { .. }) => {
                return Err(damaged("a record is not at its place"));
            }
            (Some(0), record) => {
                if record.revision() <= contents.revision {
                    return Err(damaged("a record is older than the one before"));
                }
                contents.apply(file, record).map_err(damaged)?;
                contents.revision = record.revision();
                Some(0)
            }
            (Some(objects), Record::Put { revision, .. }) if revision <= contents.revision => {
                contents.apply(file, record).map_err(damaged)?;
                Some(objects - 1)
            }
            (Some(_), _) => return Err(damaged("a record is not at its place")),
        };
        at += size;
    }
    Ok((contents, at))
}

// === impl Contents ===

impl Contents {
    fn apply(&mut self, file: &Bytes, record: Record<'_>) -> Result<(), &'static str> {
        match record {
            Record::Put { revision, resource, key, object } => {
                let kept = Kept { revision, bytes: file.slice_ref(object) };
                let objects = match self.resources.get_mut(resource) {
                    Some(objects) => objects,
                    None => self.resources.entry(resource.to_owned()).or_default(),
                };
                objects.insert(key.to_owned(), kept);
            }
            Record::Delete { resource, key, .. } => {
                let objects = self.resources.get_mut(resource);
                if objects.and_then(|objects| objects.remove(key)).is_none() {
                    return Err("a record deletes an object that is not there");
                }
            }
            Record::Snapshot { .. } | Record::Revision { .. } => {}
        }
        Ok(())
    }

    /// Returns the objects as the records of a snapshot.
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.resources.iter().flat_map(|(resource, objects)| {
            objects.iter().map(move |(key, kept)| Record::Put {
                revision: kept.revision,
                resource,
                key,
                object: &kept.bytes,
            })
        })
    }
}
