//! The options of a write, from its query.

use serde_json::json;

use super::params::Params;
use crate::admission::check_dry_run;
use crate::kinds::managers::check_manager;
use crate::status::{Cause, Failure, Result};

/// The options of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    /// True if nothing is to be stored.
    pub(crate) dry_run: bool,
    pub(crate) validation: Validation,
}

/// The options of a server-side apply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApplyOptions {
    pub(crate) write: WriteOptions,
    /// True if the manager takes fields that other managers own.
    pub(crate) force: bool,
}

/// The treatment of unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    Warn,
    Strict,
}

// === impl Params ===

impl Params {
    /// Returns the options of a write, which the real server calls `CreateOptions`, `UpdateOptions`
    /// or `PatchOptions`.
    ///
    /// # Errors
    ///
    /// Fails with 422, and lists all problems.
    pub(crate) fn write_options(&self, kind: &str) -> Result<WriteOptions> {
        let mut causes = Vec::new();
        if kind == "PatchOptions" && self.is_present("force") {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        self.checked_options(kind, causes)
    }

    /// Returns the options of a server-side apply.
    ///
    /// # Errors
    ///
    /// Fails with 422, and lists all problems. An apply must name its manager.
    pub(crate) fn apply_options(&self) -> Result<ApplyOptions> {
        let mut causes = Vec::new();
        if self.get("fieldManager").is_empty() {
            causes.push(Cause::required("fieldManager", "is required for apply patch"));
        }
        let write = self.checked_options("PatchOptions", causes)?;
        Ok(ApplyOptions { write, force: self.flag("force") })
    }

    fn checked_options(&self, kind: &str, mut causes: Vec<Cause>) -> Result<WriteOptions> {
        check_manager(self.get("fieldManager"), "fieldManager", &mut causes);
        let dry_run = check_dry_run(&self.all("dryRun"), &mut causes);
        let validation = match self.get("fieldValidation") {
            "" | "Warn" => Validation::Warn,
            "Strict" => Validation::Strict,
            "Ignore" => Validation::Ignore,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                causes.push(Cause::unsupported("fieldValidation", &json!(other), &supported));
                Validation::Warn
            }
        };
        if causes.is_empty() {
            Ok(WriteOptions { dry_run, validation })
        } else {
            Err(Failure::invalid_options(kind, &causes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> Result<WriteOptions> {
        Params::parse(query).write_options("PatchOptions")
    }

    #[test]
    fn default_is_a_real_write_with_warnings() {
        let options = options("").unwrap();
        assert!(!options.dry_run);
        assert_eq!(options.validation, Validation::Warn);
    }

    #[test]
    fn all_problems_are_reported() {
        let refusal =
            options("force=1&fieldManager=%0A&dryRun=some&fieldValidation=x").unwrap_err();
        for wrong in ["force: ", "U+000A (at position 0)", "dryRun: ", "fieldValidation: "] {
            assert!(refusal.message.contains(wrong), "{wrong}: {}", refusal.message);
        }
    }
}
