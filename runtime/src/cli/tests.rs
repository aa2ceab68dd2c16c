use clap::Parser;

use super::*;
use crate::client;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

fn parsed(arguments: &[&str]) -> Result<Flags, String> {
    let arguments = ["program"].iter().chain(arguments);
    Arguments::try_parse_from(arguments).map(|it| it.flags).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_upstreams() {
    let flags = parsed(&[]).unwrap();
    assert_eq!((flags.kube_api_qps, flags.kube_api_burst), (20.0, 30));
    let election = &flags.leader_election;
    assert!(!election.leader_elect);
    assert_eq!(election.leader_elect_lease_duration, Duration::from_secs(15));
    assert_eq!(election.leader_elect_renew_deadline, Duration::from_secs(10));
    assert_eq!(election.leader_elect_retry_period, Duration::from_secs(2));
    assert_eq!(flags.bind_address, None);
}

#[test]
fn durations_of_an_election_that_do_not_fit_are_refused() {
    let flags = parsed(&["--leader-elect", "--leader-elect-lease-duration=5s"]).unwrap();
    let error = flags.check().unwrap_err();
    let text = "error: the lease duration (5s) must be greater than the renew deadline (10s)\n";
    assert_eq!((error.exit_code(), error.to_string().as_str()), (2, text));
    let without = parsed(&["--leader-elect-lease-duration=5s"]).unwrap();
    assert!(without.check().is_ok(), "there is no election");
}

#[test]
fn verbosity_has_one_dash_or_two() {
    for arguments in [&["-v=4"][..], &["-v4"], &["-v", "4"], &["--v=4"], &["--v", "4"]] {
        assert_eq!(parsed(arguments).unwrap().v, 4, "{arguments:?}");
    }
}

#[test]
fn objects_that_kube_client_prints_are_logged_at_no_verbosity() {
    for verbosity in 0..=10 {
        let flags = Flags { v: verbosity, ..parsed(&[]).unwrap() };
        let mut filters = flags.log_filter().split(',');
        assert!(filters.any(|filter| filter == "kube_client=error"), "{verbosity}");
    }
}

#[test]
fn leader_elect_is_a_switch_that_takes_a_value() {
    for (arguments, expected) in [
        (&["--leader-elect"][..], true),
        (&["--leader-elect=true"], true),
        (&["--leader-elect=false"], false),
    ] {
        assert_eq!(parsed(arguments).unwrap().leader_election.leader_elect, expected);
    }
}

#[test]
fn invalid_values_are_refused_with_what_is_allowed() {
    for (arguments, words) in [
        (["--leader-elect-lease-duration", "15"], "write numbers with units, as 300ms"),
        (["--master", "10.0.0.1:6443"], "http:// or https://"),
        (["--bind-address", ":8080"], "--bind-address <IP:PORT>"),
        (["--leader-elect", "--kube-api-burst=-1"], "--kube-api-burst"),
    ] {
        let error = parsed(&arguments).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn master_needs_no_kubeconfig_and_overrides_its_server() {
    let flags = parsed(&["--master", "http://127.0.0.1:1/base"]).unwrap();
    let missing = std::path::Path::new("/nonexistent/kubeconfig");
    let client = flags.client(client::builder()).await.unwrap();
    assert!(format!("{client:?}").contains("\"http://127.0.0.1:1/base\""), "{client:?}");
    let flags = Flags { kubeconfig: Some(missing.to_owned()), ..flags };
    let error = flags.client(client::builder()).await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/kubeconfig"), "{error}");
}

#[tokio::test]
async fn unknown_context_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}},
                     {"name": "d", "cluster": {"server": "http://127.0.0.1:2"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}},
                     {"name": "d", "context": {"cluster": "d", "user": "u"}}]}"#;
    std::fs::write(&path, text).unwrap();
    let flags = parsed(&["--context", "d"]).unwrap();
    let flags = Flags { kubeconfig: Some(path), ..flags };
    let client = flags.client(client::builder()).await.unwrap();
    assert!(format!("{client:?}").contains("\"http://127.0.0.1:2\""), "{client:?}");
    let flags = Flags { context: Some("e".to_owned()), ..flags };
    let error = flags.client(client::builder()).await.unwrap_err();
    assert!(error.to_string().contains("context: e"), "{error}");
}

#[tokio::test]
async fn elector_is_built_only_if_asked_for() {
    let client = crate::scripted_server::server(|asked| panic!("{asked:?}")).0;
    assert!(parsed(&[]).unwrap().elector(client.clone(), "program").unwrap().is_none());
    let flags = parsed(&["--leader-elect"]).unwrap();
    assert!(flags.elector(client.clone(), "program").unwrap().is_some());
    let flags = parsed(&["--leader-elect", "--leader-elect-renew-deadline", "20s"]).unwrap();
    assert!(flags.elector(client, "program").is_err());
}

#[test]
fn namespaces_are_sorted_and_unique() {
    let flags = parsed(&["--namespace=shop", "--namespace", "bank", "--namespace=shop"]).unwrap();
    assert_eq!(flags.sorted_namespaces(), ["bank", "shop"]);
    let text = flags.at_most_one_namespace().unwrap_err().to_string();
    assert!(text.contains("--namespace cannot be repeated"), "{text}");
    let flags = parsed(&["--namespace=shop"]).unwrap();
    assert_eq!(flags.at_most_one_namespace().unwrap().as_deref(), Some("shop"));
    assert!(flags.all_namespaces().unwrap_err().to_string().contains("all namespaces"));
    let flags = parsed(&[]).unwrap();
    assert_eq!(flags.at_most_one_namespace().unwrap(), None);
    assert!(flags.all_namespaces().is_ok() && flags.sorted_namespaces().is_empty());
}

#[test]
fn namespace_that_is_no_label_is_an_error_with_the_rule() {
    for namespace in ["", "Shop", "-shop", "shop-", "a.b", &"a".repeat(64)] {
        let error = parsed(&[&format!("--namespace={namespace}")]).unwrap_err();
        assert!(error.contains("--namespace") && error.contains("1 to 63"), "{error}");
    }
}
