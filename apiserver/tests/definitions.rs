//! `CustomResourceDefinition`s: kinds that come, change and go while clients use them.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use homeostat_apiserver::ApiServer;
use homeostat_faults::{ApiError, Calls};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Error};
use kube_core::params::WatchParams;
use kube_core::{GroupVersionKind, WatchEvent};
use kube_runtime::WatchStreamExt;
use serde_json::{Value, json};

/// Longer than the server needs to carry out a change of a definition.
const LATER: Duration = Duration::from_secs(1);

fn version(name: &str, storage: bool, fields: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": fields},
            "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
        }}},
    })
}

fn definition(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": versions,
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
        },
    })
}

fn size() -> Value {
    json!({"size": {"type": "integer", "default": 3}})
}

fn widgets(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", version, "Widget");
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind))
}

fn widget(version: &str, name: &str, spec: &Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Widget",
        "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

async fn create(client: &Client, definition: &Value) {
    let definition = serde_json::from_value(definition.clone()).unwrap();
    definitions(client).create(&PostParams::default(), &definition).await.unwrap();
    tokio::time::sleep(LATER).await;
}

async fn change(client: &Client, patch: &Value) {
    let patch = Patch::Merge(patch);
    let name = "widgets.example.com";
    definitions(client).patch(name, &PatchParams::default(), &patch).await.unwrap();
    tokio::time::sleep(LATER).await;
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

/// Returns the status of each condition.
fn conditions(definition: &CustomResourceDefinition) -> Vec<(String, String)> {
    let status = definition.status.as_ref().unwrap();
    let list = status.conditions.iter().flatten();
    list.map(|condition| (condition.type_.clone(), condition.status.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn definition_is_established_and_served_a_moment_later() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    let body = serde_json::from_value(definition(&[version("v1", true, &size())])).unwrap();
    let made = definitions(&client).create(&PostParams::default(), &body).await.unwrap();
    assert_eq!(conditions(&made), []);
    let early = widgets(&client, "v1").list(&kube_client::api::ListParams::default()).await;
    assert!(early.is_err(), "the kind is not served at once");
    tokio::time::sleep(LATER).await;
    let known = definitions(&client).get("widgets.example.com").await.unwrap();
    let is = |kind: &str| (kind.to_owned(), "True".to_owned());
    assert_eq!(conditions(&known), [is("NamesAccepted"), is("Established")]);
    let made = widgets(&client, "v1");
    let made = made.create(&PostParams::default(), &widget("v1", "a", &json!({}))).await.unwrap();
    assert_eq!(made.data["spec"], json!({"size": 3}));
    let group = client.list_api_group_resources("example.com/v1").await.unwrap();
    assert_eq!(group.resources[0].name, "widgets");
    assert_eq!(group.resources[0].short_names.as_deref().unwrap(), ["wd"]);
}

#[tokio::test(start_paused = true)]
async fn kind_is_served_as_soon_as_its_definition_is_established() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    let body = serde_json::from_value(definition(&[version("v1", true, &size())])).unwrap();
    definitions(&client).create(&PostParams::default(), &body).await.unwrap();
    let is_established = kube_runtime::wait::conditions::is_crd_established();
    let name = "widgets.example.com";
    kube_runtime::wait::await_condition(definitions(&client), name, is_established).await.unwrap();
    // No time passes between the event and these requests.
    let made = widget("v1", "a", &json!({}));
    widgets(&client, "v1").create(&PostParams::default(), &made).await.unwrap();
    let group = client.list_api_group_resources("example.com/v1").await.unwrap();
    assert_eq!(group.resources[0].name, "widgets");
}

#[tokio::test(start_paused = true)]
async fn definition_of_the_builder_is_established_from_the_start() {
    let body = serde_json::from_value(definition(&[version("v1", true, &size())])).unwrap();
    let server = ApiServer::builder().seed(1).definition(body).build();
    let api = widgets(&server.client(), "v1");
    api.create(&PostParams::default(), &widget("v1", "a", &json!({"size": 1}))).await.unwrap();
    let refused = widget("v1", "b", &json!({"size": "large"}));
    let refused = api.create(&PostParams::default(), &refused).await.unwrap_err();
    let text = "Widget.example.com \"b\" is invalid: spec.size: Invalid value: \"string\": \
                spec.size in body must be of type integer: \"string\"";
    assert!(refused.to_string().contains(text), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn deleted_definition_takes_its_objects_along() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    create(&client, &definition(&[version("v1", true, &size())])).await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &widget("v1", "a", &json!({}))).await.unwrap();
    let events = api.watch(&WatchParams::default(), "0").await.unwrap();
    tokio::time::sleep(LATER).await;
    let name = "widgets.example.com";
    let going = definitions(&client).delete(name, &DeleteParams::default()).await.unwrap();
    let going = going.left().expect("a definition with objects goes later");
    let finalizers = going.metadata.finalizers.unwrap();
    assert_eq!(finalizers, ["customresourcecleanup.apiextensions.k8s.io"]);
    let late = api.create(&PostParams::default(), &widget("v1", "b", &json!({}))).await;
    assert_eq!(code(&late.unwrap_err()), 403);
    tokio::time::sleep(LATER).await;
    assert_eq!(code(&definitions(&client).get(name).await.unwrap_err()), 404);
    assert!(api.get("a").await.is_err(), "the path is gone");
    let events: Vec<_> = events.boxed().try_collect().await.unwrap();
    let [WatchEvent::Added(_), WatchEvent::Bookmark(_), WatchEvent::Deleted(_)] = &events[..]
    else {
        panic!("{events:?}")
    };
}

#[tokio::test(start_paused = true)]
async fn definition_waits_for_the_finalizers_of_its_objects() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    create(&client, &definition(&[version("v1", true, &size())])).await;
    let api = widgets(&client, "v1");
    let mut kept = widget("v1", "a", &json!({}));
    kept.metadata.finalizers = Some(vec!["example.com/kept".to_owned()]);
    api.create(&PostParams::default(), &kept).await.unwrap();
    let name = "widgets.example.com";
    definitions(&client).delete(name, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(60 * LATER).await;
    let waiting = definitions(&client).get(name).await.unwrap();
    assert!(conditions(&waiting).contains(&("Terminating".to_owned(), "True".to_owned())));
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("a", &PatchParams::default(), &release).await.unwrap();
    tokio::time::sleep(LATER).await;
    assert_eq!(code(&definitions(&client).get(name).await.unwrap_err()), 404);
}

#[tokio::test(start_paused = true)]
async fn changed_schema_applies_to_stored_objects_when_they_are_read() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    create(&client, &definition(&[version("v1", true, &size())])).await;
    let api = widgets(&client, "v1");
    let made = api.create(&PostParams::default(), &widget("v1", "a", &json!({}))).await.unwrap();
    let since = made.metadata.resource_version.unwrap();
    let watch = api.watch(&WatchParams::default(), &since).await.unwrap();
    tokio::time::sleep(LATER).await;
    let fields = json!({"colour": {"type": "string", "default": "red"}});
    change(&client, &json!({"spec": {"versions": [version("v1", true, &fields)]}})).await;
    let read = api.get("a").await.unwrap();
    assert_eq!(read.data["spec"], json!({"colour": "red"}), "pruned and defaulted");
    let events = tokio::time::timeout(LATER, watch.boxed().try_collect::<Vec<_>>()).await;
    assert!(events.expect("the watch ends").unwrap().is_empty());
    // A write that changes nothing stores the new form.
    let empty = Patch::Merge(json!({}));
    let written = api.patch("a", &PatchParams::default(), &empty).await.unwrap();
    assert_ne!(written.metadata.resource_version, read.metadata.resource_version);
    let again = api.patch("a", &PatchParams::default(), &empty).await.unwrap();
    assert_eq!(written.metadata.resource_version, again.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn object_is_served_in_each_version() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    let first = version("v1", true, &size());
    create(&client, &definition(std::slice::from_ref(&first))).await;
    let old = widgets(&client, "v1");
    old.create(&PostParams::default(), &widget("v1", "a", &json!({"size": 7}))).await.unwrap();
    let fields = json!({"size": {"type": "integer"}, "colour": {"type": "string"}});
    let mut first = first.clone();
    first["storage"] = json!(false);
    let versions = [first, version("v2", true, &fields)];
    change(&client, &json!({"spec": {"versions": versions}})).await;
    let new = widgets(&client, "v2");
    let read = new.get("a").await.unwrap();
    assert_eq!(read.types.unwrap().api_version, "example.com/v2");
    assert_eq!(read.data["spec"], json!({"size": 7}));
    let body = widget("v2", "b", &json!({"colour": "red"}));
    new.create(&PostParams::default(), &body).await.unwrap();
    let read = old.get("b").await.unwrap();
    assert_eq!(read.types.unwrap().api_version, "example.com/v1");
    assert_eq!(read.data["spec"], json!({}), "v1 has no colour");
    let stored = definitions(&client).get("widgets.example.com").await.unwrap();
    assert_eq!(stored.status.unwrap().stored_versions.unwrap(), ["v1", "v2"]);
    let group = client.list_api_groups().await.unwrap();
    let group = group.groups.into_iter().find(|group| group.name == "example.com").unwrap();
    assert_eq!(group.preferred_version.unwrap().version, "v2");
}

#[tokio::test(start_paused = true)]
async fn name_of_another_definition_is_not_accepted() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    create(&client, &definition(&[version("v1", true, &size())])).await;
    let mut rival = definition(&[version("v1", true, &size())]);
    rival["metadata"]["name"] = json!("gadgets.example.com");
    rival["spec"]["names"] = json!({"kind": "Widget", "plural": "gadgets"});
    create(&client, &rival).await;
    let known = definitions(&client).get("gadgets.example.com").await.unwrap();
    let isnt = |kind: &str| (kind.to_owned(), "False".to_owned());
    assert_eq!(conditions(&known), [isnt("NamesAccepted"), isnt("Established")]);
    let name = "widgets.example.com";
    definitions(&client).delete(name, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(LATER).await;
    let known = definitions(&client).get("gadgets.example.com").await.unwrap();
    let is = |kind: &str| (kind.to_owned(), "True".to_owned());
    assert_eq!(conditions(&known), [is("NamesAccepted"), is("Established")]);
}

#[tokio::test(start_paused = true)]
async fn restored_backup_brings_the_kinds_of_its_time_back() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    let before = server.backup();
    create(&client, &definition(&[version("v1", true, &size())])).await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &widget("v1", "a", &json!({}))).await.unwrap();
    let after = server.backup();
    server.restore(&before);
    assert!(api.get("a").await.is_err());
    let groups = client.list_api_groups().await.unwrap().groups;
    assert!(groups.iter().all(|group| group.name != "example.com"), "the kind is gone, too");
    server.restore(&after);
    assert_eq!(api.get("a").await.unwrap().data["spec"], json!({"size": 3}));
}

#[tokio::test(start_paused = true)]
async fn apply_of_a_custom_resource_merges_by_its_schema() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}});
    let body = definition(&[version("v1", true, &json!({"list": list}))]);
    let server =
        ApiServer::builder().seed(1).definition(serde_json::from_value(body).unwrap()).build();
    let api = widgets(&server.client(), "v1");
    for (manager, name) in [("one", "x"), ("two", "y")] {
        let config = widget("v1", "a", &json!({"list": [{"name": name, "n": 1}]}));
        let params = PatchParams::apply(manager);
        api.patch("a", &params, &Patch::Apply(&config)).await.unwrap();
    }
    let merged = api.get("a").await.unwrap();
    let expected = json!([{"name": "x", "n": 1}, {"name": "y", "n": 1}]);
    assert_eq!(merged.data["spec"]["list"], expected);
    let unknown = widget("v1", "a", &json!({"bogus": 1}));
    let refused = api.patch("a", &PatchParams::apply("one"), &Patch::Apply(&unknown)).await;
    assert!(refused.unwrap_err().to_string().contains("field not declared in schema"));
}

#[tokio::test(start_paused = true)]
async fn reflector_follows_a_kind_that_comes_changes_and_goes() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    let api = widgets(&client, "v1");
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let writer = kube_runtime::reflector::store::Writer::new(kind);
    let cache = writer.as_reader();
    let config = kube_runtime::watcher::Config::default();
    let events = kube_runtime::watcher(api.clone(), config).default_backoff();
    let follow = kube_runtime::reflector(writer, events).for_each(|_| std::future::ready(()));
    let spec = |cache: &kube_runtime::reflector::Store<DynamicObject>| {
        cache.state().first().map(|object| object.data["spec"].clone())
    };
    let story = async {
        tokio::time::sleep(LATER).await;
        assert_eq!(spec(&cache), None, "the kind is not served yet");
        create(&client, &definition(&[version("v1", true, &size())])).await;
        api.create(&PostParams::default(), &widget("v1", "a", &json!({}))).await.unwrap();
        tokio::time::sleep(120 * LATER).await;
        assert_eq!(spec(&cache), Some(json!({"size": 3})));
        let fields = json!({"colour": {"type": "string", "default": "red"}});
        change(&client, &json!({"spec": {"versions": [version("v1", true, &fields)]}})).await;
        tokio::time::sleep(120 * LATER).await;
        assert_eq!(spec(&cache), Some(json!({"colour": "red"})), "listed by the new schema");
        let name = "widgets.example.com";
        definitions(&client).delete(name, &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(LATER).await;
        assert_eq!(spec(&cache), None, "the deletion was delivered");
    };
    tokio::select! {
        () = follow => panic!("the reflector does not end"),
        () = story => {}
    }
}

#[tokio::test(start_paused = true)]
async fn fault_rule_names_a_kind_that_a_client_created() {
    let server = ApiServer::new();
    let client = server.client();
    create(&client, &definition(&[version("v1", true, &size())])).await;
    let widgets = widgets(&client, "v1");
    // The handle is dropped: the rule stays.
    drop(server.faults().refuse(Calls::create("widgets"), ApiError::unavailable()));
    let object = widget("v1", "a", &json!({}));
    let Error::Api(status) = widgets.create(&PostParams::default(), &object).await.unwrap_err()
    else {
        panic!("not a Status")
    };
    assert_eq!(status.code, 503);
    widgets.create(&PostParams::default(), &object).await.unwrap();
    server.faults().assert_all_hit();
}

#[tokio::test(start_paused = true)]
async fn many_definitions_of_a_group_are_established() {
    const COUNT: usize = 200;
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    for at in 0..COUNT {
        let mut body = definition(&[version("v1", true, &size())]);
        body["metadata"]["name"] = json!(format!("widgets{at}.example.com"));
        let (kind, plural) = (format!("Widget{at}"), format!("widgets{at}"));
        body["spec"]["names"] = json!({"kind": kind, "plural": plural, "shortNames": ["wd"]});
        let body = serde_json::from_value(body).unwrap();
        definitions(&client).create(&PostParams::default(), &body).await.unwrap();
    }
    tokio::time::sleep(LATER).await;
    let listed = definitions(&client).list(&kube_client::api::ListParams::default()).await.unwrap();
    let is = |kind: &str| (kind.to_owned(), "True".to_owned());
    let is_named = |item: &&CustomResourceDefinition| conditions(item)[0] == is("NamesAccepted");
    let accepted: Vec<_> = listed.items.iter().filter(is_named).collect();
    // The first one has the short name that all want.
    let first: Vec<_> = accepted.iter().filter_map(|item| item.metadata.name.as_deref()).collect();
    assert_eq!((listed.items.len(), first), (COUNT, vec!["widgets0.example.com"]));
    definitions(&client).delete("widgets0.example.com", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(LATER).await;
    let next = definitions(&client).get("widgets1.example.com").await.unwrap();
    assert_eq!(conditions(&next), [is("NamesAccepted"), is("Established")]);
}

#[tokio::test(start_paused = true)]
async fn change_of_established_definition_applies_to_the_next_request() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    create(&client, &definition(&[version("v1", true, &size())])).await;
    let strict = definition(&[version("v1", true, &json!({"size": {"type": "string"}}))]);
    let patch = json!({"spec": {"versions": strict["spec"]["versions"]}});
    let api = definitions(&client);
    let name = "widgets.example.com";
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let refused = widget("v1", "a", &json!({"size": 1}));
    let refused = widgets(&client, "v1").create(&PostParams::default(), &refused).await;
    assert_eq!(code(&refused.unwrap_err()), 422);
}

/// The request of one client may serve the change of another one, which has to wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_apply_to_the_next_requests_of_their_clients() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 25;
    let server = ApiServer::builder().seed(1).build();
    let mut clients = tokio::task::JoinSet::new();
    for at in 0..CLIENTS {
        clients.spawn(change_often(server.client(), at, ROUNDS));
    }
    let refused: usize = clients.join_all().await.into_iter().sum();
    assert_eq!(refused, CLIENTS * ROUNDS);
}

/// Changes the type of a member in each round. Returns how often an object of the other type is
/// refused by the next request.
async fn change_often(client: Client, at: usize, rounds: usize) -> usize {
    let (group, kind) = (format!("g{at}.example.com"), format!("Gadget{at}"));
    let (plural, types) = (format!("gadgets{at}"), ["integer", "string"]);
    let name = format!("{plural}.{group}");
    let versions =
        |round: usize| json!([version("v1", true, &json!({"size": {"type": types[round % 2]}}))]);
    let mut body = definition(&[]);
    body["metadata"]["name"] = json!(name);
    body["spec"]["group"] = json!(group);
    body["spec"]["names"] = json!({"kind": kind, "plural": plural});
    body["spec"]["versions"] = versions(1);
    let body = serde_json::from_value(body).unwrap();
    let api = definitions(&client);
    api.create(&PostParams::default(), &body).await.unwrap();
    let established = |found: Option<&CustomResourceDefinition>| {
        found
            .is_some_and(|found| conditions(found).contains(&("Established".into(), "True".into())))
    };
    kube_runtime::wait::await_condition(api.clone(), &name, established).await.unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", &kind));
    let resource = ApiResource { plural, ..resource };
    let gadgets = Api::<DynamicObject>::namespaced_with(client, "default", &resource);
    let mut refused = 0;
    for round in 0..rounds {
        let patch = Patch::Merge(json!({"spec": {"versions": versions(round)}}));
        api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        let values = [json!("a text"), json!(1)];
        let gadget =
            DynamicObject::new("a", &resource).data(json!({"spec": {"size": values[round % 2]}}));
        let created = gadgets.create(&PostParams::default(), &gadget).await;
        refused += usize::from(created.is_err_and(|error| code(&error) == 422));
    }
    refused
}

#[tokio::test(start_paused = true)]
async fn defaults_of_the_spec_do_not_come_with_a_write_to_the_status() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    let stored = version("v1", true, &json!({"size": {"type": "integer"}}));
    create(&client, &definition(&[version("v2", false, &size()), stored])).await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &widget("v1", "a", &json!({}))).await.unwrap();
    let patch = json!({"status": {"ready": 1}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
    let seen = widgets(&client, "v2").patch_status("a", &params, &patch).await.unwrap();
    assert_eq!(seen.data["spec"], json!({}));
}
