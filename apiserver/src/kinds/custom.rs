//! The rows of custom resources.

use std::borrow::Cow;

use super::columns::{Generation, OnCreate, Scale, Status};
use super::kind::Kind;
use super::table::PLAIN;

// === impl Kind ===

impl Kind {
    /// Returns a namespaced custom resource with a `/status` subresource and a generation.
    pub fn custom(
        group: impl Into<Cow<'static, str>>,
        version: impl Into<Cow<'static, str>>,
        kind: impl Into<Cow<'static, str>>,
        plural: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            custom: true,
            status: Status::Subresource { kept: &["*"], on_create: OnCreate::Drop },
            generation: Generation::Content,
            unconditional_update: false,
            ..PLAIN
        }
    }

    /// Returns the kind as a cluster-scoped one.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Returns the kind without a `/status` subresource: its status is a member like any other.
    #[must_use]
    pub fn without_status(mut self) -> Self {
        self.status = Status::None;
        self
    }

    /// Returns the kind with a `/scale` subresource. The arguments are the paths, such as
    /// `spec.replicas`, of the desired replicas, of the observed replicas, and of the selector as
    /// text (`""` for none).
    #[must_use]
    pub fn with_scale(
        mut self,
        wanted: impl Into<Cow<'static, str>>,
        counted: impl Into<Cow<'static, str>>,
        selector: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (wanted, counted, selector) = (wanted.into(), counted.into(), selector.into());
        self.scale = Some(Scale { wanted, counted, selector });
        self
    }
}
