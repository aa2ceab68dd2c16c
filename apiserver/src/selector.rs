//! Label and field selectors, as they stand in the query of a LIST, WATCH or DELETE.
//!
//! Both accept what a real server accepts and refuse the rest with its message, which is the text of [`SelectorError`].
//!
//! ```
//! use homeostat_apiserver::selector::{Fields, Labels};
//!
//! let labels = Labels::parse("app in (web, api),!canary").unwrap();
//! assert!(labels.matches(|key| (key == "app").then_some("web")));
//! assert!(!labels.matches(|_key| Some("web")));
//!
//! let error = Labels::parse("a===b").unwrap_err();
//! assert_eq!(error.to_string(), "unable to parse requirement: found '=', expected: identifier");
//!
//! let fields = Fields::parse("spec.nodeName=,status.phase!=Failed").unwrap();
//! assert!(fields.matches(|path| (path == "status.phase").then(|| "Running".into())));
//! ```

mod fields;
mod labels;
mod lexer;
mod validation;

pub use fields::{FieldOperator, Fields};
pub use labels::Labels;

/// Why a selector was not understood; its text is the message of the 400 that answers it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);
