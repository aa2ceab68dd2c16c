//! Objects that are created from YAML.

use anyhow::Context as _;
use homeostat::kube_client::Client;
use http::Request;

/// Creates the objects of `manifests`.
///
/// # Errors
///
/// Returns an error of the API server.
pub(crate) async fn create_all(user: &Client, manifests: &str) -> anyhow::Result<()> {
    for manifest in manifests.split("\n---\n") {
        let request = Request::post(manifest_path(manifest)?);
        let request = request.header("content-type", "application/yaml");
        user.request_text(request.body(manifest.as_bytes().to_vec())?).await?;
    }
    Ok(())
}

/// Returns the path of the collection to which a manifest is posted.
fn manifest_path(manifest: &str) -> anyhow::Result<String> {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let kinds = [
        ("Namespace", "/api/v1", "namespaces"),
        ("Deployment", "/apis/apps/v1", "deployments"),
        ("ServiceAccount", "/api/v1", "serviceaccounts"),
        ("ClusterRoleBinding", RBAC, "clusterrolebindings"),
        ("ClusterRole", RBAC, "clusterroles"),
        ("RoleBinding", RBAC, "rolebindings"),
        ("Role", RBAC, "roles"),
    ];
    let has_kind = |kind: &str| manifest.lines().any(|line| line == format!("kind: {kind}"));
    let found = kinds.into_iter().find(|(kind, ..)| has_kind(kind));
    let (_, version, plural) = found.context("the manifest has a known kind")?;
    // Of its metadata: that of a subject is indented further.
    let namespace = manifest.lines().find_map(|line| line.strip_prefix("  namespace: "));
    Ok(match namespace {
        Some(namespace) => format!("{version}/namespaces/{namespace}/{plural}"),
        None => format!("{version}/{plural}"),
    })
}
