//! All the kinds of one server, and where their objects are kept.

use std::sync::{Arc, OnceLock};

use super::{Kind, built_in};
use crate::http::openapi::Documents;

/// All the kinds of one server.
#[derive(Debug)]
pub(crate) struct Kinds {
    rows: Vec<Arc<Kind>>,
    /// For each row, the row whose objects it serves.
    homes: Vec<usize>,
    documents: OnceLock<Documents>,
}

/// Where a kind's objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResourceId(pub(crate) usize);

/// A kind, as a request found it.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) kind: Arc<Kind>,
    /// The kind whose form the stored bytes have.
    pub(crate) home: Arc<Kind>,
    pub(crate) resource: ResourceId,
}

// === impl Kinds ===

impl Kinds {
    /// All rows; a later row for the same resource takes the place of an earlier one.
    pub(crate) fn new(custom: Vec<Kind>) -> Self {
        let mut rows = built_in();
        for kind in custom {
            rows.retain(|row| !row.is(&kind.group, &kind.version, &kind.plural));
            rows.push(kind);
        }
        let home = |(at, row): (usize, &Kind)| {
            let home = row.stored_as?;
            rows.iter()
                .position(|other| other.group == home.group && other.plural == home.plural)
                .or(Some(at))
        };
        let homes =
            rows.iter().enumerate().map(|(at, row)| home((at, row)).unwrap_or(at)).collect();
        Self { rows: rows.into_iter().map(Arc::new).collect(), homes, documents: OnceLock::new() }
    }

    pub(crate) fn rows(&self) -> &[Arc<Kind>] {
        &self.rows
    }

    /// What `OpenAPI` says of them all.
    pub(crate) fn documents(&self) -> &Documents {
        self.documents.get_or_init(|| Documents::of(self))
    }

    /// The kind, the kind that its objects are stored as, and where.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        let at = self.rows.iter().position(|row| row.is(group, version, plural))?;
        let home = self.homes[at];
        Some(Served {
            kind: Arc::clone(&self.rows[at]),
            home: Arc::clone(&self.rows[home]),
            resource: ResourceId(home),
        })
    }

    /// The kind whose objects are the namespaces.
    pub(crate) fn namespaces(&self) -> Served {
        self.find("", "v1", "namespaces").expect("the table has namespaces")
    }
}

// === impl Served ===

impl Served {
    /// Whether stored bytes can be sent as they are.
    pub(crate) fn is_home(&self) -> bool {
        Arc::ptr_eq(&self.kind, &self.home)
    }
}
