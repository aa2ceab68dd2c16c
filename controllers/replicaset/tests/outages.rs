//! An operator sees an outage within a minute in readiness, log and metrics, and its end as soon.
//! The test has its own file, because the metrics recorder is global.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use homeostat::kube_client::api::{Api, PostParams};
use homeostat::observe::Diagnostics;
use homeostat::{PrometheusRecorder, client};
use homeostat_apiserver::ApiServer;
use homeostat_faults::{ApiError, Calls, Faults};
use homeostat_replicaset::{Options, manager};
use homeostat_testing::RecordedLog;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower::Layer as _;
use tracing::Level;
use tracing::subscriber::set_default;

const MINUTE: Duration = Duration::from_secs(60);

/// The two informers of the controller.
const INFORMERS: [&str; 2] = ["pods", "replicasets.apps"];

/// A running controller with everything that its operator looks at.
struct World {
    sets: Api<ReplicaSet>,
    faults: Faults,
    diagnostics: Diagnostics,
    recorder: PrometheusRecorder,
    log: RecordedLog,
    _controller: JoinSet<()>,
}

/// An outage: the fault, and what the operator reads.
struct Outage {
    begin: fn(&Faults),
    /// In the reason of readiness, and in the log.
    reason: &'static str,
    /// The label of `rest_client_requests_total`.
    code: &'static str,
}

// === impl World ===

impl World {
    async fn start(log: RecordedLog) -> Self {
        let recorder = homeostat::install_prometheus_recorder().unwrap();
        let server = ApiServer::builder().seed(7).build();
        let user = server.client();
        let namespace = json!({"metadata": {"name": "shop"}});
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        Api::all(user.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let faults = Faults::new();
        let client = client::builder().service(faults.layer().layer(server.service())).build();
        let diagnostics = Diagnostics::new();
        let options = Options { seed: Some(7), ..Options::default() };
        let manager = manager(client, &options).diagnostics(&diagnostics);
        let mut controller = JoinSet::new();
        controller.spawn(async move {
            manager.run_until(std::future::pending()).await.unwrap();
        });
        let sets = Api::namespaced(user, "shop");
        Self { sets, faults, diagnostics, recorder, log, _controller: controller }
    }

    async fn create(&self, name: &str) {
        let labels = json!({"app": name});
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [{"name": "c", "image": "i"}]}}},
        }))
        .unwrap();
        self.sets.create(&PostParams::default(), &set).await.unwrap();
    }

    /// Waits until the status shows both pods. Returns the time that it took.
    async fn converged(&self, name: &str) -> Duration {
        let start = Instant::now();
        while self.sets.get(name).await.unwrap().status.unwrap_or_default().replicas < 2 {
            assert!(start.elapsed() < 5 * MINUTE, "{name} does not converge");
            sleep(Duration::from_millis(100)).await;
        }
        start.elapsed()
    }

    /// Returns the sum of the values of `metric` in lines with `label`.
    fn total(&self, metric: &str, label: &str) -> f64 {
        let rendered = self.recorder.render();
        let lines = rendered.lines().filter(|line| line.starts_with(metric));
        let values = lines.filter(|line| line.contains(label));
        values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    async fn suffers(&self, name: &str, outage: &Outage) {
        let Outage { begin, reason, code } = outage;
        let requests = || self.total("rest_client_requests_total{", &format!("code=\"{code}\""));
        let warnings = |informer: &str| {
            self.log.count(&["WARN", "cannot follow the server", &format!("{informer:?}"), reason])
        };
        let errors = |informer: &str| {
            let resource = informer.split('.').next().unwrap();
            self.total("reflector_errors_total{", &format!("resource=\"{resource}\""))
        };
        let before = (requests(), INFORMERS.map(errors), INFORMERS.map(warnings));
        let ended = self.log.count(&["INFO", "following the server again"]);
        begin(&self.faults);
        self.create(name).await;
        sleep(MINUTE).await;

        let unready = self.diagnostics.unready();
        for (index, informer) in INFORMERS.into_iter().enumerate() {
            let part = unready.iter().find(|part| part.name == format!("informer {informer}"));
            let part = part.unwrap_or_else(|| panic!("{informer} is ready: {unready:?}"));
            assert!(part.reason.starts_with("the cache is old: "), "{part:?}");
            assert!(part.reason.contains(reason), "{part:?}");
            assert!(errors(informer) >= before.1[index] + 3.0, "{informer}");
            assert!(warnings(informer) > before.2[index], "{informer}: {:#?}", self.log.lines());
        }
        assert!(requests() > before.0, "no request with the code {code}");

        sleep(9 * MINUTE).await;
        for (index, informer) in INFORMERS.into_iter().enumerate() {
            // A failure within each minute, and never two lines of one.
            let lines = warnings(informer) - before.2[index];
            assert!((5..=10).contains(&lines), "{lines} warnings in 10 minutes");
        }
        self.faults.heal();
        // The longest back-off is 30 s with a jitter of up to 30 s.
        let healed = Instant::now();
        self.converged(name).await;
        // The status may show the pods before their informer does.
        while !self.diagnostics.unready().is_empty() {
            let (took, unready) = (healed.elapsed(), self.diagnostics.unready());
            assert!(
                took <= MINUTE + Duration::from_secs(5),
                "{took:?} after the outage: {unready:?}"
            );
            sleep(Duration::from_millis(100)).await;
        }
        let took = healed.elapsed();
        assert!(took <= MINUTE + Duration::from_secs(5), "{took:?} after the outage");
        let lines = self.log.count(&["INFO", "following the server again"]) - ended;
        assert_eq!(lines, 2, "one for each informer");
    }
}

#[tokio::test(start_paused = true)]
async fn outage_is_visible_within_a_minute_and_so_is_its_end() {
    let log = RecordedLog::new("homeostat", Level::INFO);
    let _guard = set_default(log.clone());
    let world = World::start(log).await;
    world.create("before").await;
    world.converged("before").await;
    sleep(5 * MINUTE).await;
    assert!(world.diagnostics.unready().is_empty());

    let unauthorized = |faults: &Faults| {
        faults.refuse(Calls::any().always(), ApiError::unauthorized());
        faults.tear_watches("*");
    };
    let reason = "Unauthorized";
    world.suffers("revoked", &Outage { begin: unauthorized, reason, code: "401" }).await;

    let away = |faults: &Faults| {
        faults.drop_request(Calls::any().always());
        faults.tear_watches("*");
    };
    let reason = "injected by a fault";
    world.suffers("away", &Outage { begin: away, reason, code: "<error>" }).await;
}
