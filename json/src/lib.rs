//! JSON into Rust types, faster than `serde_json` where a type leaves out a part of the text.
//!
//! Objects of the Kubernetes API are decoded often, and mostly by types that name few of their
//! members: half of a pod are the records of its writers. [`from_str`] decodes such a text in one
//! pass. It borrows strings, and of arrays and objects that the type skips or keeps as text it only
//! looks for the brackets, 64 bytes at a time.
//!
//! It gives the result of `serde_json`, and its errors: a text that does not fit, or is unusual, is
//! decoded by `serde_json` again. One thing is looser: in a value that is skipped or kept as text
//! only brackets and strings are noticed, so that what is between them may be no JSON.
//!
//! # Examples
//!
//! ```
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Pod {
//!     metadata: Metadata,
//! }
//!
//! #[derive(Deserialize)]
//! struct Metadata {
//!     name: String,
//! }
//!
//! let text = r#"{"metadata":{"name":"web","managedFields":[{"manager":"kubelet"}]},"spec":{}}"#;
//! let pod: Pod = homeostat_json::from_str(text)?;
//! assert_eq!(pod.metadata.name, "web");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod block;
mod brackets;
mod reader;
mod scanner;

use serde::Deserialize;

pub use crate::reader::{Reader, Unfit};

/// The longest text that a [`Reader`] reads: 1 MiB. A longer one is left to `serde_json`, so that a
/// large object that does not fit, which both decode, does not cost twice.
const MOST_BYTES: usize = 1 << 20;

/// Decodes a complete text: by a [`Reader`] if it is usual, else by `serde_json`.
///
/// # Errors
///
/// Returns the error of `serde_json` if the text does not fit the type, or is no JSON.
///
/// # Examples
///
/// ```
/// assert_eq!(homeostat_json::from_str::<Vec<u8>>("[1, 2]")?, [1, 2]);
/// let error = homeostat_json::from_str::<u8>("300").unwrap_err();
/// assert_eq!(error.to_string(), "invalid value: integer `300`, expected u8 at line 1 column 3");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    read(text, |reader| T::deserialize(reader)).or_else(|_| serde_json::from_str(text))
}

/// Lets `decode` read a complete text.
///
/// # Errors
///
/// If the text is left to `serde_json`.
///
/// # Examples
///
/// ```
/// use homeostat_json::{Reader, Unfit, read};
/// use serde::Deserialize;
///
/// let decode = |reader: &mut Reader<'_>| Vec::<u8>::deserialize(reader);
/// assert_eq!(read("[1, 2]", decode), Ok(vec![1, 2]));
/// assert_eq!(read("[1, 300]", decode), Err(Unfit));
/// ```
pub fn read<'de, T>(
    text: &'de str,
    decode: impl FnOnce(&mut Reader<'de>) -> Result<T, Unfit>,
) -> Result<T, Unfit> {
    if text.len() > MOST_BYTES {
        return Err(Unfit);
    }
    let mut reader = Reader::new(text);
    let value = decode(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
