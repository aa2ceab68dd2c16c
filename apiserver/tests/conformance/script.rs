//! The format of a script: exchanges, each with a title, a request and a recorded response.
//!
//! ```text
//! # What the file is about.
//! @own server
//!
//! ### the title
//! PUT /api/v1/namespaces/writes/configmaps/{{name}}?dryRun=All
//! Accept: application/json
//! @save a = /metadata/resourceVersion
//! > {"metadata": {"name": "a"}}
//! < 200
//! < {"kind": "ConfigMap"}
//! ```
//!
//! `apiserver/conformance/README.md` explains each line.

use serde_json::{Deserializer, Value};

use crate::headers::{self, MISSING, USUAL};

/// The exchanges of one file, played one after another.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: String,
    /// The text before the first exchange, unchanged.
    pub(crate) preface: String,
    /// True if the exchanges need a server of their own.
    pub(crate) own_server: bool,
    /// True if the server gives pods their service accounts.
    pub(crate) service_accounts: bool,
    pub(crate) exchanges: Vec<Exchange>,
}

#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) title: String,
    /// The text except the response, unchanged.
    pub(crate) asked: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    pub(crate) stage: Stage,
    /// The disruption of the server before the request.
    pub(crate) disruptions: Vec<Disruption>,
    /// Variables and the JSON pointers into the response.
    pub(crate) saves: Vec<(String, String)>,
    /// The response to wait for; the request is repeated until it is received.
    pub(crate) until: Option<Until>,
    /// True if the request has an effect although it is refused, so that recording sends it once.
    pub(crate) once: bool,
    /// Number of events after which the client closes a watch.
    pub(crate) events: Option<usize>,
    /// The writes of other clients while the watch is open.
    pub(crate) meanwhile: Vec<Meanwhile>,
    pub(crate) answer: Option<Answer>,
}

/// The role of an exchange: compared, or setup.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Compared,
    Everywhere,
    Embedded,
    Real,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disruption {
    Compact,
    Restart,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meanwhile {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// A status, and a part of the body as compact JSON with sorted members.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Until {
    status: u16,
    part: String,
}

/// The compared parts of a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// One value, or one per event of a watch.
    Json(Vec<Value>),
    Text(String),
}

// === impl Script ===

impl Script {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// Returns an error that names the invalid line.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut parts = text.split("\n### ");
        let preface = parts.next().unwrap_or_default().to_owned();
        let has = |wanted: &str| preface.lines().any(|line| line == wanted);
        let service_accounts = has("@service accounts");
        let own_server = service_accounts || has("@own server");
        let mut exchanges = Vec::<Exchange>::new();
        for part in parts {
            let exchange =
                Exchange::parse(part).map_err(|what| format!("{name}: {}: {what}", first(part)))?;
            if exchanges.iter().any(|other| other.title == exchange.title) {
                return Err(format!("{name}: duplicate title {:?}", exchange.title));
            }
            exchanges.push(exchange);
        }
        Ok(Self { name: name.to_owned(), preface, own_server, service_accounts, exchanges })
    }
}

fn first(part: &str) -> &str {
    part.lines().next().unwrap_or_default()
}

// === impl Exchange ===

impl Exchange {
    fn parse(part: &str) -> Result<Self, String> {
        let mut exchange = Self { title: first(part).trim().to_owned(), ..Self::default() };
        let (mut body, mut answer) = (Vec::new(), Vec::new());
        for line in part.lines().skip(1) {
            if let Some(line) = line.strip_prefix('<') {
                answer.push(line.strip_prefix(' ').unwrap_or(line));
                continue;
            }
            if !line.is_empty() {
                exchange.asked.push_str(line);
                exchange.asked.push('\n');
            }
            match line.split_at_checked(1).unwrap_or_default() {
                ("" | "#", _) => {}
                (">", line) => body.push(line.strip_prefix(' ').unwrap_or(line)),
                ("~", line) => exchange.meanwhile.push(Meanwhile::parse(line.trim())?),
                ("@", directive) => exchange.direct(directive)?,
                _ if exchange.method.is_empty() => {
                    let (method, path) = line.split_once(' ').ok_or("no request line")?;
                    (exchange.method, exchange.path) = (method.to_owned(), path.to_owned());
                }
                _ => {
                    let header = header(line).ok_or_else(|| format!("no header: {line}"))?;
                    exchange.headers.push(header);
                }
            }
        }
        exchange.body = (!body.is_empty()).then(|| body.join("\n"));
        exchange.answer = Answer::parse(&answer)?;
        if exchange.method.is_empty() {
            return Err("no request line".to_owned());
        }
        Ok(exchange)
    }

    fn direct(&mut self, directive: &str) -> Result<(), String> {
        let unknown = || format!("unknown directive: @{directive}");
        match directive.split_once(' ').unwrap_or((directive, "")) {
            ("setup", "") => self.stage = Stage::Everywhere,
            ("setup", "embedded") => self.stage = Stage::Embedded,
            ("setup", "real") => self.stage = Stage::Real,
            ("compact", "") => self.disruptions.push(Disruption::Compact),
            ("restart", "") => self.disruptions.push(Disruption::Restart),
            ("once", "") => self.once = true,
            ("events", count) => self.events = Some(count.parse().map_err(|_| unknown())?),
            ("until", rule) => self.until = Some(Until::parse(rule).ok_or_else(unknown)?),
            ("save", rule) => {
                let (name, pointer) = rule.split_once(" = ").ok_or_else(unknown)?;
                self.saves.push((name.to_owned(), pointer.to_owned()));
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    /// Returns true if a refused request is repeated: its response is compared, and none is
    /// recorded yet.
    pub(crate) fn is_repeated(&self) -> bool {
        self.stage == Stage::Compared && self.answer.is_none() && !self.once
    }

    /// Returns true if the exchange is played on this kind of server.
    pub(crate) fn is_for(&self, real: bool) -> bool {
        match self.stage {
            Stage::Compared | Stage::Everywhere => true,
            Stage::Embedded => !real,
            Stage::Real => real,
        }
    }
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(": ")?;
    let named = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '%'));
    (named && name.starts_with(|c: char| c.is_ascii_uppercase()))
        .then(|| (name.to_owned(), value.to_owned()))
}

// === impl Meanwhile ===

impl Meanwhile {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.splitn(3, ' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(format!("not a request: ~ {line}"));
        };
        let body = words.next().unwrap_or_default().to_owned();
        Ok(Self { method: method.to_owned(), path: path.to_owned(), body })
    }
}

// === impl Until ===

impl Until {
    /// Parses `200`, or `200 "phase":"Bound"`.
    fn parse(rule: &str) -> Option<Self> {
        let (status, part) = rule.split_once(' ').unwrap_or((rule, ""));
        Some(Self { status: status.parse().ok()?, part: part.to_owned() })
    }

    pub(crate) fn is_met(&self, answer: &Answer) -> bool {
        let has_part = match &answer.body {
            Content::Json(values) => values.iter().any(|one| one.to_string().contains(&self.part)),
            Content::Text(text) => text.contains(&self.part),
        };
        answer.status == self.status && has_part
    }
}

// === impl Answer ===

impl Answer {
    fn parse(lines: &[&str]) -> Result<Option<Self>, String> {
        let [status, rest @ ..] = lines else { return Ok(None) };
        let status = status.parse().map_err(|_| format!("not a status: {status}"))?;
        let headers: Vec<_> = rest.iter().map_while(|line| header(line)).collect();
        let body = rest.get(headers.len()..).unwrap_or_default().join("\n");
        let mut answer = Self { status, headers, body: Content::parse(&body) };
        answer.add_usual_headers();
        Ok(Some(answer))
    }

    /// Adds the headers that a file leaves out, and removes those that the reply does not have.
    fn add_usual_headers(&mut self) {
        let json = ("Content-Type", "application/json");
        let usual = USUAL.iter().chain(matches!(self.body, Content::Json(_)).then_some(&json));
        for (name, value) in usual {
            if self.headers.iter().all(|(known, _)| known != name) {
                self.headers.push(((*name).to_owned(), (*value).to_owned()));
            }
        }
        self.headers.retain(|(_, value)| value != MISSING);
        headers::sort(&mut self.headers);
    }
}

// === impl Content ===

impl Content {
    pub(crate) fn parse(text: &str) -> Self {
        let values: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
        match values {
            Ok(values) if !values.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) => {
                Self::Json(values)
            }
            _ => Self::Text(text.trim().to_owned()),
        }
    }
}
