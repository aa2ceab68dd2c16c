//! [`GateList`]: feature gates as a flag lists them.

use std::str::FromStr;

use homeostat_core::parse_go_bool;

/// A list of feature gates in the form of Kubernetes' flags, `Name=bool,…`.
///
/// Unknown names are kept: the program decides if they are errors. Kubernetes' components refuse to
/// start with one.
///
/// # Examples
///
/// ```
/// use homeostat::cli::GateList;
///
/// let gates: GateList = "Colours=false,Sounds=true".parse()?;
/// assert_eq!(gates.get("Colours"), Some(false));
/// assert_eq!(gates.get("Shapes"), None);
/// assert_eq!(gates.unknown(&["Colours", "Shapes"]), ["Sounds"]);
/// # Ok::<(), homeostat::cli::GateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateList {
    entries: Vec<(String, bool)>,
}

/// The error of a list of feature gates that cannot be parsed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateError {
    /// An entry without `=`.
    #[error("feature gate {entry:?} lacks a value: write {entry}=true or {entry}=false")]
    NoValue {
        /// The entry.
        entry: String,
    },
    /// A value that is neither true nor false.
    #[error("feature gate {name} is set to {value:?}, which is neither true nor false")]
    NotABool {
        /// The gate's name.
        name: String,
        /// The value.
        value: String,
    },
}

// === impl GateList ===

impl GateList {
    /// Returns the value of a gate, or `None` if the list does not name it. Of several entries the
    /// last one counts.
    pub fn get(&self, name: &str) -> Option<bool> {
        self.entries.iter().rev().find(|(entry, _)| entry == name).map(|(_, value)| *value)
    }

    /// Returns the names that are not in `known`, each one once, in the order of the list.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::cli::GateList;
    ///
    /// let gates: GateList = "Typo=true,Typo=false".parse()?;
    /// assert_eq!(gates.unknown(&["Known"]), ["Typo"]);
    /// # Ok::<(), homeostat::cli::GateError>(())
    /// ```
    pub fn unknown(&self, known: &[&str]) -> Vec<String> {
        let mut unknown: Vec<String> = Vec::new();
        for (name, _) in &self.entries {
            if !known.contains(&name.as_str()) && !unknown.contains(name) {
                unknown.push(name.clone());
            }
        }
        unknown
    }
}

impl FromStr for GateList {
    type Err = GateError;

    /// Parses `Name=bool,…`. A value has one of the spellings that Go accepts.
    ///
    /// # Errors
    ///
    /// If an entry lacks a value, or its value is no boolean. An empty list is valid.
    fn from_str(list: &str) -> Result<Self, GateError> {
        let mut entries = Vec::new();
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(GateError::NoValue { entry: entry.to_owned() });
            };
            let (name, value) = (name.trim(), value.trim());
            let Some(is_enabled) = parse_go_bool(value) else {
                let (name, value) = (name.to_owned(), value.to_owned());
                return Err(GateError::NotABool { name, value });
            };
            entries.push((name.to_owned(), is_enabled));
        }
        Ok(Self { entries })
    }
}
