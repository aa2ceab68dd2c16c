use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube_client::config::{ExecConfig, ExecInteractiveMode};
use tempfile::NamedTempFile;

use super::*;

fn token_file(token: &str) -> (NamedTempFile, Credentials) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(token.as_bytes()).unwrap();
    let token_file = Some(file.path().display().to_string());
    let user = AuthInfo { token_file, ..AuthInfo::default() };
    (file, Credentials::new(&user).unwrap())
}

fn script(text: &str) -> Credentials {
    script_of(text, AuthInfo::default())
}

fn script_of(text: &str, user: AuthInfo) -> Credentials {
    let exec: ExecConfig = serde_json::from_value(serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", text]
    }))
    .unwrap();
    let exec = ExecConfig { interactive_mode: Some(ExecInteractiveMode::Never), ..exec };
    Credentials::new(&AuthInfo { exec: Some(exec), ..user }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn token_file_is_read_each_minute_and_kept_while_it_is_missing() {
    let (file, credentials) = token_file("old");
    let token = async || credentials.get().await.unwrap().authorization.clone().unwrap();
    assert_eq!(token().await, "Bearer old");
    std::fs::write(file.path(), "new").unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(token().await, "Bearer old");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(token().await, "Bearer new");
    // The file is being written.
    std::fs::write(file.path(), "").unwrap();
    tokio::time::advance(FILE_PERIOD).await;
    assert_eq!(token().await, "Bearer new");
    drop(file);
    tokio::time::advance(FILE_PERIOD).await;
    assert_eq!(token().await, "Bearer new");
}

#[test]
fn token_file_that_is_empty_at_the_start_is_an_error() {
    let file = NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    let user = AuthInfo { token_file: Some(path.clone()), ..AuthInfo::default() };
    let error = Credentials::new(&user).unwrap_err().to_string();
    assert_eq!(error, format!("read empty token from file {path:?}"));
}

#[tokio::test]
async fn failing_plugin_is_an_error_with_its_output() {
    let error = async |text: &str| match script(text).get().await {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    };
    let failed = "exec: executable sh failed with exit code 2: no network";
    assert_eq!(error("echo no network >&2; exit 2").await, failed);
    let other = "echo '{\"apiVersion\": \"client.authentication.k8s.io/v1beta1\"}'";
    assert_eq!(
        error(other).await,
        "exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin \
         returned version client.authentication.k8s.io/v1beta1"
    );
    let empty = "echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": {}}'";
    assert_eq!(error(empty).await, "exec plugin didn't return a token or cert/key pair");
    let empty = "echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": \
                 {\"token\": \"\", \"clientCertificateData\": \"\", \"clientKeyData\": \"\"}}'";
    assert_eq!(error(empty).await, "exec plugin didn't return a token or cert/key pair");
    let empty = "echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": \
                 {\"token\": \"a\", \"clientCertificateData\": \"\", \"clientKeyData\": \"\"}}'";
    assert_eq!(error(empty).await, "no error");
    assert!(error("echo hello").await.starts_with("exec: decoding stdout of sh: "));
}

#[tokio::test]
async fn plugin_outlives_the_request_that_started_it() {
    let runs = NamedTempFile::new().unwrap();
    let text = format!(
        "echo run >> {}; sleep 1; echo '{{\"apiVersion\": \"client.authentication.k8s.io/v1\", \
         \"status\": {{\"token\": \"a\"}}}}'",
        runs.path().display()
    );
    let credentials = Arc::new(script(&text));
    let short = Duration::from_millis(200);
    let request = tokio::time::timeout(short, credentials.get_for_request()).await;
    assert!(request.is_err(), "the plugin takes longer");
    credentials.get_for_request().await.unwrap();
    assert_eq!(std::fs::read_to_string(runs.path()).unwrap(), "run\n");
}

#[tokio::test]
async fn plugin_that_fails_runs_once_for_all_requests_that_wait() {
    let runs = NamedTempFile::new().unwrap();
    let text = format!("echo run >> {}; sleep 0.2; exit 1", runs.path().display());
    let credentials = Arc::new(script(&text));
    let failures = async |count| {
        let requests = (0..count).map(|_| credentials.get_for_request());
        for failed in futures::future::join_all(requests).await {
            let error = failed.err().unwrap().to_string();
            assert_eq!(error, "exec: executable sh failed with exit code 1");
        }
    };
    failures(5).await;
    assert_eq!(std::fs::read_to_string(runs.path()).unwrap(), "run\n");
    failures(2).await;
    assert_eq!(std::fs::read_to_string(runs.path()).unwrap(), "run\nrun\n");
}

#[tokio::test]
async fn empty_token_and_user_of_a_kubeconfig_count_as_none() {
    let empty = || Some(String::new());
    let user = AuthInfo {
        username: empty(),
        password: Some("".into()),
        token: Some("".into()),
        token_file: empty(),
        ..AuthInfo::default()
    };
    let anonymous = Credentials::new(&user).unwrap().get().await.unwrap();
    assert_eq!(anonymous.authorization, None);
    let text = "echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": \
                {\"token\": \"a\"}}'";
    let plugin = script_of(text, user).get().await.unwrap();
    assert_eq!(plugin.authorization.as_ref().unwrap(), "Bearer a");
}

#[tokio::test(start_paused = true)]
async fn token_file_comes_before_a_token() {
    let file = NamedTempFile::new().unwrap();
    let token_file = Some(file.path().display().to_string());
    let user = || AuthInfo {
        token: Some("text".to_owned().into()),
        token_file: token_file.clone(),
        ..AuthInfo::default()
    };
    let token = async |credentials: &Credentials| {
        credentials.get().await.unwrap().authorization.clone().unwrap()
    };
    // Until the file has a token, the text counts.
    let credentials = Credentials::new(&user()).unwrap();
    assert_eq!(token(&credentials).await, "Bearer text");
    std::fs::write(file.path(), "file").unwrap();
    tokio::time::advance(FILE_PERIOD).await;
    assert_eq!(token(&credentials).await, "Bearer file");
    assert_eq!(token(&Credentials::new(&user()).unwrap()).await, "Bearer file");
    drop(file);
    tokio::time::advance(FILE_PERIOD).await;
    assert_eq!(token(&credentials).await, "Bearer file");
}

#[cfg(feature = "rustls-tls")]
#[tokio::test]
async fn client_certificate_comes_before_a_plugin() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
    let user = AuthInfo {
        client_certificate_data: Some(BASE64.encode(certificate.pem())),
        client_key_data: Some(BASE64.encode(key.serialize_pem()).into()),
        ..AuthInfo::default()
    };
    let credentials = script_of("exit 1", user).get().await.unwrap();
    assert!(credentials.identity.is_some() && credentials.authorization.is_none());
}

#[test]
fn certificate_without_a_key_is_an_error() {
    let certificate = Some("/nonexistent".to_owned());
    let user = AuthInfo { client_certificate: certificate, ..AuthInfo::default() };
    let error = Credentials::new(&user).unwrap_err().to_string();
    assert_eq!(error, "the client certificate has no client-key");
}
