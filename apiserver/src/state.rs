//! The state file: a log of all writes, from which a server starts with the objects of an earlier
//! one.
//!
//! The file starts with a line that names the format, and a snapshot. Each write to a store appends
//! a record, with a checksum, before the client gets its reply. A record that the end of the file
//! cuts short belongs to a write that no client knows of, and is dropped. Any other record that
//! cannot be read is damage, and the file is refused.
//!
//! When the log has grown to twice the size of its snapshot and 1 MiB more, a new snapshot replaces
//! the file. No function here knows what the objects mean.

mod contents;
mod journal;
mod record;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use contents::Problem;

pub(crate) use contents::{Contents, Kept};
pub(crate) use journal::Journal;
pub(crate) use record::Record;

/// An open state file, with the objects in it; see [`Builder::state`](crate::Builder::state).
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::{ApiServer, State};
///
/// let folder = std::env::temp_dir().join(format!("homeostat-state-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let state = State::open(folder.join("state"))?;
/// let server = ApiServer::builder().state(state).build();
/// drop(server);
/// // Another server goes on where the first one ended.
/// assert!(State::open(folder.join("state"))?.revision() > 1);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct State {
    pub(crate) contents: Contents,
    pub(crate) journal: Journal,
}

/// A state file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Another server uses the file.
    #[error("the state file {} is in use by another server", path.display())]
    InUse {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file was not written by a server.
    #[error("{} is no state file of homeostat-apiserver", path.display())]
    Foreign {
        /// The path of the file.
        path: PathBuf,
    },
    /// A part of the file that is not its end is damaged.
    #[error(
        "the state file {} is damaged at byte {offset}: {detail}; restore it from a copy, or \
         remove it to start without objects",
        path.display()
    )]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The offset of the damaged record.
        offset: u64,
        /// The kind of damage.
        detail: &'static str,
    },
    /// The file cannot be read or written.
    #[error("cannot use the state file {}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

// === impl State ===

impl State {
    /// Opens a state file, or creates it. The file `PATH.lock` beside it marks it as used.
    ///
    /// If the last record is incomplete, as after a crash of the machine, it is removed, and a
    /// warning is logged.
    ///
    /// # Errors
    ///
    /// Fails if another server uses the file, if the file is damaged or is no state file, and if
    /// the operating system refuses access.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let path = path.into();
        let failed = |source| StateError::Io { path: path.clone(), source };
        let lock = File::create(beside(&path, "lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let file = match fs::read(&path) {
            Ok(file) => Bytes::from(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Bytes::new(),
            Err(source) => return Err(failed(source)),
        };
        if file.is_empty() {
            let journal = Journal::create(&path, lock).map_err(failed)?;
            return Ok(Self { contents: Contents::default(), journal });
        }
        let (contents, end) = contents::read(&file).map_err(|problem| match problem {
            Problem::Foreign => StateError::Foreign { path: path.clone() },
            Problem::Damaged { offset, detail } => {
                let offset = u64::try_from(offset).unwrap_or(u64::MAX);
                StateError::Damaged { path: path.clone(), offset, detail }
            }
        })?;
        if end < file.len() {
            let cut = file.len() - end;
            tracing::warn!(
                file = %path.display(), bytes = cut, revision = contents.revision,
                "removed the incomplete record at the end of the state file: its write was never \
                 acknowledged"
            );
        }
        let journal = Journal::resume(&path, lock, end, file.len()).map_err(failed)?;
        Ok(Self { contents, journal })
    }

    /// Returns the resourceVersion of the last write.
    pub fn revision(&self) -> u64 {
        self.contents.revision
    }
}

/// Returns the path of a file beside the state file: `PATH.SUFFIX`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests;
