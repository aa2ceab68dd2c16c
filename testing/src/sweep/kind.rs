//! [`Kind`]: the two sweeps, by the faults that they try.

use homeostat_faults::CrashPoint;

use super::Plan;

/// The faults of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Calls,
    Events,
}

// === impl Kind ===

impl Kind {
    /// Returns the sweep that tries `plan`.
    pub(super) fn of(plan: &Plan) -> Self {
        match plan {
            Plan::Crash(CrashPoint::Before(_) | CrashPoint::After(_)) | Plan::LostReply(_) => {
                Self::Calls
            }
            _ => Self::Events,
        }
    }

    /// Returns the reason for which a sweep without a plan fails.
    pub(super) fn without_plans(self) -> String {
        let nothing = match self {
            Self::Calls => "no mutating call",
            Self::Events => "no mutating call and no event",
        };
        format!("the controller has {nothing}, so there is no fault to try")
    }
}
