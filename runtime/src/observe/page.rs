//! The debug page: HTML without scripts, readable on a phone.
//!
//! Every text from outside (names, keys, errors) passes [`Escaped`]. The page has no scripts and
//! loads nothing, so that it works through `kubectl port-forward` and needs no content policy.

use std::fmt::Display;
use std::time::Duration;

use super::report::{
    FailingKey, Informer, Key, LeaderReport, QueueReport, ReconcileReport, Report, Unready,
};
use super::{in_words, lasting};

/// On a wide screen a table scrolls sideways in a box of its own, so that the page itself never
/// does. On a narrow screen each row becomes a list of names and values.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
<title>homeostat</title><style>\
body{font:16px/1.45 system-ui,sans-serif;margin:1rem auto;max-width:75rem;padding:0 .75rem}\
h1{margin:0}h2{margin:2rem 0 0}h3{margin:1rem 0 .25rem;font-size:1rem}p{margin:.25rem 0}\
.scroll{overflow-x:auto}table{border-collapse:collapse}code{font-size:.875em}\
th,td{text-align:left;padding:.25rem 1.5rem .25rem 0;border-bottom:1px solid #8885;\
vertical-align:top}td{white-space:pre-line}\
td:last-child:not(.number,:empty){min-width:20rem;overflow-wrap:anywhere}\
.ok{color:#0a6b2d}.bad{color:#a4161a}\
.number{text-align:right;white-space:nowrap}\
@media(max-width:45rem){thead{display:none}table,tbody,tr,td{display:block}\
tr{padding:.5rem 0;border-bottom:1px solid #8885}th,td{border:0;padding:0}\
td,.pairs tr{display:flex;gap:.75rem}.number{text-align:left}td:empty{display:none}\
td[data-name]:before{content:attr(data-name);flex:0 0 6.5rem;opacity:.7}\
.pairs tr{padding:0;border:0}.pairs th{flex:0 0 6.5rem;font-weight:400;opacity:.7}\
code{overflow-wrap:anywhere;min-width:0}td:last-child:not(.number,:empty){min-width:0}}\
@media(prefers-color-scheme:dark){body{background:#111;color:#eee}.ok{color:#6ad38a}\
.bad{color:#ff8a8a}}</style></head><body>\n";

/// The columns of the failing keys.
const FAILING: [&str; 5] = ["Key", "#Failures", "#Next try in", "#Failed", "Last error"];

/// The columns of the last reconciles.
const RECONCILES: [&str; 7] =
    ["Key", "#Ended", "Trigger", "#Attempt", "#Took", "Outcome", "Requests"];

/// The number of lines with requests that the page shows of a reconcile. The JSON report has more.
const SHOWN_CALLS: usize = 5;

/// Text with the characters of HTML replaced: names and errors come from outside.
struct Escaped<T>(T);

/// Returns the page for `report`.
///
/// The size is bounded: the report lists at most 200 keys per list.
pub(super) fn render(report: &Report) -> String {
    let informers: Vec<_> = report.informers.iter().map(informer).collect();
    let columns = ["Informer", "Phase", "Version", "#Objects", "Handlers", "Last error"];
    let parts = [
        HEAD.to_owned(),
        "<h1>homeostat</h1>\n".to_owned(),
        readiness(&report.unready, report.uptime),
        report.elections.iter().map(election).collect(),
        "<h2>Informers</h2>\n".to_owned(),
        table(&columns, &informers),
        report.queues.iter().map(queue).collect(),
        "</body></html>\n".to_owned(),
    ];
    parts.concat()
}

/// Returns the section on readiness: "Ready", or the parts that are not ready with their reasons.
fn readiness(unready: &[Unready], uptime: Duration) -> String {
    let up = in_words(uptime);
    if unready.is_empty() {
        return format!("<p><b class=\"ok\">Ready</b>, up for {up}</p>\n");
    }
    let items = unready.iter().map(|Unready { name, reason, since }| {
        let (name, reason, since) = (Escaped(name), Escaped(reason), lasting(*since));
        format!("<li><b>{name}</b>: {reason}{since}</li>\n")
    });
    let items = items.collect::<String>();
    format!("<p><b class=\"bad\">Not ready</b>, up for {up}</p>\n<ul>{items}</ul>\n")
}

/// Returns the section on an election: the leader, and what this process knows about it.
fn election(election: &LeaderReport) -> String {
    let role = match (&election.holder, election.is_leader) {
        (_, true) => "This process leads".to_owned(),
        (Some(holder), false) => format!("Led by {}", Escaped(holder)),
        (None, false) => "No leader".to_owned(),
    };
    let is_fine = election.holder.is_some() && election.last_error.is_none();
    let class = if is_fine { "ok" } else { "bad" };
    let error = election.last_error.as_ref();
    let rows = [
        ("Lease", Some(election.lease.clone())),
        ("This process", Some(election.identity.clone())),
        ("Holder", election.holder.clone()),
        ("Since", election.since.clone()),
        ("Renewed", election.renewed.map(|age| format!("{} ago", in_words(age)))),
        ("Leadership ends in", election.left.map(in_words)),
        ("Transitions", Some(election.transitions.to_string())),
        (
            "Last error",
            error.map(|error| format!("{error} ({} consecutive failures)", election.failures)),
        ),
    ];
    let known = rows.into_iter().filter_map(|(name, value)| {
        let value = Escaped(value?);
        Some(format!("<tr><th scope=\"row\">{name}</th><td><code>{value}</code></td></tr>\n"))
    });
    format!(
        "<h2>Leader election</h2>\n<p class=\"{class}\">{role}</p>\n\
         <div class=\"scroll\"><table class=\"pairs\">{}</table></div>\n",
        known.collect::<String>()
    )
}

/// Returns the cells of an informer's row, in the order of the columns.
fn informer(informer: &Informer) -> Vec<String> {
    let handlers =
        informer.handlers.iter().map(|(name, queued)| format!("{name} ({queued} queued)"));
    let opaque = match informer.opaque {
        0 => String::new(),
        opaque => format!(" ({opaque} opaque)"),
    };
    let error = match &informer.last_error {
        Some(error) => format!("{error} ({} consecutive failures)", informer.failures),
        None => String::new(),
    };
    vec![
        informer.name.clone(),
        format!("{}, {}", informer.phase, informer.request),
        informer.resource_version.clone().unwrap_or_default(),
        format!("{}{opaque}", informer.objects),
        handlers.collect::<Vec<_>>().join(", "),
        error,
    ]
}

/// Returns the section on a queue: the counts, then a table for each list that is not empty.
fn queue(queue: &QueueReport) -> String {
    let counts = format!(
        "<h2>Queue {}</h2>\n<p>{} waiting, {} held, {} delayed, {} failing</p>\n",
        Escaped(&queue.name),
        queue.depth,
        queue.held.len(),
        queue.delayed.len(),
        queue.failing.len(),
    );
    let failing: Vec<_> = queue.failing.iter().map(failing_key).collect();
    let failing = match failing.as_slice() {
        [] => String::new(),
        rows => format!("<h3>Failing</h3>\n{}", table(&FAILING, rows)),
    };
    let lists = [
        ("Held by workers", "#For", &queue.held),
        ("Waiting", "#For", &queue.queued),
        ("Delayed", "#Next try in", &queue.delayed),
    ];
    let shown = lists.into_iter().filter(|(_, _, keys)| !keys.is_empty());
    let tables = shown.map(|(title, time, keys)| {
        let row = |key: &Key| vec![key.key.clone(), in_words(key.time), key.failures.to_string()];
        let rows: Vec<_> = keys.iter().map(row).collect();
        format!("<h3>{title}</h3>\n{}", table(&["Key", time, "#Failures"], &rows))
    });
    let reconciles: Vec<_> = queue.reconciles.iter().map(reconcile).collect();
    let reconciles = match reconciles.as_slice() {
        [] => String::new(),
        rows => format!("<h3>Last reconciles</h3>\n{}", table(&RECONCILES, rows)),
    };
    counts + &failing + &tables.collect::<String>() + &reconciles
}

/// Returns the cells of a reconcile's row, in the order of [`RECONCILES`].
fn reconcile(reconcile: &ReconcileReport) -> Vec<String> {
    vec![
        reconcile.key.clone(),
        format!("{} ago", in_words(reconcile.ended)),
        reconcile.trigger.clone(),
        reconcile.attempt.to_string(),
        in_words(reconcile.took),
        reconcile.outcome.clone(),
        requests(reconcile),
    ]
}

/// Returns the requests of a reconcile, a line for each run of equal ones.
fn requests(reconcile: &ReconcileReport) -> String {
    let runs: Vec<_> = reconcile.calls.chunk_by(PartialEq::eq).collect();
    let shown = &runs[..runs.len().min(SHOWN_CALLS)];
    let line = |run: &&[String]| match run {
        [call] => call.clone(),
        run => format!("{}\u{a0}× {}", run.len(), run[0]),
    };
    let mut lines: Vec<_> = shown.iter().map(line).collect();
    let left = reconcile.call_count.saturating_sub(shown.iter().map(|run| run.len()).sum());
    if left > 0 {
        lines.push(format!("{left} more"));
    }
    lines.join("\n")
}

/// Returns the cells of a failing key's row, in the order of [`FAILING`].
fn failing_key(key: &FailingKey) -> Vec<String> {
    let failed = key.failed.map(|age| format!("{} ago", in_words(age)));
    let next_try = match key.next_try {
        Some(Duration::ZERO) => "now".to_owned(),
        Some(time) => in_words(time),
        None if key.failures == 0 => "after a change".to_owned(),
        None => String::new(),
    };
    let error = key.error.clone().unwrap_or_default();
    vec![key.key.clone(), key.failures.to_string(), next_try, failed.unwrap_or_default(), error]
}

/// Returns a table. A column whose title begins with `#` holds numbers.
///
/// Each cell has the title of its column, which a narrow screen shows beside it. An empty cell has
/// no content, so that a narrow screen leaves it out.
fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return "<p>none</p>\n".to_owned();
    }
    let class = |column: &str| if column.starts_with('#') { " class=\"number\"" } else { "" };
    let title = |column: &str| Escaped(column.trim_start_matches('#')).to_string();
    let head = columns.iter().map(|column| format!("<th{}>{}</th>", class(column), title(column)));
    let body = rows.iter().map(|row| {
        let cells = row.iter().zip(columns).map(|(cell, column)| {
            let content = match cell.as_str() {
                "" => String::new(),
                cell => format!("<code>{}</code>", Escaped(cell)),
            };
            format!("<td{} data-name=\"{}\">{content}</td>", class(column), title(column))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    });
    format!(
        "<div class=\"scroll\"><table><thead><tr>{}</tr></thead>\n\
         <tbody>{}</tbody></table></div>\n",
        head.collect::<String>(),
        body.collect::<String>()
    )
}

// === impl Escaped ===

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.to_string().chars() {
            match character {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}
