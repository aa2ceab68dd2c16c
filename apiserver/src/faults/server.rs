//! Rules for what only the server itself can do.

use super::call::Call;
use super::calls::Calls;
use super::rules::Rules;
use super::{Faults, Verb};
use crate::backup::Backup;
use crate::view::Lag;

/// What a server goes through just before, or just after, it carries out a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Trouble {
    /// See [`ApiServer::compact`](crate::ApiServer::compact).
    Compact,
    /// See [`ApiServer::restart`](crate::ApiServer::restart).
    Restart,
    /// See [`ApiServer::restore`](crate::ApiServer::restore).
    Restore(Backup),
}

/// What a server does about one request.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    pub(crate) before: Vec<Trouble>,
    pub(crate) after: Vec<Trouble>,
    pub(crate) lag: Option<Lag>,
}

#[derive(Debug, Clone)]
pub(crate) enum Order {
    Before(Trouble),
    After(Trouble),
    Stale(Lag),
}

pub(super) type ServerRules = Rules<Order>;

// === impl Faults ===

impl Faults {
    pub(crate) fn order(&self, calls: Calls, order: Order) {
        self.shared.state.lock().server_rules.add(calls, order);
    }

    /// What the server is to do about a request; nothing, mostly.
    pub(crate) fn orders(&self, call: impl FnOnce() -> Call) -> Orders {
        let mut orders = Orders::default();
        let mut state = self.shared.state.lock();
        if state.server_rules.is_empty() {
            return orders;
        }
        let call = call();
        for order in state.order_hits(&call) {
            match order {
                Order::Before(trouble) => orders.before.push(trouble),
                Order::After(trouble) => orders.after.push(trouble),
                Order::Stale(lag) if matches!(call.verb, Verb::Get | Verb::List) => {
                    state.record(&call, None, &format!("answered from the past: {lag}"));
                    orders.lag = orders.lag.or(Some(lag));
                }
                Order::Stale(_) => {}
            }
        }
        orders
    }
}
