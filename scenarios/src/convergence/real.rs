//! A real etcd and kube-apiserver, with random faults.

use homeostat::kube_client::Client;
use homeostat_testing::control_plane::ControlPlane;

use super::dice::Dice;
use super::informer_client::informer_client;
use super::proxy::Proxy;

/// Breaks the informers' connections and the server until it ends.
pub(super) struct Real {
    plane: ControlPlane,
    user: Client,
    proxy: Proxy,
    dice: Dice,
    steps: usize,
    trace: Vec<&'static str>,
}

/// While the proxy is closed, objects are created and deleted; then the server compacts its history
/// and restarts. A crash with open connections comes later.
const CLOSED: usize = 4;
const FORGETS: usize = 8;
const OPENS: usize = 9;
const CRASHES: usize = 16;

// === impl Real ===

impl Real {
    pub(super) async fn start(dice: Dice) -> anyhow::Result<Self> {
        let plane = ControlPlane::start().await?;
        let url = plane.config().cluster_url;
        let server =
            format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(443));
        let proxy = Proxy::start(server.parse()?).await?;
        let user = plane.client()?;
        Ok(Self { plane, user, proxy, dice, steps: 0, trace: Vec::new() })
    }

    pub(super) fn user(&self) -> Client {
        self.user.clone()
    }

    pub(super) fn informer(&self) -> anyhow::Result<Client> {
        let mut config = self.plane.config();
        config.cluster_url = format!("https://{}", self.proxy.address()).parse()?;
        informer_client(config)
    }

    pub(super) async fn step(&mut self) -> anyhow::Result<()> {
        self.steps += 1;
        match self.steps {
            CLOSED => {
                self.proxy.close();
                self.trace.push("no connections for a while");
            }
            FORGETS => {
                self.compact().await;
                self.restart().await?;
            }
            OPENS => self.proxy.open(),
            CRASHES => self.restart().await?,
            _ => match self.dice.below(8) {
                0 => self.compact().await,
                1 | 2 => {
                    self.proxy.cut();
                    self.trace.push("connections cut");
                }
                3 | 4 => {
                    self.proxy.cut_after(self.dice.pick(&[0, 100, 1000, 5000]));
                    self.trace.push("connections cut after some bytes");
                }
                _ => {}
            },
        }
        Ok(())
    }

    /// etcd rejects a compaction if nothing was written since the last one.
    async fn compact(&mut self) {
        let done = self.plane.compact().await.is_ok();
        self.trace.push(if done { "history compacted" } else { "nothing to compact" });
    }

    async fn restart(&mut self) -> anyhow::Result<()> {
        self.plane.restart_api_server().await?;
        self.trace.push("server killed and started");
        Ok(())
    }

    pub(super) fn end(&self) {
        self.proxy.open();
        self.proxy.cut();
    }

    pub(super) fn trace(&self) -> &[&'static str] {
        &self.trace
    }
}
