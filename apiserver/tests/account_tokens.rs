//! Tokens of service accounts, from a client's point of view.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use homeostat_apiserver::{ApiServer, Builder, PublicKey};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_client::client::Body;
use kube_client::{Api, Client};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn decoded<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// Starts a server with the account `web`. Returns its client and the account's uid.
async fn start(builder: Builder) -> (Client, String) {
    let client = builder.build().client();
    let accounts = Api::<ServiceAccount>::default_namespaced(client.clone());
    let account = decoded(json!({"metadata": {"name": "web"}}));
    let account = accounts.create(&PostParams::default(), &account).await.unwrap();
    (client, account.metadata.uid.unwrap())
}

/// Returns the reply to a request for a token of `web`.
async fn request(client: &Client, spec: Value) -> Response<Body> {
    let body = json!({"spec": spec}).to_string().into_bytes();
    let path = "/api/v1/namespaces/default/serviceaccounts/web/token";
    let request = Request::post(path).header("Content-Type", "application/json");
    client.send(request.body(Body::from(body)).unwrap()).await.unwrap()
}

async fn json_of(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

/// Returns the claims of the token in a reply.
fn claims(reply: &Value) -> Value {
    let token = reply["status"]["token"].as_str().unwrap();
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// Returns the user that a review names, or its error.
async fn review(client: &Client, token: &str) -> Result<String, String> {
    let review = decoded(json!({"spec": {"token": token}}));
    let reviews = Api::<TokenReview>::all(client.clone());
    let review = reviews.create(&PostParams::default(), &review).await.unwrap();
    let status = review.status.unwrap();
    let user = status.user.and_then(|user| user.username);
    user.ok_or_else(|| status.error.unwrap())
}

/// Signs claims with the RSA key of the tests, as a controller does.
fn sign(claims: &Value) -> String {
    let pem = include_str!("keys/rsa-pkcs1.pem");
    let content: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let key = RsaKeyPair::from_der(&STANDARD.decode(content).unwrap()).unwrap();
    let message = [json!({"alg": "RS256"}), claims.clone()]
        .map(|part| URL_SAFE_NO_PAD.encode(part.to_string()))
        .join(".");
    let mut signature = vec![0; key.public().modulus_len()];
    let random = SystemRandom::new();
    key.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn accepting_the_key(builder: Builder) -> Builder {
    let keys = PublicKey::parse_all(include_str!("keys/rsa-public.pem")).unwrap();
    keys.into_iter().fold(builder, Builder::token_key)
}

#[tokio::test]
async fn token_of_another_signer_is_valid_for_the_account_that_it_names() {
    let (client, uid) = start(accepting_the_key(ApiServer::builder())).await;
    let of = |name: &str, uid: &str| {
        let holder = json!({
            "namespace": "default", "serviceaccount": {"name": name, "uid": uid},
        });
        json!({
            "iss": "https://kubernetes.default.svc", "aud": "https://kubernetes.default.svc",
            "sub": "system:serviceaccount:default:web", "kubernetes.io": holder,
        })
    };
    let token = sign(&of("web", &uid));
    assert_eq!(review(&client, &token).await.unwrap(), "system:serviceaccount:default:web");
    let spaced = format!("{token} ");
    assert_eq!(review(&client, &spaced).await, review(&client, &token).await);
    let mut expired = of("web", &uid);
    expired["exp"] = json!(1);
    for (claims, expected) in [
        (of("nope", &uid), "serviceaccounts \"nope\" not found".to_owned()),
        (of("web", "x"), format!("service account UID ({uid}) does not match claim (x)")),
        (expired, "service account token has expired".to_owned()),
    ] {
        let error = review(&client, &sign(&claims)).await.unwrap_err();
        assert_eq!(error, format!("[invalid bearer token, {expected}]"));
    }
    // A server without the key.
    let (client, _) = start(ApiServer::builder()).await;
    let error = review(&client, &token).await.unwrap_err();
    assert!(error.contains("error in cryptographic primitive"), "{error}");
}

#[tokio::test]
async fn token_in_a_secret_is_valid_while_the_secret_has_it() {
    let (client, uid) = start(accepting_the_key(ApiServer::builder())).await;
    let claims = claims_of_secret(&uid);
    let token = sign(&claims);
    let fails = async |token: &str, expected: &str| {
        let error = review(&client, token).await.unwrap_err();
        assert!(error.starts_with("[invalid bearer token, "), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    fails(&token, "Token has been invalidated").await;

    let secrets = Api::<Secret>::default_namespaced(client.clone());
    secrets.create(&PostParams::default(), &secret_with(&token)).await.unwrap();
    assert_eq!(review(&client, &token).await.unwrap(), "system:serviceaccount:default:web");
    let used = secrets.get("s").await.unwrap().metadata;
    let day = &used.creation_timestamp.unwrap().0.to_string()[..10];
    let labels = used.labels.unwrap();
    assert_eq!(labels["kubernetes.io/legacy-token-last-used"], day);
    let mut altered = claims.clone();
    altered["sub"] = json!("system:serviceaccount:default:joe");
    fails(&sign(&altered), "sub claim is invalid").await;
    altered["sub"] = json!("");
    fails(&sign(&altered), "sub claim is missing").await;
    let mut later = claims.clone();
    later["iat"] = json!(1);
    fails(&sign(&later), "Token does not match server's copy").await;

    let label = json!({"metadata": {"labels": {
        "kubernetes.io/legacy-token-invalid-since": "2026-01-01",
    }}});
    secrets.patch("s", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    fails(&token, "for service account default/web has been marked invalid").await;
    secrets.delete("s", &DeleteParams::default()).await.unwrap();
    fails(&token, "Token has been invalidated").await;
}

#[tokio::test]
async fn token_of_a_secret_that_its_account_lists_warns() {
    let (client, uid) = start(accepting_the_key(ApiServer::builder())).await;
    let token = sign(&claims_of_secret(&uid));
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    secrets.create(&PostParams::default(), &secret_with(&token)).await.unwrap();
    let warnings = async |path: &str| {
        let request = Request::get(path).header("Authorization", format!("Bearer {token}"));
        let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        let warnings = response.headers().get_all("Warning").iter();
        warnings.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let paths = ["/api/v1/namespaces/default/secrets/s", "/version", "/api/v1/endpoints"];
    assert!(warnings(paths[0]).await.is_empty());
    let list = Patch::Merge(json!({"secrets": [{"name": "s"}]}));
    let accounts = Api::<ServiceAccount>::default_namespaced(client.clone());
    accounts.patch("web", &PatchParams::default(), &list).await.unwrap();
    let expected = "299 - \"Use tokens from the TokenRequest API or manually created secret-based \
        tokens instead of auto-generated secret-based tokens.\"";
    for path in paths {
        // The warning about the version of a resource comes later.
        assert_eq!(warnings(path).await[0], expected, "{path}");
    }
}

/// Returns the claims of a token in the secret `s`, for the account `web` with this uid.
fn claims_of_secret(uid: &str) -> Value {
    let start = "kubernetes.io/serviceaccount";
    json!({
        "iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:web",
        (format!("{start}/namespace")): "default", (format!("{start}/secret.name")): "s",
        (format!("{start}/service-account.name")): "web",
        (format!("{start}/service-account.uid")): uid,
    })
}

/// Returns the secret `s` with a token of the account `web`.
fn secret_with(token: &str) -> Secret {
    decoded(json!({
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "web"}},
        "type": "kubernetes.io/service-account-token", "stringData": {"token": token},
    }))
}

#[tokio::test]
async fn longer_lifetime_is_cut_with_a_warning() {
    let hour = Duration::from_secs(3600);
    let (client, _) = start(ApiServer::builder().longest_token_lifetime(hour)).await;
    for (seconds, warning) in [
        (3600, None),
        (3601, Some("299 - \"requested expiration of 3601 seconds shortened to 3600 seconds\"")),
    ] {
        let response = request(&client, json!({"expirationSeconds": seconds})).await;
        let shown =
            response.headers().get("Warning").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(shown.as_deref(), warning);
        let reply = json_of(response).await;
        assert_eq!(reply["spec"]["expirationSeconds"], 3600);
        let claims = claims(&reply);
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    }
}

#[tokio::test]
async fn kubelets_get_a_year_unless_it_is_refused() {
    let spec = json!({
        "expirationSeconds": 3607,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"},
    });
    for (builder, lifetime, warns) in [
        (ApiServer::builder(), 365 * 24 * 3600, true),
        (ApiServer::builder().without_extended_tokens(), 3607, false),
    ] {
        let (client, _) = start(builder).await;
        let pod = decoded(json!({
            "metadata": {"name": "p"},
            "spec": {"serviceAccountName": "web", "containers": [{"name": "c", "image": "i"}]},
        }));
        let pods = Api::<Pod>::default_namespaced(client.clone());
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let claims = claims(&json_of(request(&client, spec.clone()).await).await);
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), lifetime);
        assert_eq!(claims["kubernetes.io"].get("warnafter").is_some(), warns);
    }
}

#[tokio::test]
async fn documents_about_an_issuer_without_an_address_do_not_exist() {
    for (issuer, expected) in
        [("https://issuer.example", StatusCode::OK), ("issuer", StatusCode::NOT_FOUND)]
    {
        let (client, _) = start(ApiServer::builder().token_issuer(issuer)).await;
        for path in ["/.well-known/openid-configuration", "/openid/v1/jwks"] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            assert_eq!(client.send(request).await.unwrap().status(), expected, "{issuer}");
        }
        let request = Request::get("/").body(Body::empty()).unwrap();
        let paths = json_of(client.send(request).await.unwrap()).await["paths"].to_string();
        assert_eq!(paths.contains("openid"), expected == StatusCode::OK, "{paths}");
    }
}
