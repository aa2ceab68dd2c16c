//! Step 3: creates the Deployments of Foos.

use std::process::ExitCode;

use clap::Parser;
use homeostat::cli::{Flags, Program};
use homeostat::kube_client::api::PostParams;
use homeostat::kube_client::{Api, Client, Error};
use homeostat::{Action, Controller, Lister, Manager, Reconciler, Request, SharedInformerFactory};
use homeostat_sample::{Foo, Plan, plan};
use k8s_openapi::api::apps::v1::Deployment;

/// Creates the Deployments of Foos.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

struct CreateDeployments {
    client: Client,
    foos: Lister<Foo>,
}

impl Reconciler<Foo> for CreateDeployments {
    type Error = Error;

    async fn reconcile(&self, request: &Request<Foo>) -> Result<Action, Error> {
        let Some(wanted) = self.foos.get(request.key()) else { return Ok(Action::AwaitChange) };
        let namespace = request.key().namespace().unwrap_or_default();
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), namespace);
        let name = &wanted.spec.deployment_name;
        let found = if name.is_empty() { None } else { deployments.get_opt(name).await? };
        if let Plan::Create(deployment) = plan(&wanted, found.as_ref()) {
            deployments.create(&PostParams::default(), &deployment).await?;
        }
        Ok(Action::AwaitChange)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    Program::new("step3", "0.1.0").run(&arguments.flags, async |client| Ok(manager(client)))
}

fn manager(client: Client) -> Manager {
    let informers = SharedInformerFactory::new(&client);
    let foos = informers.informer::<Foo>();
    let reconciler = CreateDeployments { client, foos: foos.lister() };
    let controller = Controller::builder("foo", &foos).build(reconciler);
    Manager::new(informers).with(controller)
}
