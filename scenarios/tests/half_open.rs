//! A connection that goes silent without being closed, over TCP and in real time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use homeostat::informer::list_watch::KubeListWatch;
use homeostat::informer::{Lister, SharedIndexInformer, TimeoutConfig};
use homeostat::kube_client::api::{Api, PostParams};
use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Forwards connections to a server. On request, the connections that exist then go silent: they
/// stay open and forward nothing more.
struct Proxy {
    address: SocketAddr,
    /// The number of `silence` calls.
    silenced: watch::Sender<u32>,
    /// Kept for its `Drop`, which ends the proxy.
    _accepting: JoinSet<io::Result<()>>,
}

impl Proxy {
    async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let silenced = watch::Sender::new(0);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, silenced.clone()));
        Ok(Self { address, silenced, _accepting: accepting })
    }

    fn silence(&self) {
        self.silenced.send_modify(|silenced| *silenced += 1);
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    silenced: watch::Sender<u32>,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await?;
        let server = TcpStream::connect(server).await?;
        connections.spawn(forward(client, server, silenced.subscribe()));
    }
}

/// Copies bytes in both directions until the first silence, then keeps both ends open.
async fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    mut silenced: watch::Receiver<u32>,
) -> io::Result<()> {
    let (mut request, mut response) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    loop {
        tokio::select! {
            biased;
            _ = silenced.changed() => std::future::pending().await,
            read = client.read(&mut request) => match read? {
                0 => return Ok(()),
                bytes => server.write_all(&request[..bytes]).await?,
            },
            read = server.read(&mut response) => match read? {
                0 => return Ok(()),
                bytes => client.write_all(&response[..bytes]).await?,
            },
        }
    }
}

async fn create(client: &Client, name: &str) -> anyhow::Result<()> {
    let mut config_map = ConfigMap::default();
    config_map.metadata.name = Some(name.to_owned());
    let api = Api::<ConfigMap>::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &config_map).await?;
    Ok(())
}

async fn wait_for(cache: &Lister<ConfigMap>, name: &str) {
    let arrives = async {
        while !cache.contains(("default", name)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, arrives).await.expect("the object arrives");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_connection_is_noticed_and_replaced() {
    let server = ApiServer::new();
    let listener = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let direct = Config::new(listener.url().parse().unwrap());
    let direct = homeostat::client::builder().config(direct).unwrap().build();
    let address = listener.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(address).await.unwrap();
    let through = Config::new(format!("http://{}", proxy.address).parse().unwrap());
    let through = homeostat::client::builder().config(through).unwrap().build();

    // A watch is requested for 2 to 4 s, and counts as dead 5 s after that.
    let mut timeouts = TimeoutConfig::default();
    timeouts.watch = Duration::from_secs(2);
    let list_watch = KubeListWatch::<ConfigMap>::new(through, Some("default"));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&errors);
    let informer = SharedIndexInformer::builder(list_watch)
        .timeouts(timeouts)
        .error_handler(move |error| log.lock().push(error.to_string()))
        .build();
    let cache = informer.lister();
    informer.start();
    assert!(informer.wait_for_sync().await);
    create(&direct, "before").await.unwrap();
    wait_for(&cache, "before").await;

    proxy.silence();
    create(&direct, "after").await.unwrap();
    wait_for(&cache, "after").await;
    let errors = errors.lock().clone();
    assert!(errors.iter().any(|error| error.contains("is silent for")), "{errors:?}");
    informer.stop().await;
}
