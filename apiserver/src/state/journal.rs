//! The end of a state file, to which a server appends.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::beside;
use super::contents::{Contents, FORMAT, Kept};
use super::record::Record;

/// An open log.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// Marks the file as used until the journal is dropped.
    _lock: File,
    /// The size of the file in bytes.
    length: u64,
    /// The size at which a new snapshot replaces the file.
    limit: u64,
    /// The objects of kinds that the server does not serve. Each snapshot has them.
    unserved: Contents,
    buffer: Vec<u8>,
    /// True after an error: nothing is appended any more.
    has_failed: bool,
}

/// The growth, in bytes, up to which a small file needs no new snapshot.
const GROWTH: u64 = 1024 * 1024;

// === impl Journal ===

impl Journal {
    /// Creates the file, with a snapshot of no objects.
    pub(super) fn create(path: &Path, lock: File) -> io::Result<Self> {
        let (file, length) = write_snapshot(path, 1, std::iter::empty())?;
        Ok(Self::new(path, lock, file, length))
    }

    /// Opens a file of `length` bytes, of which those up to `end` are valid.
    pub(super) fn resume(path: &Path, lock: File, end: usize, length: usize) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(path)?;
        let valid = u64::try_from(end).map_err(io::Error::other)?;
        if end < length {
            file.set_len(valid)?;
        }
        Ok(Self::new(path, lock, file, valid))
    }

    fn new(path: &Path, lock: File, file: File, length: u64) -> Self {
        Self {
            path: path.to_owned(),
            file,
            _lock: lock,
            length,
            limit: limit_of(length),
            unserved: Contents::default(),
            buffer: Vec::new(),
            has_failed: false,
        }
    }

    /// Sets the objects that the server does not serve.
    pub(crate) fn keep_unserved(&mut self, unserved: Contents) {
        self.unserved = unserved;
    }

    /// Takes the objects of a resource that the server serves from now on.
    pub(crate) fn take_unserved(&mut self, resource: &str) -> Option<BTreeMap<String, Kept>> {
        self.unserved.resources.remove(resource)
    }

    /// Returns true if the file could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns true if a snapshot should replace the file.
    pub(crate) fn is_full(&self) -> bool {
        self.length >= self.limit && !self.has_failed
    }

    /// Appends a record. The operating system has it when this returns, so that it survives the end
    /// of the process.
    pub(crate) fn append(&mut self, record: &Record<'_>) {
        if self.has_failed {
            return;
        }
        self.buffer.clear();
        record.encode(&mut self.buffer);
        match self.file.write_all(&self.buffer) {
            Ok(()) => self.length += self.buffer.len() as u64,
            Err(error) => self.fail(&error, "cannot append to the state file"),
        }
    }

    /// Replaces the file by a snapshot: `objects` are the puts of all objects.
    pub(crate) fn compact<'a>(&mut self, revision: u64, objects: impl Iterator<Item = Record<'a>>) {
        if self.has_failed {
            return;
        }
        let mut records: Vec<Record<'_>> = objects.collect::<Vec<_>>();
        records.extend(self.unserved.records());
        let written = write_snapshot(&self.path, revision, records.into_iter());
        match written {
            Ok((file, length)) => {
                (self.file, self.length, self.limit) = (file, length, limit_of(length));
            }
            Err(error) => self.fail(&error, "cannot write a snapshot of the state file"),
        }
    }

    fn fail(&mut self, error: &io::Error, what: &str) {
        self.has_failed = true;
        tracing::error!(file = %self.path.display(), %error, "{what}; the server stops");
    }
}

fn limit_of(snapshot: u64) -> u64 {
    snapshot.saturating_mul(2).saturating_add(GROWTH)
}

/// Creates a file that only the current user can read: the objects include secrets.
fn create_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a snapshot to a file beside `path`, which it then replaces. Returns the file, open at its
/// end, and its size.
fn write_snapshot<'a>(
    path: &Path,
    revision: u64,
    objects: impl ExactSizeIterator<Item = Record<'a>>,
) -> io::Result<(File, u64)> {
    let partial = beside(path, "new");
    let mut file = BufWriter::new(create_private(&partial)?);
    file.write_all(FORMAT)?;
    let mut length = FORMAT.len() as u64;
    let start = Record::Snapshot { revision, objects: objects.len() as u64 };
    let mut buffer = Vec::new();
    for record in std::iter::once(start).chain(objects) {
        buffer.clear();
        record.encode(&mut buffer);
        file.write_all(&buffer)?;
        length += buffer.len() as u64;
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    // The content must be on the disk before the file takes the place of the other one.
    file.sync_all()?;
    fs::rename(&partial, path)?;
    Ok((file, length))
}
