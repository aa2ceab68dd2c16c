//! A credential plugin: a program that the kubeconfig names, and that prints a token or a client
//! certificate.
//!
//! The protocol is `client.authentication.k8s.io`: the plugin reads `KUBERNETES_EXEC_INFO`, prints
//! one `ExecCredential` as JSON, and exits with 0. The texts of errors are those of client-go.
//!
//! The plugin inherits the environment of the process, with the variables of `env` and without
//! those that `dropEnv` names. It gets the terminal only if the kubeconfig allows that and there is
//! one.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::process::{Output, Stdio};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube_client::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use tokio::process::Command;
use tower::BoxError;

use super::material::{Material, PemPair, header};
use crate::text::beginning;

/// The time after which a plugin that does not end is killed, unless a person may be typing.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The longest part of a plugin's error output that an error shows.
const SHOWN: usize = 1024;

/// A credential plugin.
///
/// It is run by [`Credentials`](super::credentials::Credentials), which decides when and never runs
/// it twice at the same time.
pub(super) struct Plugin {
    config: ExecConfig,
    command: String,
    /// True if the plugin may ask the person at the terminal.
    is_interactive: bool,
    /// The value of `KUBERNETES_EXEC_INFO`.
    info: String,
}

/// The part of a plugin's output that is read.
///
/// The `kind` is not checked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    status: Option<Status>,
}

/// At least a token or a certificate with its key must be present.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

// === impl Plugin ===

impl Plugin {
    /// Returns the plugin, without running it.
    ///
    /// # Errors
    ///
    /// If there is no command, or if the mode is `Always` and standard input is no terminal.
    pub(super) fn new(config: &ExecConfig) -> Result<Self, BoxError> {
        let command = config.command.clone().filter(|command| !command.is_empty());
        let command = command.ok_or("the exec plugin of the kubeconfig has no command")?;
        let is_interactive = match config.interactive_mode {
            Some(ExecInteractiveMode::Never) => false,
            Some(ExecInteractiveMode::Always) if !std::io::stdin().is_terminal() => {
                return Err(
                    "exec plugin cannot support interactive mode: standard input is not a \
                            terminal"
                        .into(),
                );
            }
            _ => std::io::stdin().is_terminal(),
        };
        let mut spec = serde_json::json!({ "interactive": is_interactive });
        if config.provide_cluster_info {
            spec["cluster"] = serde_json::to_value(&config.cluster)?;
        }
        let info = serde_json::json!({
            "apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec
        });
        Ok(Self { config: config.clone(), command, is_interactive, info: info.to_string() })
    }

    /// Runs the plugin once, in a process of its own, and returns its credentials.
    ///
    /// # Errors
    ///
    /// If the plugin cannot be started, does not end within 60 s, exits with another code than 0,
    /// or prints something that is no `ExecCredential` of the configured version. An interactive
    /// plugin has no time limit.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the plugin.
    pub(super) async fn run(&self) -> Result<Material, BoxError> {
        let output = self.output().await?;
        if !output.status.success() {
            return Err(self.failure(&output).into());
        }
        let credential: ExecCredential = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("exec: decoding stdout of {}: {error}", self.command))?;
        self.material(credential)
    }

    /// Runs the process to its end. The install hint of the kubeconfig is part of the error if the
    /// program does not exist.
    async fn output(&self) -> Result<Output, BoxError> {
        let mut command = self.process();
        let running = command.output();
        let output = if self.is_interactive {
            running.await
        } else {
            let timeout = TIMEOUT;
            let ended = tokio::time::timeout(timeout, running).await;
            ended.map_err(|_| {
                format!("exec: executable {} did not end within {timeout:?}", self.command)
            })?
        };
        output.map_err(|error| {
            let hint = self.config.install_hint.as_deref().unwrap_or_default();
            let (separator, command) = (if hint.is_empty() { "" } else { "\n\n" }, &self.command);
            match error.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("exec: executable {command} not found{separator}{hint}").into()
                }
                _ => format!("exec: executable {command} failed to start: {error}").into(),
            }
        })
    }

    /// Builds the process. The error output is captured for the error, or goes to the terminal if a
    /// person may read it.
    fn process(&self) -> Command {
        let mut command = Command::new(&self.command);
        command.args(self.config.args.iter().flatten());
        for variable in self.config.env.iter().flatten() {
            let get = |field: &str| HashMap::get(variable, field);
            if let (Some(name), Some(value)) = (get("name"), get("value")) {
                command.env(name, value);
            }
        }
        command.env("KUBERNETES_EXEC_INFO", &self.info).kill_on_drop(true);
        for name in self.config.drop_env.iter().flatten() {
            command.env_remove(name);
        }
        command.stdout(Stdio::piped());
        if self.is_interactive {
            command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
        } else {
            command.stdin(Stdio::null()).stderr(Stdio::piped());
        }
        command
    }

    /// Describes a failure in client-go's words, with the plugin's error output.
    fn failure(&self, output: &Output) -> String {
        let how = match output.status.code() {
            Some(code) => format!("failed with exit code {code}"),
            None => format!("failed: {}", output.status),
        };
        let text = String::from_utf8_lossy(&output.stderr);
        let text = beginning(text.trim(), SHOWN);
        let separator = if text.is_empty() { "" } else { ": " };
        format!("exec: executable {} {how}{separator}{text}", self.command)
    }

    /// # Errors
    ///
    /// If the version differs from that of the kubeconfig, or if the status is missing or
    /// incomplete.
    fn material(&self, credential: ExecCredential) -> Result<Material, BoxError> {
        let (wanted, got) = (self.config.api_version.as_deref(), credential.api_version);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != got) {
            return Err(format!(
                "exec plugin is configured to use API version {wanted}, plugin returned version \
                 {got}"
            )
            .into());
        }
        let status = credential.status.ok_or("exec plugin didn't return a status field")?;
        // An empty text counts as none, as in client-go.
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let token = given(status.token);
        let pem = match (given(status.client_certificate_data), given(status.client_key_data)) {
            (Some(certificate), Some(key)) => {
                Some(PemPair { certificate: certificate.into_bytes(), key: key.into_bytes() })
            }
            (None, None) => None,
            _ => return Err("exec plugin returned only certificate or key, not both".into()),
        };
        if pem.is_none() && token.is_none() {
            return Err("exec plugin didn't return a token or cert/key pair".into());
        }
        let authorization = token.map(|token| header("Bearer", &token)).transpose()?;
        Ok(Material { authorization, pem, expires_at: status.expiration_timestamp })
    }
}
