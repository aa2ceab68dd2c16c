//! The command line of the API server.

mod account_token_flags;
mod arguments;
mod components;
mod definitions;
mod garbage;
mod identity_lease;
mod ignored_flags;
mod kubeconfig;
mod token_file;
mod upstream_flags;

use std::io::{IsTerminal as _, stderr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::arguments::Arguments;
use crate::components::Components;
use crate::identity_lease::IdentityLease;
use crate::kubeconfig::Kubeconfig;

/// Log filter used when `RUST_LOG` is not set.
const LOG: &str = "warn";

fn main() -> ExitCode {
    let (arguments, ignored) = ignored_flags::take(std::env::args_os());
    let arguments = Arguments::parse_from(arguments);
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(colours).init();
    for flag in ignored {
        tracing::info!(flag, "the flag is ignored: the server does not have what it tunes");
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(serve(arguments))?;
    // Does not wait for open watches: nothing is stored that they could lose.
    runtime.shutdown_background();
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the address is what the program has to say")]
async fn serve(arguments: &Arguments) -> anyhow::Result<()> {
    // Installed first, so that an early signal is not lost.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;

    let (secure, address) = (arguments.is_secure(), arguments.upstream.address(arguments.listen));
    let server = arguments.builder()?.build();
    let listener =
        if secure { server.listen_tls(address).await } else { server.listen(address).await };
    let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
    let kubeconfig = arguments.kubeconfig();
    let kubeconfig = kubeconfig.map(|file| Kubeconfig::write(file, &listener.kubeconfig()));
    let kubeconfig = kubeconfig.transpose()?;
    let client = server.client_as("homeostat-apiserver");
    let identity =
        if secure { Some(IdentityLease::start(&server, listener.addr()).await) } else { None };
    for file in &arguments.crd {
        definitions::create(&client, file).await?;
    }
    let ready_delay = Duration::from_secs_f64(arguments.ready_after);
    let client = server.client_as("homeostat-helpers");
    let components = Components::start(&client, &arguments.with, arguments.nodes, ready_delay);

    println!("The API server is at {}", listener.url());
    if let Some(kubeconfig) = &kubeconfig {
        println!("export KUBECONFIG={}", kubeconfig.path().display());
    }
    let ended = tokio::select! {
        biased;
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        () = server.wait_for_failure() => Err(anyhow!("the state file cannot be written")),
    };
    // The components stop before their server.
    components.stop().await;
    if let Some(identity) = identity {
        identity.stop().await;
    }
    ended
}
