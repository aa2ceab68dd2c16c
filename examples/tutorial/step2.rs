//! Step 2: prints Foos, and each change of them.

use clap::Parser;
use homeostat::cli::Flags;
use homeostat::{ChangeKind, Event, SharedInformerFactory, client, shutdown_signal};
use homeostat_sample::Foo;

/// Prints Foos, and each change of them.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Arguments::parse().flags.client(client::builder()).await?.build();
    let informers = SharedInformerFactory::new(&client);
    let foos = informers.informer::<Foo>();
    let _printer = foos.add_handler("printer", |event: Event<Foo>| print(&event));
    informers.start();
    shutdown_signal().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the output of the program")]
fn print(event: &Event<Foo>) {
    let (change, key) = (ChangeKind::of(event), event.key());
    match event {
        Event::Added { object, .. } | Event::Updated { new: object, .. } => {
            println!("{change} {key}: {}, {:?}", object.spec.deployment_name, object.spec.replicas);
        }
        _ => println!("{change} {key}"),
    }
}
