//! The definitions that the program creates at its start.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::PostParams;
use kube_client::{Api, Client, Error, ResourceExt as _};

/// The time within which a valid definition is established.
const TIMEOUT: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_millis(10);

/// Creates the definitions of a file, and waits until they are established and served.
pub(crate) async fn create(client: &Client, file: &Path) -> anyhow::Result<()> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let definitions: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("{name} is no list of CustomResourceDefinitions"))?;
    if definitions.is_empty() {
        bail!("{name} has no CustomResourceDefinition");
    }
    let api = Api::all(client.clone());
    for definition in definitions {
        let created = match api.create(&PostParams::default(), &definition).await {
            // A state file has the definition from an earlier run.
            Err(Error::Api(status)) if status.is_already_exists() => {
                replace(&api, &definition).await
            }
            created => created,
        };
        let created = created
            .map_err(refusal)
            .with_context(|| format!("cannot create a definition of {name}"))?;
        let served = wait_for_served(client, &created);
        let created = created.name_any();
        let established = wait_for_established(&api, &created);
        if tokio::time::timeout(TIMEOUT, established).await.is_err() {
            bail!("{created} of {name} is not established: its names are in use");
        }
        if tokio::time::timeout(TIMEOUT, served).await.is_err() {
            bail!("{created} of {name} is established and not served");
        }
    }
    Ok(())
}

/// Returns the message of the server alone: the text of kube's error has all members of its status.
fn refusal(error: Error) -> anyhow::Error {
    match error {
        Error::Api(status) => anyhow!(status.message),
        error => error.into(),
    }
}

/// Gives a stored definition the spec of the file.
async fn replace(
    api: &Api<CustomResourceDefinition>,
    definition: &CustomResourceDefinition,
) -> kube_client::Result<CustomResourceDefinition> {
    let name = definition.name_any();
    let mut stored = api.get(&name).await?;
    stored.spec = definition.spec.clone();
    api.replace(&name, &PostParams::default(), &stored).await
}

async fn wait_for_established(api: &Api<CustomResourceDefinition>, name: &str) {
    loop {
        if api.get(name).await.is_ok_and(|definition| is_established(&definition)) {
            return;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Waits until discovery lists each version. The server does so a moment after the condition.
async fn wait_for_served(client: &Client, definition: &CustomResourceDefinition) {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let group_version = format!("{}/{}", spec.group, version.name);
        loop {
            let listed = client.list_api_group_resources(&group_version).await;
            let mut found = listed.iter().flat_map(|list| &list.resources);
            if found.any(|resource| resource.name == spec.names.plural) {
                break;
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|known| known.type_ == "Established" && known.status == "True")
}
