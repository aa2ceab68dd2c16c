//! Build Kubernetes controllers: a reconciler is called for a key whenever something about it may have changed.

mod batch;
pub mod client;
pub mod events;
pub mod owner;
mod shutdown;

pub use batch::slow_start_batch;
pub use events::EventRecorder;
pub use kube_client;
pub use shutdown::shutdown_signal;
