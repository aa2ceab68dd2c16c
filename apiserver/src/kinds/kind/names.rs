//! The names of a kind.

use super::Kind;

impl Kind {
    pub(crate) fn singular(&self) -> String {
        match &self.definition {
            Some(definition) => definition.names.singular.clone(),
            None => self.kind.to_lowercase(),
        }
    }

    pub(crate) fn list_kind(&self) -> String {
        match &self.definition {
            Some(definition) => definition.names.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    pub(crate) fn short_names(&self) -> Vec<&str> {
        match &self.definition {
            Some(definition) => definition.names.short_names.iter().map(String::as_str).collect(),
            None => self.short_names.to_vec(),
        }
    }

    pub(crate) fn categories(&self) -> Vec<&str> {
        match &self.definition {
            Some(definition) => definition.names.categories.iter().map(String::as_str).collect(),
            None => self.categories.to_vec(),
        }
    }

    /// Returns the names besides the plural: the singular and the short names.
    pub(crate) fn other_names(&self) -> Vec<String> {
        let short = self.short_names().into_iter().map(str::to_owned);
        short.chain([self.singular()]).collect()
    }
}
