//! The client of an informer that reaches its server over the network.

use anyhow::Context as _;
use homeostat::kube_client::{Client, Config};

/// Returns a client like a controller's, with a higher rate limit: the run measures recovery, not
/// the budget.
pub(super) fn informer_client(config: Config) -> anyhow::Result<Client> {
    let builder = homeostat::client::builder().qps(1000.0).burst(2000).user_agent("informer");
    Ok(builder.config(config).context("no client for the informer")?.build())
}
