//! Both servers over TCP, in turn.

use std::collections::BTreeMap;
use std::fs;

use homeostat::kube_client::{Client, Config};
use homeostat_benches::apiserver::{Load, OBJECTS, Verb};
use homeostat_benches::process::Usage;
use homeostat_testing::control_plane::ControlPlane;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::Compare;
use super::program::{Program, report_start};

/// A server in its own processes.
enum Server {
    Ours { program: Program, client: Client },
    Real { client: Client, _plane: Box<ControlPlane> },
}

/// Result of a measurement: requests (or events) per second, and the server's CPU time for each in
/// microseconds.
#[derive(Clone, Copy)]
struct Figure {
    rate: f64,
    cpu: f64,
}

/// Figures of all rounds by measurement.
type Figures = BTreeMap<(usize, String), Vec<Figure>>;

/// Numbers of watchers to measure with.
const WATCHERS: [u32; 3] = [1, 10, 100];

pub(crate) fn run(arguments: &Compare) -> anyhow::Result<()> {
    report_start(&arguments.ours)?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let mut figures = [Figures::new(), Figures::new()];
        for round in 0..arguments.rounds.max(1) {
            for (index, real) in [false, true].into_iter().enumerate() {
                let server = Server::start(arguments, real).await?;
                measure(&server, arguments.requests, &mut figures[index]).await?;
                eprint_round(round, real);
            }
        }
        print(&figures);
        Ok(())
    })
}

#[expect(clippy::print_stderr, reason = "a run takes minutes: it says how far it is")]
fn eprint_round(round: usize, real: bool) {
    eprintln!("round {round}, {} server", if real { "real" } else { "embedded" });
}

async fn measure(server: &Server, requests: u32, figures: &mut Figures) -> anyhow::Result<()> {
    let load = Load::prepare(server.client().clone(), "bench", false).await?;
    let mut next = OBJECTS;
    for (order, verb) in Verb::ALL.into_iter().enumerate() {
        let count = if verb == Verb::List { (requests / 100).max(1) } else { requests };
        let (began, before) = (Instant::now(), server.cpu()?);
        load.repeat(verb, next, count.into()).await?;
        next += u64::from(count);
        let figure = Figure::new(count, began, server.cpu()? - before);
        figures.entry((order, verb.title().to_owned())).or_default().push(figure);
    }
    for (order, watchers) in WATCHERS.into_iter().enumerate() {
        let version = load.version().await?;
        let mut all = Vec::new();
        for _ in 0..watchers {
            all.push(load.watch(&version).await?);
        }
        let (began, before) = (Instant::now(), server.cpu()?);
        let events = usize::try_from(requests)?;
        let reads = all.iter_mut().map(|watcher| watcher.events(events));
        let reads = futures::future::try_join_all(reads);
        futures::future::try_join(load.repeat(Verb::Update, next, requests.into()), reads).await?;
        next += u64::from(requests);
        let count = requests * watchers;
        let figure = Figure::new(count, began, server.cpu()? - before);
        let title = format!("events of updates, to {watchers}");
        figures.entry((10 + order, title)).or_default().push(figure);
    }
    Ok(())
}

fn print(figures: &[Figures; 2]) {
    println!(
        "{:28} {:>12} {:>12} {:>7}   {:>10} {:>10}",
        "per second (median)", "embedded", "real", "ratio", "CPU us", "CPU us"
    );
    for (what, ours) in &figures[0] {
        let theirs = figures[1].get(what).map(Vec::as_slice).unwrap_or_default();
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "{:28} {:>12.0} {:>12.0} {:>6.1}x   {:>10.0} {:>10.0}",
            what.1,
            ours.rate,
            theirs.rate,
            ours.rate / theirs.rate,
            ours.cpu,
            theirs.cpu,
        );
    }
}

fn median(figures: &[Figure]) -> Figure {
    let of = |value: fn(&Figure) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Figure { rate: of(|figure| figure.rate), cpu: of(|figure| figure.cpu) }
}

// === impl Figure ===

impl Figure {
    fn new(count: u32, began: Instant, cpu: f64) -> Self {
        let count = f64::from(count);
        Self { rate: count / began.elapsed().as_secs_f64(), cpu: cpu * 1e6 / count }
    }
}

// === impl Server ===

impl Server {
    async fn start(arguments: &Compare, real: bool) -> anyhow::Result<Self> {
        if real {
            let plane = ControlPlane::builder()
                .api_server_arg("--enable-priority-and-fairness=false")
                .api_server_arg("--max-requests-inflight=0")
                .api_server_arg("--max-mutating-requests-inflight=0")
                .start()
                .await?;
            let client = plane.client()?;
            return Ok(Self::Real { client, _plane: Box::new(plane) });
        }
        let program = Program::start(&arguments.ours)?;
        let mut config = Config::new(program.url().parse()?);
        config.default_retry = false;
        let client = Client::try_from(config)?;
        Ok(Self::Ours { program, client })
    }

    fn client(&self) -> &Client {
        let (Self::Ours { client, .. } | Self::Real { client, .. }) = self;
        client
    }

    /// Returns the CPU time of all processes of the server, in seconds.
    fn cpu(&self) -> anyhow::Result<f64> {
        match self {
            Self::Ours { program, .. } => Ok(Usage::of(program.id())?.cpu()),
            Self::Real { .. } => {
                let mut cpu = 0.0;
                for id in descendants(std::process::id())? {
                    // A process that has just ended is not counted.
                    cpu += Usage::of(id).map_or(0.0, |usage| usage.cpu());
                }
                Ok(cpu)
            }
        }
    }
}

/// Returns the descendants of the process.
fn descendants(root: u32) -> anyhow::Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(id) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let Some((_, fields)) = stat.rsplit_once(')') else { continue };
        let parent = fields.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
        parents.extend(parent.map(|parent: u32| (id, parent)));
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        at += 1;
    }
    Ok(found.split_off(1))
}
