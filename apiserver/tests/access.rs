//! Users, tokens and roles, from a client's point of view.

#![cfg(feature = "tls")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use homeostat_apiserver::{ApiServer, Listener, User};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview};
use k8s_openapi::api::authorization::v1::SelfSubjectRulesReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube_client::api::{DeleteParams, ListParams, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config, Error};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn decoded<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// Returns the status code and the message of the server's refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String) {
    match result.unwrap_err() {
        Error::Api(status) => (status.code, status.message),
        other => panic!("{other}"),
    }
}

/// Lets a subject read config maps of the namespace `default`.
async fn let_read(server: &ApiServer, subject: Value) {
    let roles: Api<Role> = Api::default_namespaced(server.client());
    let role = decoded(json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    }));
    roles.create(&PostParams::default(), &role).await.unwrap();
    let bindings: Api<RoleBinding> = Api::default_namespaced(server.client());
    let binding = decoded(json!({
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [subject],
    }));
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

async fn client_of(listener: &Listener, token: Option<&str>) -> Client {
    let mut kubeconfig = Kubeconfig::from_yaml(&listener.kubeconfig()).unwrap();
    let user = kubeconfig.auth_infos[0].auth_info.as_mut().unwrap();
    user.token = token.map(|token| token.to_owned().into());
    client_with(kubeconfig).await
}

async fn client_with(kubeconfig: Kubeconfig) -> Client {
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

async fn user_of(client: &Client) -> Result<String, Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(review.status.unwrap().user_info.unwrap().username.unwrap())
}

#[tokio::test]
async fn user_may_do_what_a_role_permits() {
    let server = ApiServer::builder().authorization().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client_of(User::new("jane")));
    let (code, message) = refusal(maps.list(&ListParams::default()).await);
    assert_eq!(code, 403);
    let expected = "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in \
        API group \"\" in the namespace \"default\"";
    assert_eq!(message, expected);
    let_read(&server, json!({"kind": "User", "name": "jane"})).await;
    maps.list(&ListParams::default()).await.unwrap();
    let (code, message) = refusal(maps.delete("a", &DeleteParams::default()).await);
    assert_eq!(code, 403);
    assert!(message.contains("cannot delete resource \"configmaps\""), "{message}");
}

#[tokio::test]
async fn every_request_is_permitted_without_authorization() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::all(server.client_of(User::new("jane")));
    maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(user_of(&server.client_of(User::new("jane"))).await.unwrap(), "jane");
    let listener = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let client = client_of(&listener, None).await;
    assert_eq!(user_of(&client).await.unwrap(), "kubernetes-admin");
}

#[tokio::test]
async fn rules_of_a_user_permit_everything_without_authorization() {
    let reviews: Api<SelfSubjectRulesReview> = Api::all(ApiServer::new().client());
    let review = decoded(json!({"spec": {"namespace": "default"}}));
    let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
    let [rule] = &*status.resource_rules else { panic!("{status:?}") };
    assert_eq!((&*rule.verbs, rule.resources.as_deref()), (&any()[..], Some(&any()[..])));
    let [rule] = &*status.non_resource_rules else { panic!("{status:?}") };
    assert_eq!(rule.non_resource_urls.as_deref(), Some(&any()[..]));
}

fn any() -> [String; 1] {
    ["*".to_owned()]
}

#[tokio::test]
async fn rules_of_a_user_are_those_of_its_bindings() {
    let server = ApiServer::builder().authorization().build();
    let_read(&server, json!({"kind": "Group", "name": "dev"})).await;
    let user = User::new("jane").in_group("dev");
    let reviews: Api<SelfSubjectRulesReview> = Api::all(server.client_of(user));
    let review = decoded(json!({"spec": {"namespace": "default"}}));
    let review = reviews.create(&PostParams::default(), &review).await.unwrap();
    let status = review.status.unwrap();
    assert!(!status.incomplete);
    let rule = status.resource_rules.iter().find(|rule| rule.verbs == ["get", "list"]).unwrap();
    assert_eq!(rule.resources.as_ref().unwrap(), &["configmaps"]);
    let paths: Vec<_> = status
        .non_resource_rules
        .iter()
        .flat_map(|rule| &rule.non_resource_urls)
        .flatten()
        .collect();
    assert!(paths.iter().any(|path| *path == "/openapi/*"), "{paths:?}");
}

#[tokio::test]
async fn token_over_tls_names_the_user() {
    let server = ApiServer::builder().authorization().build();
    let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    assert!(listener.url().starts_with("https://127.0.0.1:"), "{}", listener.url());
    let token = server.token_of(User::new("jane"));
    assert_eq!(user_of(&client_of(&listener, Some(&token)).await).await.unwrap(), "jane");
    let (code, message) = refusal(user_of(&client_of(&listener, Some("nope")).await).await);
    assert_eq!((code, &*message), (401, "Unauthorized"));
    let (code, message) = refusal(user_of(&client_of(&listener, None).await).await);
    assert_eq!(code, 403);
    assert!(message.contains("User \"system:anonymous\" cannot create"), "{message}");
}

#[tokio::test]
async fn request_without_credentials_is_unauthorized_without_anonymous_users() {
    let server = ApiServer::builder().authorization().without_anonymous().build();
    let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let (code, message) = refusal(user_of(&client_of(&listener, None).await).await);
    assert_eq!((code, &*message), (401, "Unauthorized"));
    let token = server.token_of(User::new("jane"));
    assert_eq!(user_of(&client_of(&listener, Some(&token)).await).await.unwrap(), "jane");
}

#[tokio::test]
async fn certificate_over_tls_names_the_user_and_a_group() {
    let server = ApiServer::builder().authorization().build();
    let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let group = json!({"kind": "Group", "name": "dev", "apiGroup": "rbac.authorization.k8s.io"});
    let_read(&server, group).await;
    let jane = User::new("jane").in_group("dev");
    let kubeconfig = Kubeconfig::from_yaml(&listener.kubeconfig_of(&jane).unwrap()).unwrap();
    let client = client_with(kubeconfig.clone()).await;
    assert_eq!(user_of(&client).await.unwrap(), "jane");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.list(&ListParams::default()).await.unwrap();
    let (code, message) = refusal(maps.delete("a", &DeleteParams::default()).await);
    assert_eq!(code, 403);
    assert!(message.contains("User \"jane\" cannot delete"), "{message}");

    // A certificate counts more than a token, also than an invalid one.
    for token in [server.token_of(User::new("joe")), "nope".to_owned()] {
        let mut with_token = kubeconfig.clone();
        let user = with_token.auth_infos[0].auth_info.as_mut().unwrap();
        user.token = Some(token.into());
        assert_eq!(user_of(&client_with(with_token).await).await.unwrap(), "jane");
    }

    let admin = listener.kubeconfig_of(&User::new("root").in_group("system:masters")).unwrap();
    let client = client_with(Kubeconfig::from_yaml(&admin).unwrap()).await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client);
    let account: ServiceAccount = decoded(json!({"metadata": {"name": "web"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();

    let error = listener.kubeconfig_of(&jane.in_group("ops")).unwrap_err();
    assert!(error.to_string().ends_with("more than one group"), "{error}");
}

#[tokio::test]
async fn certificate_of_another_authority_is_unauthorized_without_a_token() {
    let server = ApiServer::builder().authorization().build();
    let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let other = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let masters = User::new("root").in_group("system:masters");
    let other = Kubeconfig::from_yaml(&other.kubeconfig_of(&masters).unwrap()).unwrap();
    let mut kubeconfig = Kubeconfig::from_yaml(&listener.kubeconfig()).unwrap();
    kubeconfig.auth_infos = other.auth_infos;
    let (code, message) = refusal(user_of(&client_with(kubeconfig.clone()).await).await);
    assert_eq!((code, &*message), (401, "Unauthorized"));
    let user = kubeconfig.auth_infos[0].auth_info.as_mut().unwrap();
    user.token = Some(server.token_of(User::new("jane")).into());
    assert_eq!(user_of(&client_with(kubeconfig).await).await.unwrap(), "jane");
}

#[tokio::test]
async fn certificate_of_a_trusted_authority_names_the_user() {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let other = ApiServer::builder().authorization().build();
    let other = other.listen_tls(address).await.unwrap();
    let jane = Kubeconfig::from_yaml(&other.kubeconfig_of(&User::new("jane")).unwrap()).unwrap();
    let cluster = jane.clusters[0].cluster.as_ref().unwrap();
    let authority = cluster.certificate_authority_data.as_ref().unwrap();
    let authority = String::from_utf8(STANDARD.decode(authority).unwrap()).unwrap();
    let server = ApiServer::builder().authorization().client_authority(authority).build();
    let listener = server.listen_tls(address).await.unwrap();
    let mut kubeconfig = Kubeconfig::from_yaml(&listener.kubeconfig()).unwrap();
    kubeconfig.auth_infos = jane.auth_infos;
    assert_eq!(user_of(&client_with(kubeconfig).await).await.unwrap(), "jane");
    let invalid = ApiServer::builder().client_authority("no certificate").build();
    let error = invalid.listen_tls(address).await.unwrap_err();
    assert!(error.to_string().contains("authority of clients"), "{error}");
}

#[tokio::test]
async fn token_of_a_service_account_ends_with_the_account() {
    let server = ApiServer::builder().authorization().build();
    let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client());
    let account: ServiceAccount = decoded(json!({"metadata": {"name": "web"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let_read(&server, json!({"kind": "ServiceAccount", "name": "web"})).await;
    let request = TokenRequest::default();
    let issued =
        accounts.create_token_request("web", &PostParams::default(), &request).await.unwrap();
    let client = client_of(&listener, issued.status.unwrap().token.as_deref()).await;
    assert_eq!(user_of(&client).await.unwrap(), "system:serviceaccount:default:web");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.list(&ListParams::default()).await.unwrap();

    accounts.delete("web", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(user_of(&client).await).0, 401);
    // Another account of the same name is not the one that the token was issued for.
    accounts.create(&PostParams::default(), &account).await.unwrap();
    assert_eq!(refusal(user_of(&client).await).0, 401);
}

#[tokio::test]
async fn token_bound_to_a_secret_ends_with_it() {
    let server = ApiServer::builder().authorization().build();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client());
    let account = decoded(json!({"metadata": {"name": "web"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let secrets: Api<Secret> = Api::default_namespaced(server.client());
    let secret = decoded(json!({"metadata": {"name": "a"}}));
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let bound = json!({"apiVersion": "v1", "kind": "Secret", "name": "a"});
    let request: TokenRequest = decoded(json!({"spec": {"boundObjectRef": bound}}));
    let reply =
        accounts.create_token_request("web", &PostParams::default(), &request).await.unwrap();
    let token = reply.status.unwrap().token;
    let reviews: Api<TokenReview> = Api::all(server.client());
    let is_valid = async || {
        let review = decoded(json!({"spec": {"token": token}}));
        let review = reviews.create(&PostParams::default(), &review).await.unwrap();
        review.status.unwrap().authenticated == Some(true)
    };
    assert!(is_valid().await);
    secrets.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(!is_valid().await);
    // Another secret of the same name is not the one that the token is bound to.
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    assert!(!is_valid().await);
}

#[tokio::test]
async fn audiences_of_the_server_decide_which_tokens_it_accepts() {
    let builder = ApiServer::builder().authorization().token_issuer("https://shop.example");
    let server = builder.api_audience("api").api_audience("more").build();
    let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client());
    let account: ServiceAccount = decoded(json!({"metadata": {"name": "web"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let issue = async |audiences: &[&str]| {
        let request = decoded(json!({"spec": {"audiences": audiences}}));
        let reply = accounts.create_token_request("web", &PostParams::default(), &request).await;
        let TokenRequest { spec, status, .. } = reply.unwrap();
        (spec.unwrap().audiences.unwrap(), status.unwrap().token.unwrap())
    };

    let (audiences, token) = issue(&[]).await;
    assert_eq!(audiences, ["api", "more"]);
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["iss"], "https://shop.example");
    for (audiences, is_accepted) in [
        (&[][..], true),
        (&["more"], true),
        (&["vault", "api"], true),
        (&["https://shop.example"], false),
    ] {
        let (_, token) = issue(audiences).await;
        let client = client_of(&listener, Some(&token)).await;
        assert_eq!(user_of(&client).await.is_ok(), is_accepted, "{audiences:?}");
    }
    let client = server.client();
    let request = http::Request::get("/.well-known/openid-configuration").body(Vec::new());
    let document = client.request_text(request.unwrap()).await.unwrap();
    assert!(document.contains("\"issuer\":\"https://shop.example\""));
}

#[tokio::test]
async fn token_is_valid_for_its_audiences_alone() {
    let server = ApiServer::builder().authorization().build();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client());
    let account = decoded(json!({"metadata": {"name": "web"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request: TokenRequest = decoded(json!({"spec": {"audiences": ["vault", "api"]}}));
    let reply =
        accounts.create_token_request("web", &PostParams::default(), &request).await.unwrap();
    let token = reply.status.unwrap().token;
    let reviews: Api<TokenReview> = Api::all(server.client());
    let review = async |audiences: &[&str]| {
        let review = decoded(json!({"spec": {"token": token, "audiences": audiences}}));
        reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap()
    };
    let status = review(&["api", "other"]).await;
    assert_eq!(status.authenticated, Some(true));
    assert_eq!(status.audiences, Some(vec!["api".to_owned()]));
    assert_eq!(status.user.unwrap().username.unwrap(), "system:serviceaccount:default:web");
    let status = review(&[]).await;
    assert_eq!(status.authenticated, None);
    let expected = "[invalid bearer token, token audiences [\"vault\" \"api\"] is invalid for the \
                    target audiences [\"https://kubernetes.default.svc\"]]";
    assert_eq!(status.error.unwrap(), expected);
    let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let client = client_of(&listener, token.as_deref()).await;
    assert_eq!(refusal(user_of(&client).await).0, 401);
}

#[tokio::test]
async fn authorities_of_clients_are_published() {
    let server = ApiServer::builder().authorization().build();
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "kube-system");
    let published = async || {
        let map = maps.get("extension-apiserver-authentication").await.unwrap();
        map.data.unwrap_or_default().remove("client-ca-file").unwrap_or_default()
    };
    assert_eq!(published().await, "");
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let first = server.listen_tls(local).await.unwrap();
    let second = server.listen_tls(local).await.unwrap();
    let all = published().await;
    for listener in [&first, &second] {
        let kubeconfig = Kubeconfig::from_yaml(&listener.kubeconfig()).unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        let encoded = cluster.certificate_authority_data.as_ref().unwrap();
        let authority = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
        assert!(all.contains(authority.trim()), "{all}");
    }
    assert_eq!(all.matches("BEGIN CERTIFICATE").count(), 2);
}
