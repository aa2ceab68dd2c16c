//! Watches. A watch is a cursor over the history of a resource. It buffers no events: a watch that
//! falls behind the history ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::list::prefix;
use super::list_options::{ListOptions, is_legacy_watch};
use super::read;
use super::renderer::Renderer;
use crate::core::Core;
use crate::media::Media;
use crate::metrics::Counter;
use crate::object::Stored;
use crate::reply::{Body, Reply};
use crate::request::ApiCall;
use crate::request::negotiate::{self, Form};
use crate::selection::Selection;
use crate::status::{Failure, Result};
use crate::storage::{Change, Storage};
use crate::view::ClientView;

/// The state of a watch between two polls.
struct Watch {
    core: Arc<Core>,
    renderer: Renderer,
    media: Media,
    prefix: String,
    selector: Selection,
    /// All changes up to this revision were sent or skipped.
    revision: u64,
    /// Initial objects that are still to be sent, in reverse order.
    initial: Vec<Arc<Stored>>,
    /// True if a bookmark ends the initial objects.
    marks_initial_end: bool,
    /// The number of events that are sent, but not counted yet.
    uncounted: u64,
    /// True after the first event: only the first event of a table has the columns.
    has_begun: bool,
    /// The time of the next bookmark, for a client that accepts bookmarks.
    bookmark: Option<Instant>,
    /// The revision of the start: a bookmark is sent only if it is newer.
    began_at: u64,
    deadline: Instant,
    ended: Arc<CancellationToken>,
    /// Counts this watch as open.
    _counted: Arc<()>,
    client_view: ClientView,
    /// The value of the server's bookmark counter when this watch last sent a bookmark.
    bookmarks: u64,
    wants_bookmarks: bool,
}

/// The reason why a watch woke up.
enum WakeUp {
    Changed,
    Bookmark,
    Ended,
}

/// The size of a chunk in bytes, after which further events wait for the next chunk.
const CHUNK: usize = 64 * 1024;
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The time between the last bookmark and the end of the watch.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// The range of a watch's duration in seconds if the client does not set one; upstream's
/// `min-request-timeout`.
const DEFAULT_SECONDS: std::ops::Range<u64> = 1800..3600;

pub(super) async fn start(core: &Arc<Core>, call: &ApiCall) -> Result<Reply> {
    let params = &call.params;
    let served = &call.target.served;
    let options = ListOptions::of(call)?;
    let timeout = options.timeout_seconds.map_or(0, nanoseconds);
    core.check_ready()?;
    let version = parse_version(params.get("resourceVersion"))?;
    let listing = is_legacy_watch(params) || params.flag("sendInitialEvents");
    let bookmarks = params.flag("allowWatchBookmarks");
    let mut watch = Watch::new(core, call, options)?;
    if call.media == Media::Yaml {
        return Err(negotiate::no_stream());
    }
    if let Form::Partial { list: true, .. } = call.form {
        // The events of a watch are not lists. The real server notices when it encodes the first
        // event, and ends the stream.
        return Ok(Reply::Watch(Body::full("")));
    }
    if timeout < 0 {
        return Ok(Reply::Watch(Body::full("")));
    }
    if listing {
        if let Err(failure) = core.wait_for_revision(version.unwrap_or(0), &call.client_view).await
        {
            // The header was already sent, so the error is an event.
            return Ok(ended(call.media, &failure));
        }
        watch.list();
        watch.marks_initial_end = bookmarks;
    } else {
        match version {
            // The client does not want the present objects.
            None | Some(0) if params.is_present("sendInitialEvents") => {
                watch.start_at_the_present();
            }
            // It is 0 in other digits.
            None | Some(0) => watch.list(),
            Some(revision) => {
                watch.revision = revision;
                if let Err(gone) =
                    core.read(|storage| storage.check_watchable(served.resource, revision))
                {
                    let failure = expired(revision, gone.oldest);
                    return Ok(ended(call.media, &failure));
                }
            }
        }
    }
    watch.began_at = watch.revision;
    // Shows the counter, also if no event follows.
    watch.count_events();
    let events = futures::stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next().await?;
        watch.count_events();
        Some((chunk, watch))
    });
    Ok(Reply::Watch(Body::stream(events)))
}

fn parse_version(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    // A list rejects this with 400; a watch answers 500, also in the real server.
    read::revision(text).map(Some).map_err(Failure::internal)
}

// === impl Watch ===

impl Watch {
    fn new(core: &Arc<Core>, call: &ApiCall, options: ListOptions) -> Result<Self> {
        let now = Instant::now();
        let bookmarks = call.params.flag("allowWatchBookmarks");
        let wanted = options.timeout_seconds.map_or(0, nanoseconds);
        let duration = if wanted == 0 {
            let range = DEFAULT_SECONDS.end - DEFAULT_SECONDS.start;
            Duration::from_secs(DEFAULT_SECONDS.start + core.chance.below(range))
        } else {
            Duration::from_nanos(u64::try_from(wanted).unwrap_or(0))
        };
        // A far deadline is as good as none; an overflow is not.
        let deadline =
            now.checked_add(duration).unwrap_or_else(|| now + Duration::from_secs(u32::MAX.into()));
        let mut watch = Self {
            core: Arc::clone(core),
            renderer: Renderer::of(core, call)?,
            media: call.media,
            prefix: prefix(&call.target.served.kind, call.namespace()),
            selector: options.selector,
            revision: 0,
            initial: Vec::new(),
            marks_initial_end: false,
            uncounted: 0,
            has_begun: false,
            bookmark: None,
            began_at: 0,
            deadline,
            ended: core.watch_end_token(&call.client_view),
            _counted: core.watching(),
            client_view: call.client_view.clone(),
            bookmarks: core.bookmarks(),
            wants_bookmarks: bookmarks,
        };
        if bookmarks {
            watch.bookmark = watch.next_bookmark(now);
        }
        Ok(watch)
    }

    /// Starts with the present objects.
    fn list(&mut self) {
        let resource = self.renderer.served().resource;
        let (revision, objects) = self.core.read(|storage| {
            let shown = self.client_view.cached(storage.revision());
            // If the history no longer reaches back to the lagging revision, the lagging server has
            // caught up.
            let objects = storage.cached_objects_at(resource, shown);
            let objects = objects.map(|objects| (shown, objects));
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

    /// Starts at the newest revision that the client's server shows.
    fn start_at_the_present(&mut self) {
        let resource = self.renderer.served().resource;
        self.revision = self.core.read(|storage| {
            let now = storage.revision();
            let shown = self.client_view.cached(now);
            if storage.check_watchable(resource, shown).is_ok() { shown } else { now }
        });
    }

    /// Returns the next bytes, or `None` at the end of the watch.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(chunk) = self.next_initial() {
            return Some(chunk);
        }
        let core = Arc::clone(&self.core);
        let kind = Arc::clone(&self.renderer.served().kind);
        let retired = kind.definition.as_ref().map(|definition| definition.retired());
        loop {
            let changed = core.changed().notified();
            tokio::pin!(changed);
            // Registers before it checks, so that no change is missed in between.
            changed.as_mut().enable();
            let chunk = self.next_changes()?;
            if !chunk.is_empty() {
                return Some(chunk);
            }
            if retired.is_some_and(CancellationToken::is_cancelled) {
                return None;
            }
            if self.wants_bookmarks && core.bookmarks() > self.bookmarks {
                self.bookmarks = core.bookmarks();
                return Some(self.bookmark(false));
            }
            let bookmark = self.bookmark.unwrap_or(self.deadline);
            let woken = tokio::select! {
                biased;
                () = self.ended.cancelled() => WakeUp::Ended,
                () = changed => WakeUp::Changed,
                () = until_cancelled(retired) => WakeUp::Changed,
                () = tokio::time::sleep_until(bookmark), if self.bookmark.is_some() => {
                    WakeUp::Bookmark
                }
                () = tokio::time::sleep_until(self.deadline) => WakeUp::Ended,
            };
            let news = match woken {
                WakeUp::Ended => return None,
                WakeUp::Changed => None,
                WakeUp::Bookmark => self.news(),
            };
            if news.is_some() {
                return news;
            }
        }
    }

    /// Returns a bookmark if it is newer than the start.
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

    /// Returns the events of the new changes, or `None` if the history no longer has all of them.
    fn next_changes(&mut self) -> Option<Bytes> {
        if self.ended.is_cancelled() || Instant::now() >= self.deadline {
            return None;
        }
        let core = Arc::clone(&self.core);
        let events = core.read(|storage| self.take_changes(storage))?;
        self.renderer.refresh(&core);
        let mut chunk = Vec::new();
        for (kind, object) in events {
            self.append(&mut chunk, kind, &object);
        }
        Some(chunk.into())
    }

    /// Takes about a chunk of changes. The lock is not held while they are encoded.
    fn take_changes(&mut self, storage: &Storage) -> Option<Vec<(&'static str, Arc<Stored>)>> {
        let mut events = Vec::new();
        let mut size = 0;
        let shown = self.client_view.cached(storage.revision());
        let changes = storage.changes_after(self.renderer.served().resource, self.revision)?;
        if self.is_overrun(storage, shown) {
            return None;
        }
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
        // No change up to this revision is missing, whichever resource it was for: that is the
        // meaning of a bookmark.
        self.revision = self.revision.max(shown);
        Some(events)
    }

    /// Returns whether more events wait for the client than its buffer holds.
    fn is_overrun(&self, storage: &Storage, shown: u64) -> bool {
        let limit = self.core.watch_buffer();
        if limit == usize::MAX {
            return false;
        }
        let changes = storage.changes_after(self.renderer.served().resource, self.revision);
        let changes = changes.into_iter().flatten();
        let events = changes
            .take_while(|change| change.revision <= shown)
            .filter(|change| self.event_of(change).is_some());
        events.take(limit.saturating_add(1)).count() > limit
    }

    /// Returns the event of a change: an object that starts to match is ADDED, one that ceases to
    /// match is DELETED.
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
        self.uncounted += 1;
        let first = !std::mem::replace(&mut self.has_begun, true);
        append(chunk, self.media, kind, &self.renderer.event_object(object, first));
    }

    fn bookmark(&mut self, ends_initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        self.uncounted += 1;
        let first = !std::mem::replace(&mut self.has_begun, true);
        event(self.media, "BOOKMARK", &self.renderer.bookmark(&metadata, first))
    }

    /// Counts the events of a chunk.
    fn count_events(&mut self) {
        let kind = &self.renderer.served().kind;
        let labels = [kind.group.clone(), kind.plural.clone(), kind.version.clone()];
        self.core.metrics.add(Counter::WatchEvents, &labels, std::mem::take(&mut self.uncounted));
    }

    fn next_bookmark(&self, now: Instant) -> Option<Instant> {
        let last = self.deadline.checked_sub(BOOKMARK_BEFORE_END)?;
        (now < last).then(|| last.min(now + BOOKMARK_EVERY))
    }
}

/// Returns a duration in nanoseconds, which overflows as in Go.
fn nanoseconds(seconds: i64) -> i64 {
    seconds.wrapping_mul(1_000_000_000)
}

/// Waits for the cancellation of a token; without a token it never ends.
async fn until_cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Returns the error for a watch from a revision that the history no longer has.
fn expired(revision: u64, oldest: u64) -> Failure {
    let message = format!("too old resource version: {revision} ({oldest})");
    Failure::new(410, "Expired", message)
}

/// Returns a watch that ends with an error. It is a stream: events have no line breaks for people.
fn ended(media: Media, failure: &Failure) -> Reply {
    let error = event(media, "ERROR", &failure.to_json());
    Reply::Watch(Body::stream(futures::stream::iter([error])))
}

fn event(media: Media, kind: &str, object: &Value) -> Bytes {
    let mut stream = Vec::new();
    append(&mut stream, media, kind, object.to_string().as_bytes());
    stream.into()
}

/// Appends an event. An object that cannot be encoded becomes an ERROR event.
fn append(chunk: &mut Vec<u8>, media: Media, kind: &str, object: &[u8]) {
    if let Err(error) = media.append_event(chunk, kind, object) {
        let status = Failure::internal(error.to_string()).to_json().to_string();
        let appended = media.append_event(chunk, "ERROR", status.as_bytes());
        debug_assert!(appended.is_ok(), "a Status has every encoding");
    }
}
