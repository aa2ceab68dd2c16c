//! The Lease of the running program, and the header about the security of its transport, compared
//! with those of a real kube-apiserver.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "program/server.rs"]
#[expect(dead_code, reason = "the tests of the program use the rest")]
mod server;

use std::time::Duration;

use homeostat_testing::control_plane::{Binaries, ControlPlane};
use http::{HeaderMap, Request};
use k8s_openapi::api::coordination::v1::Lease;
use kube_client::api::{DeleteParams, ListParams, PostParams};
use kube_client::client::Body;
use kube_client::{Api, Client};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::server::{Server, TIMEOUT, client, client_with};

/// A pause between two looks at a Lease.
const PAUSE: Duration = Duration::from_millis(100);

const DIRECTIVES: &str =
    "--strict-transport-security-directives=max-age=31536000,includeSubDomains";

/// Selects the Leases of servers.
const OF_SERVERS: &str = "apiserver.kubernetes.io/identity=kube-apiserver";

/// The paths of the requests.
const PATHS: [&str; 8] = [
    "/",
    "/healthz",
    "/nowhere",
    "/openapi/v2",
    "/apis/apps/v1",
    "/apis/apps/v1/deployments",
    "/api/v1/nodes/none",
    "/api/v1/namespaces?watch=1&timeoutSeconds=1",
];

fn main() {
    let arguments = Arguments::from_args();
    let trials = [
        Trial::ignorable_test("control_plane::lease_and_header_are_those_of_the_server", || {
            if let Some(missing) = Binaries::missing_for_tests() {
                return Ok(Completion::ignored_with(missing));
            }
            Runtime::new()?.block_on(compare())?;
            Ok(Completion::Completed)
        }),
        Trial::test("program::lease_is_held_while_the_program_runs", || {
            Runtime::new()?.block_on(check_lease());
            Ok(())
        }),
        Trial::test("program::replies_have_the_directives_of_transport_security", || {
            Runtime::new()?.block_on(check_header());
            Ok(())
        }),
    ];
    libtest_mimic::run(&arguments, trials.into()).exit();
}

async fn compare() -> Result<(), Failed> {
    let control_plane = ControlPlane::builder().api_server_arg(DIRECTIVES).start().await?;
    let real = observe(&control_plane.client()?).await;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("config");
    let server = Server::start(&["--secure", DIRECTIVES], &path);
    let own = observe(&client(&path).await).await;
    server.stop("-TERM");
    if own == real { Ok(()) } else { Err(format!("real {real:#}\nown {own:#}").into()) }
}

/// Returns the Lease without what differs in each run, and the headers of some replies.
async fn observe(client: &Client) -> Value {
    let held = leases(client.clone());
    let deadline = Instant::now() + TIMEOUT;
    let lease = loop {
        if let [lease] = &*of_servers(&held).await {
            break lease.clone();
        }
        assert!(Instant::now() < deadline, "the server holds no Lease");
        sleep(PAUSE).await;
    };
    let mut lease = serde_json::to_value(lease).unwrap();
    let name = lease["metadata"]["name"].as_str().unwrap().to_owned();
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap().to_owned();
    assert!(holder.starts_with(&format!("{name}_")), "{holder}");
    for (parent, member) in [
        ("/metadata", "uid"),
        ("/metadata", "resourceVersion"),
        ("/metadata", "creationTimestamp"),
        ("/metadata/managedFields/0", "time"),
        // The address is that of the server.
        ("/metadata/annotations", "kubernetes.io/peer-advertise-address"),
        ("/spec", "holderIdentity"),
        ("/spec", "renewTime"),
    ] {
        let parent = lease.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
        assert!(parent.remove(member).is_some(), "no {member}");
    }
    json!({"lease": lease, "headers": headers(client).await})
}

/// Returns the status and the header of the reply to each request.
async fn headers(client: &Client) -> Vec<String> {
    let mut seen = Vec::new();
    for path in PATHS {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = client.send(request).await.unwrap();
        let header = security(response.headers());
        seen.push(format!("{path} {} {header:?}", response.status().as_u16()));
    }
    seen
}

fn security(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all("strict-transport-security").into_iter();
    values.map(|value| value.to_str().unwrap()).collect()
}

fn leases(client: Client) -> Api<Lease> {
    Api::namespaced(client, "kube-system")
}

async fn of_servers(leases: &Api<Lease>) -> Vec<Lease> {
    leases.list(&ListParams::default().labels(OF_SERVERS)).await.unwrap().items
}

/// A program on this host replaces the Lease of an earlier one, and deletes expired ones.
async fn check_lease() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("config"), folder.path().join("state"));
    let open = ["--state", state.to_str().unwrap()];
    let secure = [open[0], open[1], "--secure"];
    let server = Server::start(&secure, &path);
    let first = sole_lease(&leases(client(&path).await)).await;
    server.stop("-KILL");

    let server = Server::start(&secure, &path);
    let held = leases(client(&path).await);
    let second = sole_lease(&held).await;
    assert_eq!(first.metadata.name, second.metadata.name);
    assert_ne!(first.spec.unwrap().holder_identity, second.spec.unwrap().holder_identity);
    let mut expired = Lease::default();
    expired.metadata.name = Some("apiserver-gone".to_owned());
    expired.metadata.labels.clone_from(&second.metadata.labels);
    held.create(&PostParams::default(), &expired).await.unwrap();
    let name = second.metadata.name.unwrap();
    held.delete(&name, &DeleteParams::default()).await.unwrap();
    wait_until(&held, &name, true).await;
    server.stop("-TERM");

    let server = Server::start(&open, &path);
    let left = of_servers(&leases(client(&path).await)).await;
    let left: Vec<_> = left.into_iter().filter_map(|lease| lease.metadata.name).collect();
    assert_eq!(left, ["apiserver-gone"], "a server without users holds no Lease");
    server.stop("-TERM");

    let server = Server::start(&secure, &path);
    wait_until(&leases(client(&path).await), "apiserver-gone", false).await;
    server.stop("-TERM");
}

async fn sole_lease(leases: &Api<Lease>) -> Lease {
    let found = of_servers(leases).await;
    let [lease] = <[Lease; 1]>::try_from(found).unwrap();
    lease
}

/// Waits until a Lease exists or is gone.
async fn wait_until(leases: &Api<Lease>, name: &str, exists: bool) {
    let deadline = Instant::now() + TIMEOUT;
    while leases.get_opt(name).await.unwrap().is_some() != exists {
        assert!(Instant::now() < deadline, "{name}");
        sleep(PAUSE).await;
    }
}

async fn check_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let server = Server::start(&["--secure", DIRECTIVES], &path);
    // A refusal has it, too.
    for client in [client(&path).await, client_with(&path, Some("none")).await] {
        for seen in headers(&client).await {
            assert!(seen.ends_with(r#" ["max-age=31536000; includeSubDomains"]"#), "{seen}");
        }
    }
    server.stop("-TERM");
}
