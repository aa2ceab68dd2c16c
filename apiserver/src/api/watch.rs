//! A watch is a cursor over the history of a resource. It holds no events: one that falls behind the history ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::list::prefix;
use super::read;
use super::view::View;
use crate::core::Core;
use crate::http::{Answer, Body, Call, Form};
use crate::object::Stored;
use crate::selection::Selection;
use crate::status::{Cause, Failure, Result};
use crate::storage::{Change, Storage};
use crate::view::Sight;

/// One watch, between two polls.
struct Watch {
    core: Arc<Core>,
    view: View,
    prefix: String,
    selector: Selection,
    /// All changes up to here have been sent, or need not be.
    revision: u64,
    /// Objects to send before any change, last one first.
    initial: Vec<Arc<Stored>>,
    /// Whether a bookmark follows them.
    marks_initial_end: bool,
    /// Whether an event has been sent: only the first one of a table has the columns.
    has_begun: bool,
    /// When the next bookmark is due, for a client that takes them.
    bookmark: Option<Instant>,
    /// The revision of the start: a bookmark that does not go beyond it is not sent.
    began_at: u64,
    deadline: Instant,
    ended: Arc<CancellationToken>,
    /// It is counted while it lives.
    _counted: Arc<()>,
    sight: Sight,
    /// How many bookmarks out of turn it knows of.
    bookmarks: u64,
    wants_bookmarks: bool,
}

/// What a watch waited for.
enum Woken {
    Changed,
    Bookmark,
    Ended,
}

/// A chunk is sent when it is this large; more events wait for the next one.
const CHUNK: usize = 64 * 1024;
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// How long a watch lasts at least, and at most, when the client does not say.
const USUAL_SECONDS: std::ops::Range<u64> = 1800..3600;

pub(super) async fn start(core: &Arc<Core>, call: &Call) -> Result<Answer> {
    let params = &call.params;
    let served = &call.target.served;
    let selector =
        Selection::parse(&served.kind, params.get("labelSelector"), params.get("fieldSelector"))?;
    check_options(call)?;
    core.check_ready()?;
    let version = parse_version(params.get("resourceVersion"))?;
    let listing = params.flag("sendInitialEvents");
    let bookmarks = params.flag("allowWatchBookmarks");
    let mut watch = Watch::new(core, call, selector, bookmarks)?;
    if let Form::Partial { list: true, .. } = call.form {
        // No event is a list. The real server finds out when it encodes the first one, and ends the stream.
        return Ok(Answer::Watch(Body::full("")));
    }
    if listing {
        if let Err(failure) = core.reach(version.unwrap_or(0), &call.sight).await {
            // The header is on its way by then: it is told as an event.
            return Ok(Answer::Watch(Body::full(event("ERROR", &failure.to_json()))));
        }
        watch.list();
        watch.marks_initial_end = bookmarks;
    } else {
        match version {
            // Asked not to send what is there.
            None | Some(0) if params.is_said("sendInitialEvents") => {
                watch.revision = core.read(Storage::revision);
            }
            None | Some(0) => watch.list(),
            Some(revision) => {
                watch.revision = revision;
                if let Err(gone) =
                    core.read(|storage| storage.check_watchable(served.resource, revision))
                {
                    return Ok(Answer::Watch(Body::full(expired(revision, gone.oldest))));
                }
            }
        }
    }
    watch.began_at = watch.revision;
    let events = futures::stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next().await?;
        Some((chunk, watch))
    });
    Ok(Answer::Watch(Body::stream(events)))
}

fn parse_version(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    // A list refuses this with 400; a watch really says 500.
    read::revision(text).map(Some).map_err(Failure::internal)
}

fn check_options(call: &Call) -> Result<()> {
    let params = &call.params;
    let field = "resourceVersionMatch";
    let matched = params.get(field);
    let mut causes = Vec::new();
    let mut forbid = |why| causes.push(Cause::forbidden(field, why));
    if !params.get("continue").is_empty() {
        forbid("resourceVersionMatch is forbidden when continue is provided");
    } else if params.is_said("sendInitialEvents") {
        if matched != "NotOlderThan" {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !matches!(matched, "" | "NotOlderThan") {
            causes.push(Cause::unsupported(field, &json!(matched), &["NotOlderThan"]));
        }
    } else if !matched.is_empty() {
        forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid_options("ListOptions", &causes)) }
}

// === impl Watch ===

impl Watch {
    fn new(core: &Arc<Core>, call: &Call, selector: Selection, bookmarks: bool) -> Result<Self> {
        let now = Instant::now();
        let seconds = match call
            .params
            .number("timeoutSeconds")?
            .and_then(|seconds| u64::try_from(seconds).ok())
        {
            Some(seconds) if seconds > 0 => seconds,
            _ => {
                USUAL_SECONDS.start + core.chance.next() % (USUAL_SECONDS.end - USUAL_SECONDS.start)
            }
        };
        // Far in the future is as good as never; an overflow is not.
        let deadline = now
            .checked_add(Duration::from_secs(seconds))
            .unwrap_or_else(|| now + Duration::from_secs(u32::MAX.into()));
        let mut watch = Self {
            core: Arc::clone(core),
            view: View::of(core, call)?,
            prefix: prefix(&call.target.served.kind, call.namespace()),
            selector,
            revision: 0,
            initial: Vec::new(),
            marks_initial_end: false,
            has_begun: false,
            bookmark: None,
            began_at: 0,
            deadline,
            ended: core.stream_end(&call.sight),
            _counted: core.watching(),
            sight: call.sight.clone(),
            bookmarks: core.bookmarks(),
            wants_bookmarks: bookmarks,
        };
        if bookmarks {
            watch.bookmark = watch.next_bookmark(now);
        }
        Ok(watch)
    }

    /// Starts with what is there now.
    fn list(&mut self) {
        let resource = self.view.served().resource;
        let (revision, objects) = self.core.read(|storage| {
            let shown = self.sight.cached(storage.revision());
            // What a server that has fallen behind no longer knows, it has learned meanwhile.
            let objects = storage.objects_at(resource, shown).map(|objects| (shown, objects));
            objects.unwrap_or_else(|_| (storage.revision(), storage.objects(resource).clone()))
        });
        self.revision = revision;
        let scope = objects
            .range(Arc::<str>::from(self.prefix.as_str())..)
            .take_while(|(key, _)| key.starts_with(&self.prefix));
        let selected = scope.filter(|(_, object)| self.selector.matches(&object.selectable));
        self.initial = selected.map(|(_, object)| Arc::clone(object)).collect();
        self.initial.reverse();
    }

    /// The next bytes; none when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(chunk) = self.next_initial() {
            return Some(chunk);
        }
        let core = Arc::clone(&self.core);
        loop {
            let changed = core.changed().notified();
            tokio::pin!(changed);
            // Listens before it looks, so that no change falls in between.
            changed.as_mut().enable();
            let chunk = self.next_changes()?;
            if !chunk.is_empty() {
                return Some(chunk);
            }
            if self.wants_bookmarks && core.bookmarks() > self.bookmarks {
                self.bookmarks = core.bookmarks();
                return Some(self.bookmark(false));
            }
            let bookmark = self.bookmark.unwrap_or(self.deadline);
            let woken = tokio::select! {
                biased;
                () = self.ended.cancelled() => Woken::Ended,
                () = changed => Woken::Changed,
                () = tokio::time::sleep_until(bookmark), if self.bookmark.is_some() => Woken::Bookmark,
                () = tokio::time::sleep_until(self.deadline) => Woken::Ended,
            };
            let news = match woken {
                Woken::Ended => return None,
                Woken::Changed => None,
                Woken::Bookmark => self.news(),
            };
            if news.is_some() {
                return news;
            }
        }
    }

    /// The bookmark that is due, if it says more than the start did.
    fn news(&mut self) -> Option<Bytes> {
        self.bookmark = self.next_bookmark(Instant::now());
        if self.revision == self.began_at {
            return None;
        }
        Some(self.bookmark(false))
    }

    fn next_initial(&mut self) -> Option<Bytes> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK {
            let Some(object) = self.initial.pop() else { break };
            self.append(&mut chunk, "ADDED", &object);
        }
        if self.initial.is_empty() && std::mem::take(&mut self.marks_initial_end) {
            chunk.extend(self.bookmark(true));
        }
        (!chunk.is_empty()).then(|| chunk.into())
    }

    /// The events of the changes since the last look; none when some of them are no longer known.
    fn next_changes(&mut self) -> Option<Bytes> {
        if self.ended.is_cancelled() || Instant::now() >= self.deadline {
            return None;
        }
        let core = Arc::clone(&self.core);
        let events = core.read(|storage| self.take_changes(storage))?;
        self.view.refresh(&core);
        let mut chunk = Vec::new();
        for (kind, object) in events {
            self.append(&mut chunk, kind, &object);
        }
        Some(chunk.into())
    }

    /// The next events, about a chunk of them: the lock is not held while they are written down.
    fn take_changes(&mut self, storage: &Storage) -> Option<Vec<(&'static str, Arc<Stored>)>> {
        let mut events = Vec::new();
        let mut size = 0;
        let shown = self.sight.cached(storage.revision());
        let changes = storage.changes_after(self.view.served().resource, self.revision)?;
        for change in changes.take_while(|change| change.revision <= shown) {
            self.revision = change.revision;
            if let Some((kind, object)) = self.event_of(change) {
                size += object.bytes().len();
                events.push((kind, object));
            }
            if size >= CHUNK {
                return Some(events);
            }
        }
        // Nothing is missing up to now, whatever resource now was written: that is what a bookmark says.
        self.revision = self.revision.max(shown);
        Some(events)
    }

    /// An object that starts to match is added, one that ceases to is deleted.
    fn event_of(&self, change: &Change) -> Option<(&'static str, Arc<Stored>)> {
        if !change.key.starts_with(&self.prefix) {
            return None;
        }
        let matching = |object: &&Arc<Stored>| self.selector.matches(&object.selectable);
        let old = change.old.as_ref().filter(matching);
        let new = change.new.as_ref().filter(matching);
        match (old, new) {
            (None, None) => None,
            (None, Some(new)) => Some(("ADDED", Arc::clone(new))),
            (Some(_), Some(new)) => Some(("MODIFIED", Arc::clone(new))),
            (Some(old), None) => Some(("DELETED", Arc::new(old.at(change.revision)))),
        }
    }

    fn append(&mut self, chunk: &mut Vec<u8>, kind: &str, object: &Stored) {
        let first = !std::mem::replace(&mut self.has_begun, true);
        append(chunk, kind, &self.view.event_object(object, first));
    }

    fn bookmark(&mut self, ends_initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let first = !std::mem::replace(&mut self.has_begun, true);
        event("BOOKMARK", &self.view.bookmark(&metadata, first))
    }

    fn next_bookmark(&self, now: Instant) -> Option<Instant> {
        let last = self.deadline.checked_sub(BOOKMARK_BEFORE_END)?;
        (now < last).then(|| last.min(now + BOOKMARK_EVERY))
    }
}

/// The event that ends a watch from a revision that is no longer known.
fn expired(revision: u64, oldest: u64) -> Bytes {
    let message = format!("too old resource version: {revision} ({oldest})");
    event("ERROR", &Failure::new(410, "Expired", message).to_json())
}

fn event(kind: &str, object: &Value) -> Bytes {
    let mut line = Vec::new();
    append(&mut line, kind, object.to_string().as_bytes());
    line.into()
}

fn append(chunk: &mut Vec<u8>, kind: &str, object: &[u8]) {
    chunk.reserve(object.len() + 40);
    chunk.extend_from_slice(b"{\"type\":\"");
    chunk.extend_from_slice(kind.as_bytes());
    chunk.extend_from_slice(b"\",\"object\":");
    chunk.extend_from_slice(object);
    chunk.extend_from_slice(b"}\n");
}
