//! The documents of `OpenAPI` v3, compared with those of a real kube-apiserver.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use http::Request;
use kube_client::Client;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Ends of the paths at which the documents differ: nothing connects to containers, and the table
/// of types does not have the rest.
const DIFFERENT: [&str; 11] = [
    "/attach",
    "/exec",
    "/log",
    "/portforward",
    "/proxy",
    "/proxy/{path}",
    "/allocatedResourceStatuses/additionalProperties/enum",
    "/allocatedResourceStatuses/x-kubernetes-map-type",
    "/validationActions/items/enum",
    "/skipNodeOperations/items/enum",
    "/caBundle/x-kubernetes-list-type",
];

fn main() {
    let arguments = Arguments::from_args();
    let trial = Trial::ignorable_test("control_plane::documents_are_those_of_the_server", || {
        if let Some(missing) = Binaries::missing_for_tests() {
            return Ok(Completion::ignored_with(missing));
        }
        Runtime::new()?.block_on(compare())?;
        Ok(Completion::Completed)
    });
    libtest_mimic::run(&arguments, vec![trial]).exit();
}

/// Compares all documents that both servers have.
async fn compare() -> Result<(), Failed> {
    let control_plane = ControlPlane::start().await?;
    let real = control_plane.client()?;
    let server = ApiServer::new();
    let own = server.client();
    let index = document(&own, "").await;
    let names = index["paths"].as_object().unwrap();
    assert!(names.len() > 20, "{names:?}");
    let mut found = Vec::new();
    for name in names.keys() {
        let (theirs, ours) = (document(&real, name).await, document(&own, name).await);
        differences(&theirs, &ours, name.clone(), &mut found);
    }
    found.retain(|path| !DIFFERENT.iter().any(|end| path.ends_with(end)));
    if found.is_empty() { Ok(()) } else { Err(found.join("\n").into()) }
}

async fn document(client: &Client, name: &str) -> Value {
    let separator = if name.is_empty() { "" } else { "/" };
    let request = Request::get(format!("/openapi/v3{separator}{name}")).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

/// Adds the paths at which two documents differ.
fn differences(theirs: &Value, ours: &Value, path: String, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for name in theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name)))
            {
                let path = format!("{path}/{name}");
                match (theirs.get(name), ours.get(name)) {
                    (Some(theirs), Some(ours)) => differences(theirs, ours, path, found),
                    _ => found.push(path),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                differences(theirs, ours, format!("{path}/{at}"), found);
            }
        }
        (theirs, ours) if theirs == ours => {}
        _ => found.push(path),
    }
}
