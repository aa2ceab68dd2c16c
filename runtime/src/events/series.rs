//! Decides which requests an event of `events.k8s.io/v1` causes. Pure.
//!
//! Equal events form a *series*, as in client-go's `tools/events`:
//!
//! | Occurrence | Request |
//! |---|---|
//! | first | a create |
//! | second | a patch that adds `series` with the count 2 |
//! | third and later | none: the count is kept here |
//! | each 30 minutes | a patch, if the server lacks the count |
//! | none for 6 minutes | the last patch, if the server lacks the count; the series is over |
//!
//! Events are equal if their type, reason, action, object and related object are: the note of a
//! series is that of its first event.
//!
//! Differences: the versions of the objects do not count, so that an object that changes continues
//! its series; the spam filter of the core events limits creates; a series that ends with the
//! program or is evicted sends its last count, which upstream loses; a series ends 6 minutes after
//! its last event, where upstream looks each 6 minutes.

use std::time::Duration;

use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::keys::{InvolvedKey, Names, ReferenceKey, namespace_of};
use super::lru::Lru;
use super::post::Post;
use super::spam::SpamFilter;
use super::{EventType, Occurrence};

/// A series without an event for this time is over (`finishTime`).
const FINISH: Duration = Duration::from_secs(6 * 60);
/// The server learns the counts in this period (`refreshTime`).
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// The number of series and of objects that are remembered. Upstream has no limit.
const REMEMBERED: usize = 4096;
/// The longest note that the API takes, in bytes (`NoteLengthLimit`). Upstream's longer notes are
/// refused.
const LONGEST_NOTE: usize = 1024;

/// The series of one recorder. One task owns it.
#[derive(Debug)]
pub(super) struct SeriesCache {
    component: String,
    instance: String,
    /// Each event uses its series, so that the least recently used one is the first that is over.
    series: Lru<SeriesKey, Series>,
    spam: SpamFilter,
    names: Names,
    /// The time of the next patches of all series. Of no effect while there is none.
    refresh_at: Instant,
}

/// The result of one occurrence.
#[derive(Debug)]
pub(super) enum Step {
    /// The request that it causes.
    Send(Post<Event>),
    /// It raised the count of its series.
    Counted,
    /// Its object has caused too many requests.
    Filtered,
}

/// Events with equal keys are one series.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SeriesKey {
    regarding: ReferenceKey,
    field_path: Option<String>,
    related: Option<ReferenceKey>,
    event_type: EventType,
    reason: String,
    action: Option<String>,
}

/// An event on the server, with what has happened since.
#[derive(Debug)]
struct Series {
    event: Event,
    /// The time of the last occurrence.
    last: Instant,
    /// The same time, for people.
    last_at: Timestamp,
    count: i32,
    /// The count that was sent last.
    sent: i32,
    /// True if the server did not get that count.
    is_lost: bool,
}

// === impl SeriesCache ===

impl SeriesCache {
    /// Returns a cache without a series.
    pub(super) fn new(component: String, instance: String) -> Self {
        Self::with_capacity(component, instance, REMEMBERED)
    }

    fn with_capacity(component: String, instance: String, capacity: usize) -> Self {
        Self {
            component,
            instance,
            series: Lru::new(capacity),
            spam: SpamFilter::new(capacity),
            names: Names::default(),
            refresh_at: Instant::now(),
        }
    }

    /// Counts `occurrence` in its series, or starts one.
    ///
    /// Call [`make_room_for`](Self::make_room_for) before it. An event that the spam filter drops
    /// starts no series.
    pub(super) fn record(&mut self, occurrence: Occurrence) -> Step {
        let key = SeriesKey::of(&occurrence);
        let (now, wall) = (occurrence.recorded, occurrence.at);
        if let Some(series) = self.series.get_mut(&key) {
            (series.last, series.last_at) = (now, wall);
            series.count = series.count.saturating_add(1);
            let is_second = series.sent < 2;
            return if is_second { Step::Send(series.update()) } else { Step::Counted };
        }
        if !self.spam.admits(InvolvedKey::of(&occurrence), now) {
            return Step::Filtered;
        }
        if self.series.is_empty() {
            self.refresh_at = now + REFRESH;
        }
        let event = self.event(occurrence);
        let post = Post::Create(Box::new(event.clone()));
        let started = Series { event, last: now, last_at: wall, count: 1, sent: 1, is_lost: false };
        self.series.get_or_insert_with(key, || started);
        Step::Send(post)
    }

    /// Makes room for the series of `occurrence`. Returns the last request of the series that it
    /// removes.
    pub(super) fn make_room_for(&mut self, occurrence: &Occurrence) -> Option<Post<Event>> {
        if !self.series.is_full() || self.series.get_mut(&SeriesKey::of(occurrence)).is_some() {
            return None;
        }
        self.series.pop_oldest().and_then(|mut series| series.unsent())
    }

    /// Returns the time at which a series is over or the counts have to be sent. `None` without a
    /// series.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let oldest = self.series.oldest()?;
        Some(self.refresh_at.min(oldest.last + FINISH))
    }

    /// Ends the series that are over, and returns the requests that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Post<Event>> {
        let mut due = Vec::new();
        while self.series.oldest().is_some_and(|oldest| oldest.last + FINISH <= now) {
            due.extend(self.series.pop_oldest().and_then(|mut series| series.unsent()));
        }
        if self.refresh_at <= now {
            self.refresh_at = now + REFRESH;
            due.extend(self.series.values_mut().filter_map(Series::unsent));
            sort(&mut due);
        }
        due
    }

    /// Notes that the server did not get the count of the series whose event has this name. The
    /// next refresh or the end of the series sends it again.
    ///
    /// A create that failed needs no note: the next patch finds no event and creates it.
    pub(super) fn mark_lost(&mut self, name: Option<&str>) {
        let mut all = self.series.values_mut();
        if let Some(series) = all.find(|series| series.event.metadata.name.as_deref() == name) {
            series.is_lost = series.sent > 1;
        }
    }

    /// Ends all series, and returns their last requests.
    pub(super) fn finish(&mut self) -> Vec<Post<Event>> {
        let mut last = Vec::new();
        while let Some(mut series) = self.series.pop_oldest() {
            last.extend(series.unsent());
        }
        last
    }

    /// Returns the event as the server stores it.
    ///
    /// The API requires an action and an instance, and at most 1,024 bytes in a note: an event
    /// without an action has its reason as its action, and a longer note is cut.
    fn event(&mut self, occurrence: Occurrence) -> Event {
        let namespace = namespace_of(&occurrence.involved);
        let name = self.names.next(&occurrence.involved, occurrence.at);
        let mut note = occurrence.message;
        note.truncate(boundary_before(&note, LONGEST_NOTE));
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace),
                annotations: Some(occurrence.annotations).filter(|all| !all.is_empty()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(occurrence.at)),
            action: Some(occurrence.action.unwrap_or_else(|| occurrence.reason.clone())),
            reason: Some(occurrence.reason),
            regarding: Some(occurrence.involved),
            related: occurrence.related,
            note: Some(note),
            type_: Some(occurrence.event_type.as_str().to_owned()),
            reporting_controller: Some(self.component.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

/// Returns the end of the longest prefix of `text` that has at most `longest` bytes and ends
/// between two characters.
pub(super) fn boundary_before(text: &str, longest: usize) -> usize {
    let longest = longest.min(text.len());
    (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default()
}

/// Sorts requests by the names of their events, so that two runs send them in one order.
fn sort(posts: &mut [Post<Event>]) {
    posts.sort_by(|one, other| one.event().metadata.name.cmp(&other.event().metadata.name));
}

// === impl Series ===

impl Series {
    /// Returns the patch with the present count, and marks it as sent.
    fn update(&mut self) -> Post<Event> {
        self.sent = self.count;
        self.is_lost = false;
        self.event.series =
            Some(EventSeries { count: self.count, last_observed_time: MicroTime(self.last_at) });
        Post::Update(Box::new(self.event.clone()))
    }

    /// Returns the request for a count that the server does not have.
    fn unsent(&mut self) -> Option<Post<Event>> {
        (self.is_lost || self.sent < self.count).then(|| self.update())
    }
}

// === impl SeriesKey ===

impl SeriesKey {
    fn of(occurrence: &Occurrence) -> Self {
        Self {
            regarding: (&occurrence.involved).into(),
            field_path: occurrence.involved.field_path.clone(),
            related: occurrence.related.as_ref().map(Into::into),
            event_type: occurrence.event_type,
            reason: occurrence.reason.clone(),
            action: occurrence.action.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
