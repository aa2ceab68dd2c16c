//! Credentials that change while the client runs, plugins, proxies, and old certificates.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use homeostat::SharedIndexInformer;
use homeostat::client::{self, describe_error};
use homeostat::informer::list_watch::KubeListWatch;
use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use homeostat::observe::{Diagnostics, Unready};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::server::{Authority, Identity, SERVER_NAME, Server, client, get, kubeconfig};

/// Accepts every client certificate, as a server with another TLS library does.
#[derive(Debug)]
struct AcceptAny;

impl ClientCertVerifier for AcceptAny {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Encodes one DER element.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut element = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length @ 0..=127) => element.push(length),
        Ok(length) => element.extend([0x81, length]),
        Err(_) => {
            element.push(0x82);
            element.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
        }
    }
    element.extend(content);
    element
}

/// Returns a certificate without the field `version`: X.509 version 1.
fn version_1() -> Identity {
    let key = KeyPair::generate().unwrap();
    let common_name = [der(6, &[&[0x55, 4, 3]]), der(0x0c, &[b"bob"])].concat();
    let name = der(0x30, &[&der(0x31, &[&der(0x30, &[&common_name])])]);
    let ecdsa_with_sha256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    let algorithm = der(0x30, &[&der(6, &[&ecdsa_with_sha256])]);
    let times = [der(0x17, &[b"250101000000Z"]), der(0x17, &[b"490101000000Z"])].concat();
    let (serial, validity) = (der(2, &[&[1]]), der(0x30, &[&times]));
    let public = key.subject_public_key_info();
    let signed = der(0x30, &[&serial, &algorithm, &name, &validity, &name, &public]);
    let signature = der(3, &[&[0], &key.sign(&signed).unwrap()]);
    let certificate = BASE64.encode(der(0x30, &[&signed, &algorithm, &signature]));
    let lines: Vec<_> = certificate.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    let certificate =
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
    Identity { certificate, key: key.serialize_pem() }
}

fn write(folder: &TempDir, name: &str, content: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.display().to_string()
}

/// Returns the user of a kubeconfig whose plugin is a shell script.
fn plugin(folder: &TempDir, script: &str) -> String {
    let path = write(folder, "plugin.sh", script);
    format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [{path}], \
         interactiveMode: Never}}"
    )
}

#[tokio::test]
async fn client_certificate_of_x509_version_1_is_presented() {
    drop(ring::default_provider().install_default());
    let authority = Authority::new();
    let server = Server::start_with(&authority, &["h2"], Arc::new(AcceptAny)).await;
    let Identity { certificate, key } = version_1();
    let user = format!(
        "client-certificate-data: {}, client-key-data: {}",
        BASE64.encode(certificate),
        BASE64.encode(key)
    );
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), &user)).await;
    assert_eq!(get(&client).await, "HTTP/2.0, 1 certificates, none");
}

/// A server, and a client whose certificate is in files.
struct Rotation {
    server: Server,
    folder: TempDir,
    old: Identity,
    new: Identity,
    client: Client,
}

impl Rotation {
    /// Starts the server and a client with the old certificate.
    async fn start() -> Self {
        let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
        let server = Server::start(&authority, &["h2"]).await;
        let (old, new) = (authority.issue("old"), authority.issue("new"));
        let certificate = write(&folder, "tls.crt", &old.certificate);
        let key = write(&folder, "tls.key", &old.key);
        let user = format!("client-certificate: {certificate}, client-key: {key}");
        let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), &user)).await;
        Self { server, folder, old, new, client }
    }

    /// Replaces the files by those of the new certificate.
    fn rotate(&self) {
        write(&self.folder, "tls.crt", &self.new.certificate);
        write(&self.folder, "tls.key", &self.new.key);
    }
}

#[tokio::test]
async fn rotated_client_certificate_is_presented_on_a_new_connection() {
    let rotation = Rotation::start().await;
    let Rotation { server, old, new, client, .. } = &rotation;
    assert_eq!(get(client).await, "HTTP/2.0, 1 certificates, none");
    rotation.rotate();
    server.refuse(&old.certificate);
    assert_eq!(get(client).await, "HTTP/2.0, 1 certificates, none");
    assert_eq!(server.connections(), 2);
    server.refuse(&new.certificate);
    assert!(get(client).await.starts_with("401"), "there is no third certificate");
}

/// Waits until the parts that are not ready are as `expected` says, for at most a minute.
async fn until(diagnostics: &Diagnostics, expected: impl Fn(&[Unready]) -> bool) {
    let reached = async {
        while !expected(&diagnostics.unready()) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let reached = timeout(Duration::from_secs(60), reached).await;
    assert!(reached.is_ok(), "{:?}", diagnostics.unready());
}

/// It takes up to 20 s: after a 401 the files are read once in 10 s.
#[tokio::test]
async fn refused_certificate_shows_in_readiness_until_it_is_rotated() {
    let rotation = Rotation::start().await;
    let maps = KubeListWatch::<ConfigMap>::new(rotation.client.clone(), None);
    let maps = SharedIndexInformer::builder(maps).watch_list(false).name("maps").build();
    let diagnostics = Diagnostics::new();
    diagnostics.informer(&maps);
    maps.start();
    until(&diagnostics, <[_]>::is_empty).await;
    rotation.server.refuse(&rotation.old.certificate);
    until(&diagnostics, |unready| {
        unready
            .iter()
            .any(|part| part.name == "informer maps" && part.reason.contains("unauthorized"))
    })
    .await;
    rotation.rotate();
    until(&diagnostics, <[_]>::is_empty).await;
    maps.stop().await;
}

#[tokio::test]
async fn token_file_is_read_again_after_401() {
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    let server = Server::start(&authority, &["h2"]).await;
    let user = format!("tokenFile: {}", write(&folder, "token", "old\n"));
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), &user)).await;
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, Bearer old");
    write(&folder, "token", "new\n");
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, Bearer old", "not yet due");
    server.refuse("Bearer old");
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, Bearer new");
    fs::remove_file(folder.path().join("token")).unwrap();
    server.refuse("Bearer new");
    assert!(get(&client).await.starts_with("401"), "the server's answer is passed on");
}

#[tokio::test]
async fn changed_certificate_authority_is_trusted() {
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    let server = Server::start(&authority, &["h2"]).await;
    let file = write(&folder, "ca.crt", &Authority::new().issuer.pem());
    let text = kubeconfig(&server, &authority, Some(SERVER_NAME), "");
    let text: Vec<_> = text
        .lines()
        .map(|line| {
            let is_authority = line.contains("certificate-authority-data");
            if is_authority {
                format!("    certificate-authority: {file}")
            } else {
                line.to_owned()
            }
        })
        .collect();
    let client = client(&text.join("\n")).await;
    let error = client.send(Request::new(Body::empty())).await.unwrap_err();
    assert!(describe_error(&error).contains("certificate"), "{error}");
    write(&folder, "ca.crt", &authority.issuer.pem());
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, none");
    fs::remove_file(Path::new(&file)).unwrap();
    server.break_connections();
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, none", "the earlier one counts");
}

#[tokio::test]
async fn plugin_runs_once_and_again_after_401() {
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    let server = Server::start(&authority, &["h2"]).await;
    let runs = write(&folder, "runs", "");
    let script = format!(
        "echo \"$KUBERNETES_EXEC_INFO\" >> {runs}\n\
         echo '{{\"apiVersion\": \"client.authentication.k8s.io/v1\"'\n\
         N=$(wc -l < {runs} | tr -d ' ')\n\
         echo \", \\\"status\\\": {{\\\"token\\\": \\\"run-$N\\\"}}}}\"\n"
    );
    let user = plugin(&folder, &script);
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), &user)).await;
    for _ in 0..3 {
        assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, Bearer run-1");
    }
    server.refuse("Bearer run-1");
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, Bearer run-2");
    server.refuse("Bearer run-2");
    assert!(get(&client).await.starts_with("401"), "a second run within 10 s");
    let infos = fs::read_to_string(&runs).unwrap();
    let expected = "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\"\
                    ,\"spec\":{\"interactive\":false}}";
    assert_eq!(infos.lines().collect::<Vec<_>>(), [expected; 2]);
}

#[tokio::test]
async fn certificate_of_a_plugin_is_presented() {
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    let server = Server::start(&authority, &["h2"]).await;
    let Identity { certificate, key } = authority.issue("bob");
    let output = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"clientCertificateData": certificate, "clientKeyData": key}
    });
    let output = write(&folder, "output.json", &output.to_string());
    let user = plugin(&folder, &format!("cat {output}\n"));
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), &user)).await;
    assert_eq!(get(&client).await, "HTTP/2.0, 1 certificates, none");
}

#[tokio::test]
async fn error_output_of_a_plugin_is_in_the_error() {
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    let server = Server::start(&authority, &["h2"]).await;
    let user = plugin(&folder, "echo 'login expired, run: shop login' >&2\nexit 3\n");
    let text = kubeconfig(&server, &authority, Some(SERVER_NAME), &user);
    let file = write(&folder, "kubeconfig", &text);
    let error = client::builder().kubeconfig(&file).await.unwrap_err();
    let expected = format!(
        "failed to set up the connection to https://{}: exec: executable sh failed with exit code \
         3: login expired, run: shop login",
        server.address
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn requests_pass_through_the_proxy_of_the_kubeconfig() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["h2"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", server.address)), "{head}");
        let authorization = format!("proxy-authorization: Basic {}", BASE64.encode("me:secret"));
        assert!(head.to_ascii_lowercase().contains(&authorization.to_ascii_lowercase()), "{head}");
        let mut upstream = TcpStream::connect(server.address).await.unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        copy_bidirectional(&mut client, &mut upstream).await.map(|_| ())
    };
    let text = kubeconfig(&server, &authority, Some(SERVER_NAME), "");
    let cluster = format!("  cluster:\n    proxy-url: http://me:secret@{address}");
    let client = client(&text.replacen("  cluster:", &cluster, 1)).await;
    tokio::select! {
        answer = get(&client) => assert_eq!(answer, "HTTP/2.0, 0 certificates, none"),
        ended = proxy => panic!("the proxy ended: {ended:?}"),
    }
}
