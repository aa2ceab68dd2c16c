//! The users' operations during the faults: they create, change, spoil, delete and recreate
//! objects.

use homeostat::kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use homeostat::kube_client::{Api, Client};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;

use super::Pace;
use super::dice::Dice;

/// A user without faults.
pub(super) struct Workload {
    user: Client,
    dice: Dice,
    pace: Pace,
}

/// The number of operations, and of names in each of two namespaces: few names, so that each object
/// changes often.
const OPERATIONS: u64 = 80;
const NAMES: u64 = 6;
pub(super) const NAMESPACES: [&str; 2] = ["default", "kube-public"];

// === impl Workload ===

impl Workload {
    pub(super) fn new(user: Client, dice: Dice, pace: Pace) -> Self {
        Self { user, dice, pace }
    }

    pub(super) async fn run(mut self) {
        for operation in 0..OPERATIONS {
            self.operate(operation).await;
            let pause = self.dice.pick(self.pace.pauses);
            sleep(self.dice.millis(pause + 1)).await;
        }
    }

    /// An error means that the object already exists or no longer exists; the next operation
    /// follows.
    async fn operate(&mut self, operation: u64) {
        let namespace = self.dice.pick(&NAMESPACES);
        let name = format!("object-{}", self.dice.below(NAMES));
        let maps = Api::<ConfigMap>::namespaced(self.user.clone(), namespace);
        match self.dice.below(10) {
            0..3 => drop(self.create(&maps, &name, operation).await),
            3..6 => drop(self.patch(&maps, &name, &operation.to_string()).await),
            6 => drop(self.patch(&maps, &name, "many").await),
            7 => {
                let watched = self.dice.pick(&["yes", "no"]);
                let patch = json!({ "metadata": { "labels": { "watched": watched } } });
                drop(maps.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await);
            }
            8 => drop(maps.delete(&name, &DeleteParams::default()).await),
            _ => {
                drop(maps.delete(&name, &DeleteParams::default()).await);
                drop(self.create(&maps, &name, operation).await);
            }
        }
    }

    async fn create(
        &mut self,
        maps: &Api<ConfigMap>,
        name: &str,
        number: u64,
    ) -> homeostat::kube_client::Result<ConfigMap> {
        let number = if self.dice.one_in(8) { "none".to_owned() } else { number.to_string() };
        let map = json!({
            "metadata": { "name": name, "labels": { "watched": "yes" } },
            "data": { "number": number, "note": "a member that an informer may prune" },
        });
        let map = serde_json::from_value(map).expect("this is a ConfigMap");
        maps.create(&PostParams::default(), &map).await
    }

    async fn patch(
        &self,
        maps: &Api<ConfigMap>,
        name: &str,
        number: &str,
    ) -> homeostat::kube_client::Result<ConfigMap> {
        let patch = json!({ "data": { "number": number } });
        maps.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }
}
