//! Tokens of service accounts, and the files with their keys.

use std::fs;
use std::path::Path;

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube_client::Api;
use kube_client::api::PostParams;
use serde_json::{Value, json};

use crate::server::{Server, client, client_with, fails};

/// Returns the path of a key.
fn key(name: &str) -> String {
    format!("{}/tests/keys/{name}.pem", env!("CARGO_MANIFEST_DIR"))
}

/// Creates an account, unless it exists, and requests a token of it.
async fn request(kubeconfig: &Path, seconds: i64) -> TokenRequest {
    let accounts = Api::<ServiceAccount>::default_namespaced(client(kubeconfig).await);
    let account = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
    // It exists if the state file has it.
    drop(accounts.create(&PostParams::default(), &account).await);
    let request = serde_json::from_value(json!({"spec": {"expirationSeconds": seconds}})).unwrap();
    accounts.create_token_request("web", &PostParams::default(), &request).await.unwrap()
}

fn token(request: &TokenRequest) -> &str {
    request.status.as_ref().unwrap().token.as_deref().unwrap()
}

/// Returns the user that the server takes the owner of a token for.
async fn user_of(kubeconfig: &Path, token: &str) -> Result<String, String> {
    let reviews = Api::<SelfSubjectReview>::all(client_with(kubeconfig, Some(token)).await);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let review = review.map_err(|error| error.to_string())?;
    Ok(review.status.unwrap().user_info.unwrap().username.unwrap())
}

/// Returns a document of the server.
async fn document(kubeconfig: &Path, path: &str) -> Value {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client(kubeconfig).await.request(request).await.unwrap()
}

#[tokio::test]
async fn token_outlives_the_program_if_a_file_has_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let state = format!("--state={}", folder.path().join("state").display());
    let start =
        |flags: &[&str]| Server::start(&[&["--secure", &state], flags].concat(), &kubeconfig);
    let jane = "system:serviceaccount:default:web";
    let old = format!("--service-account-signing-key-file={}", key("rsa-pkcs1"));

    let server = start(&["--service-account-issuer=https://old", &old]);
    let first = request(&kubeconfig, 3600).await;
    assert_eq!(user_of(&kubeconfig, token(&first)).await.unwrap(), jane);
    server.stop("-TERM");

    // Another key and another issuer: tokens of both are valid.
    let keys = folder.path().join("keys.pem");
    let both =
        ["p384-certificate", "rsa-public"].map(|name| fs::read_to_string(key(name)).unwrap());
    fs::write(&keys, both.concat()).unwrap();
    let rotated = [
        "--service-account-issuer=https://new",
        "--service-account-issuer=https://old",
        &format!("--service-account-signing-key-file={}", key("p384-sec1")),
        &format!("--service-account-key-file={}", keys.display()),
        &format!("--service-account-key-file={}", key("p256-public")),
    ];
    let server = start(&rotated);
    let second = request(&kubeconfig, 3600).await;
    for request in [&first, &second] {
        assert_eq!(user_of(&kubeconfig, token(request)).await.unwrap(), jane);
    }
    let described = document(&kubeconfig, "/.well-known/openid-configuration").await;
    assert_eq!(described["issuer"], "https://new");
    let algorithms = &described["id_token_signing_alg_values_supported"];
    assert_eq!(*algorithms, json!(["ES256", "ES384", "RS256"]));
    let published = document(&kubeconfig, "/openid/v1/jwks").await;
    assert_eq!(published["keys"].as_array().unwrap().len(), 3);
    server.stop("-TERM");

    // A key that the server makes ends with it.
    for flags in [&["--service-account-issuer=https://old"][..], &rotated[..2]] {
        let server = start(flags);
        for request in [&first, &second] {
            let error = user_of(&kubeconfig, token(request)).await.unwrap_err();
            assert!(error.contains("Unauthorized"), "{error}");
        }
        server.stop("-TERM");
    }
}

#[tokio::test]
async fn flags_limit_the_lifetime_of_tokens_and_name_the_address_of_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let server = Server::start(
        &[
            "--secure",
            "--service-account-max-token-expiration=1h30m",
            "--service-account-extend-token-expiration=false",
            "--service-account-jwks-uri=https://keys.example/jwks",
        ],
        &kubeconfig,
    );
    for (seconds, granted) in [(3600, 3600), (5401, 5400)] {
        let request = request(&kubeconfig, seconds).await;
        assert_eq!(request.spec.unwrap().expiration_seconds, Some(granted));
    }
    let described = document(&kubeconfig, "/.well-known/openid-configuration").await;
    assert_eq!(described["jwks_uri"], "https://keys.example/jwks");
    server.stop("-TERM");
}

#[test]
fn wrong_flags_of_tokens_fail_with_kube_apiservers_words() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let (nothing, public) = (folder.path().join("nothing.pem"), key("rsa-public"));
    fs::write(&nothing, "nothing").unwrap();
    let nothing = nothing.display();
    let signing = |file: &str| format!("--service-account-signing-key-file={file}");
    let verifying = |file: &str| format!("--service-account-key-file={file}");
    let no_private = "data does not contain a valid RSA or ECDSA private key";
    for (flag, expected) in [
        (
            signing(&public),
            format!(
                "failed to parse service-account-issuer-key-file: error reading private key file \
                 {public}: {no_private}"
            ),
        ),
        (
            verifying(&nothing.to_string()),
            format!(
                "failed to parse key file \"{nothing}\": error reading public key file {nothing}: \
                 data does not contain any valid RSA or ECDSA public keys"
            ),
        ),
        (signing("nope"), "cannot read nope".to_owned()),
        (signing(&key("p521-sec1")), "its curve is neither P-256 nor P-384".to_owned()),
        (
            "--service-account-issuer=".to_owned(),
            "service-account-issuer should not be an empty string".to_owned(),
        ),
        (
            "--service-account-max-token-expiration=59m".to_owned(),
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
                .to_owned(),
        ),
        (
            "--service-account-jwks-uri=http://keys".to_owned(),
            "service-account-jwks-uri requires https scheme, parsed as: http://keys".to_owned(),
        ),
    ] {
        let errors = fails(&[&flag], &kubeconfig);
        assert!(errors.contains(&expected), "{flag}: {errors}");
    }
    let twice = ["--service-account-issuer=a"; 2];
    let errors = fails(&twice, &kubeconfig);
    assert!(errors.contains("service-account-issuer \"a\" is already specified"), "{errors}");
}
