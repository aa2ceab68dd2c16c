//! Two replicas: the leader is stopped, resumed, killed and shut down, and two of them never write
//! at the same time.

use std::convert::Infallible;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, Patch, PatchParams, PostParams};
use homeostat::leader_election::{Leadership, LeadershipLost};
use homeostat::{
    Action, Controller, LeaderElector, Manager, Reconciler, Request, RunError,
    SharedInformerFactory, client,
};
use homeostat_apiserver::ApiServer;
use homeostat_faults::Lost;
use homeostat_scenarios::election::{History, Replica, Signal, run_if_replica};
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use homeostat_testing::{in_real_time, in_virtual_time};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use libtest_mimic::{Arguments, Trial};
use tokio::time::{Instant, timeout};
use tower::Layer as _;

fn main() -> ExitCode {
    if let Some(outcome) = run_if_replica() {
        return match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let missing = Binaries::missing_for_tests();
    let virtual_time = |name, scenario: fn() -> anyhow::Result<()>| {
        Trial::test(format!("{name} (embedded, in virtual time)"), move || Ok(scenario()?))
    };
    let trials = vec![
        virtual_time("partitioned_leader_stops_before_another_leads", || {
            in_virtual_time(partitioned())
        }),
        virtual_time("released_lease_is_taken_at_once", || in_virtual_time(released())),
        virtual_time("leader_whose_replies_are_lost_stops", || in_virtual_time(replies_lost())),
        virtual_time("manager_reconciles_only_while_it_leads", || in_virtual_time(managers())),
        virtual_time("work_is_aborted_when_the_lease_is_taken", || in_virtual_time(taken())),
        Trial::test(
            "paused_leader_writes_nothing_after_it_resumes (embedded, over a socket)",
            || Ok(in_real_time(on_a_socket())?),
        ),
        Trial::test("paused_leader_writes_nothing_after_it_resumes (real kube-apiserver)", || {
            Ok(in_real_time(on_a_control_plane())?)
        })
        .with_ignored_flag(missing.is_some()),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

// === processes ===

async fn on_a_socket() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let listener = server.listen(([127, 0, 0, 1], 0).into()).await?;
    let mut kubeconfig = tempfile::NamedTempFile::new()?;
    kubeconfig.write_all(listener.kubeconfig().as_bytes())?;
    pause_kill_and_end(&server.client(), kubeconfig.path()).await
}

async fn on_a_control_plane() -> anyhow::Result<()> {
    let plane = ControlPlane::start().await?;
    pause_kill_and_end(&plane.client()?, plane.kubeconfig()).await
}

async fn pause_kill_and_end(user: &Client, kubeconfig: &std::path::Path) -> anyhow::Result<()> {
    let history = History::follow(user).await?;
    let mut first = Replica::start(kubeconfig, "first")?;
    history.counts("first").await?;
    let mut second = Replica::start(kubeconfig, "second")?;
    tokio::time::sleep(Duration::from_millis(500)).await;

    first.signal(Signal::Pause)?;
    history.counts("second").await?;
    first.signal(Signal::Resume)?;
    ensure!(!first.ended().await?.success(), "a leader that lost its lease ends with an error");
    history.counts("second").await?;

    let mut third = Replica::start(kubeconfig, "third")?;
    second.signal(Signal::Kill)?;
    second.ended().await?;
    history.counts("third").await?;

    let mut fourth = Replica::start(kubeconfig, "fourth")?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    third.signal(Signal::Terminate)?;
    ensure!(third.ended().await?.success(), "SIGTERM ends a leader in order");
    history.counts("fourth").await?;
    fourth.signal(Signal::Terminate)?;
    ensure!(fourth.ended().await?.success(), "SIGTERM ends a leader in order");

    let writes = history.check()?;
    ensure!(writes > 100, "only {writes} writes: the scenario proves little");
    Ok(())
}

// === virtual time ===

fn elector(server: &ApiServer, name: &str) -> LeaderElector {
    let builder = client::builder().service(server.faults().layer_as(name).layer(server.service()));
    LeaderElector::builder(builder.build(), "default", "lease")
        .identity(name)
        .in_virtual_time(server.now(), 1)
        .build()
        .expect("the default periods fit")
}

async fn lead(server: &ApiServer, name: &str) -> anyhow::Result<Leadership> {
    Ok(timeout(Duration::from_secs(60), elector(server, name).acquire()).await?)
}

/// Requests of the leader are lost: it stops at its deadline, and the other leads after the lease.
async fn partitioned() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let first = lead(&server, "first").await?;
    let since = Instant::now();
    let partition = server.faults().partition("first", Lost::Requests);
    let mut follower = std::pin::pin!(elector(&server, "second").acquire());
    let lost = tokio::select! {
        biased;
        lost = first.lost() => lost,
        _ = follower.as_mut() => anyhow::bail!("two leaders"),
    };
    ensure!(lost == LeadershipLost::DeadlinePassed, "{lost}");
    ensure!(since.elapsed() <= Duration::from_secs(10), "{:?}", since.elapsed());
    let _second = timeout(Duration::from_secs(30), follower).await?;
    ensure!(since.elapsed() >= Duration::from_secs(15), "{:?}", since.elapsed());
    ensure!(since.elapsed() <= Duration::from_secs(15 + 9), "{:?}", since.elapsed());
    drop(partition);
    Ok(())
}

/// Renewals are stored, and their sender does not learn it: it stops all the same.
async fn replies_lost() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let first = lead(&server, "first").await?;
    let since = Instant::now();
    let partition = server.faults().partition("first", Lost::Replies);
    let lost = timeout(Duration::from_secs(60), first.lost()).await?;
    ensure!(lost == LeadershipLost::DeadlinePassed, "{lost}");
    ensure!(since.elapsed() <= Duration::from_secs(10), "{:?}", since.elapsed());
    drop(partition);
    Ok(())
}

async fn released() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let first = lead(&server, "first").await?;
    let mut follower = std::pin::pin!(elector(&server, "second").acquire());
    let since = Instant::now();
    ensure!(timeout(Duration::from_secs(60), follower.as_mut()).await.is_err(), "two leaders");
    ensure!(since.elapsed() >= Duration::from_secs(60));
    first.release().await;
    let since = Instant::now();
    let _second = timeout(Duration::from_secs(30), follower).await?;
    ensure!(since.elapsed() <= Duration::from_millis(4_400), "{:?}", since.elapsed());
    Ok(())
}

/// Counts its calls.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<AtomicUsize>);

impl Reconciler<ConfigMap> for Counting {
    type Error = Infallible;

    async fn reconcile(&self, _: &Request<ConfigMap>) -> Result<Action, Infallible> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Action::RequeueAfter(Duration::from_secs(1)))
    }
}

async fn manage(server: &ApiServer, name: &str, calls: Counting) -> Result<(), RunError> {
    let informers = SharedInformerFactory::builder(server.client_as(name)).seed(1).build();
    let controller = Controller::builder("counting", &informers.informer::<ConfigMap>());
    Manager::new(informers)
        .with(controller.build(calls))
        .leader_election(elector(server, name))
        .run_until(std::future::pending())
        .await
}

/// Two managers watch the same objects; the second works after the first has lost its lease.
async fn managers() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let maps = Api::<ConfigMap>::namespaced(server.client(), "default");
    let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}}))?;
    maps.create(&PostParams::default(), &map).await?;
    let (blue, green) = (Counting::default(), Counting::default());
    let mut first = std::pin::pin!(manage(&server, "first", blue.clone()));
    let minute = Duration::from_secs(60);
    ensure!(timeout(minute, first.as_mut()).await.is_err(), "the first manager runs");
    ensure!(blue.0.load(Ordering::SeqCst) > 50, "{blue:?} calls of the first");

    let mut second = std::pin::pin!(manage(&server, "second", green.clone()));
    let both = async { tokio::join!(first.as_mut(), second.as_mut()) };
    ensure!(timeout(minute, both).await.is_err(), "both managers run");
    ensure!(green.0.load(Ordering::SeqCst) == 0, "the second works while the first leads");

    let partition = server.faults().partition("first", Lost::Requests);
    let lost = tokio::select! {
        lost = first.as_mut() => lost,
        _ = second.as_mut() => anyhow::bail!("the second manager ended"),
    };
    ensure!(lost == Err(LeadershipLost::DeadlinePassed.into()), "{lost:?}");
    let calls = blue.0.load(Ordering::SeqCst);
    ensure!(timeout(minute, second.as_mut()).await.is_err(), "the second manager runs");
    ensure!(green.0.load(Ordering::SeqCst) > 30, "{green:?} calls of the second");
    ensure!(blue.0.load(Ordering::SeqCst) == calls, "the first has ended");
    drop(partition);
    Ok(())
}

/// Another party writes its name into the lease: the work ends at the next renewal, not at the
/// deadline.
async fn taken() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let since = Instant::now();
    let leases = Api::<Lease>::namespaced(server.client(), "default");
    let work = elector(&server, "first").run(std::future::pending(), |_| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let patch = serde_json::json!({"spec": {"holderIdentity": "thief"}});
        leases.patch("lease", &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)?;
        std::future::pending::<anyhow::Result<()>>().await
    });
    let lost = timeout(Duration::from_secs(60), work).await?.expect_err("the lease was taken");
    ensure!(lost.to_string() == "leader election lost: the lease is held by thief", "{lost}");
    ensure!(since.elapsed() <= Duration::from_secs(3), "{:?}", since.elapsed());
    Ok(())
}
