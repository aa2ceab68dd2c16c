use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;

use super::*;

struct World {
    cache: SeriesCache,
    now: Instant,
    wall: Timestamp,
}

impl World {
    fn new() -> Self {
        Self::with_capacity(REMEMBERED)
    }

    fn with_capacity(capacity: usize) -> Self {
        let (component, instance) = ("shop".to_owned(), "shop-0".to_owned());
        Self {
            cache: SeriesCache::with_capacity(component, instance, capacity),
            now: Instant::now(),
            wall: Timestamp::from_second(1_700_000_000).unwrap(),
        }
    }

    fn wait(&mut self, duration: Duration) {
        self.now += duration;
        self.wall += duration;
    }

    fn occurrence(&self, object: &str, reason: &str) -> Occurrence {
        Occurrence {
            involved: ObjectReference {
                kind: Some("Pod".into()),
                namespace: Some("ns".into()),
                name: Some(object.into()),
                ..ObjectReference::default()
            },
            event_type: EventType::Normal,
            reason: reason.into(),
            message: "hello".into(),
            related: None,
            action: None,
            annotations: BTreeMap::new(),
            recorded: self.now,
            at: self.wall,
        }
    }

    /// Returns the request of one more event: `create`, `patch COUNT`, `counted` or `filtered`.
    fn record(&mut self, object: &str) -> String {
        let occurrence = self.occurrence(object, "Greeted");
        self.record_this(occurrence)
    }

    fn record_this(&mut self, occurrence: Occurrence) -> String {
        match self.cache.record(occurrence) {
            Step::Send(post) => text(&post),
            Step::Counted => "counted".to_owned(),
            Step::Filtered => "filtered".to_owned(),
        }
    }

    fn due(&mut self) -> Vec<String> {
        self.cache.take_due(self.now).iter().map(text).collect()
    }

    /// Returns the time until something is due, in seconds.
    fn due_in(&self) -> Option<u64> {
        self.cache.due_at().map(|due| due.saturating_duration_since(self.now).as_secs())
    }
}

fn text(post: &Post<Event>) -> String {
    match post {
        Post::Create(_) => "create".to_owned(),
        Post::Update(event) => format!("patch {}", event.series.as_ref().unwrap().count),
    }
}

#[tokio::test(start_paused = true)]
async fn second_event_starts_the_series_and_later_ones_are_counted() {
    let mut world = World::new();
    let steps: Vec<_> = (0..5).map(|_| world.record("web")).collect();
    assert_eq!(steps, ["create", "patch 2", "counted", "counted", "counted"]);
}

#[tokio::test(start_paused = true)]
async fn series_is_over_six_minutes_after_its_last_event() {
    let mut world = World::new();
    for _ in 0..3 {
        world.record("web");
        world.wait(Duration::from_secs(60));
    }
    assert_eq!(world.due_in(), Some(300));
    world.wait(Duration::from_secs(299));
    assert!(world.due().is_empty());
    world.wait(Duration::from_secs(1));
    assert_eq!(world.due(), ["patch 3"]);
    assert_eq!(world.due_in(), None);
    assert_eq!(world.record("web"), "create");
}

#[tokio::test(start_paused = true)]
async fn series_whose_count_the_server_has_ends_without_a_request() {
    let mut world = World::new();
    world.record("alone");
    world.record("twice");
    world.record("twice");
    world.wait(FINISH);
    assert!(world.due().is_empty());
    assert_eq!(world.due_in(), None);
}

#[tokio::test(start_paused = true)]
async fn long_series_sends_its_count_each_thirty_minutes() {
    let mut world = World::new();
    let mut sent = Vec::new();
    for minute in 0..70 {
        sent.extend(world.due().into_iter().map(|patch| format!("{minute}: {patch}")));
        world.record("web");
        world.wait(Duration::from_secs(60));
    }
    assert_eq!(sent, ["30: patch 30", "60: patch 60"]);
}

/// Upstream sends the count of each series again when it refreshes or finishes it.
#[tokio::test(start_paused = true)]
async fn count_that_the_server_did_not_get_is_sent_at_the_end() {
    let mut world = World::new();
    let lose = |world: &mut World, step: Step| {
        let Step::Send(post) = step else { panic!("no request") };
        world.cache.mark_lost(post.event().metadata.name.as_deref());
    };
    let (alone, web) = (world.occurrence("alone", "Greeted"), world.occurrence("web", "Greeted"));
    for occurrence in [alone, web.clone(), web.clone()] {
        let step = world.cache.record(occurrence);
        lose(&mut world, step);
    }
    world.wait(FINISH);
    assert_eq!(world.due(), ["patch 2"], "an event without a series has no count");
    assert_eq!(world.due_in(), None);
}

/// Upstream's `TestRefreshExistingEventSeries`, the case whose patch fails: the series goes on.
#[tokio::test(start_paused = true)]
async fn event_after_a_lost_count_is_counted() {
    let mut world = World::new();
    world.record("web");
    let occurrence = world.occurrence("web", "Greeted");
    let Step::Send(post) = world.cache.record(occurrence) else { panic!("no request") };
    world.cache.mark_lost(post.event().metadata.name.as_deref());
    assert_eq!(world.record("web"), "counted");
    world.wait(FINISH);
    assert_eq!(world.due(), ["patch 3"]);
}

#[tokio::test(start_paused = true)]
async fn last_counts_are_sent_at_the_end() {
    let mut world = World::new();
    for _ in 0..4 {
        world.record("web");
    }
    world.record("alone");
    let last: Vec<_> = world.cache.finish().iter().map(text).collect();
    assert_eq!(last, ["patch 4"]);
}

#[tokio::test(start_paused = true)]
async fn evicted_series_sends_its_count() {
    let mut world = World::with_capacity(1);
    for _ in 0..3 {
        world.record("web");
    }
    let (web, other) = (world.occurrence("web", "Greeted"), world.occurrence("other", "Greeted"));
    let evicted = world.cache.make_room_for(&web);
    assert!(evicted.is_none(), "a series that goes on needs no room");
    let evicted = world.cache.make_room_for(&other).unwrap();
    assert_eq!(text(&evicted), "patch 3");
    assert_eq!(world.record("other"), "create");
}

#[tokio::test(start_paused = true)]
async fn message_and_version_do_not_start_a_series() {
    let mut world = World::new();
    world.record("web");
    let mut occurrence = world.occurrence("web", "Greeted");
    occurrence.message = "other".into();
    occurrence.involved.resource_version = Some("7".into());
    let Step::Send(post) = world.cache.record(occurrence) else { panic!("no request") };
    assert_eq!(text(&post), "patch 2");
    assert_eq!(post.event().note.as_deref(), Some("hello"));
}

#[tokio::test(start_paused = true)]
async fn reason_action_type_and_objects_start_series_of_their_own() {
    let mut world = World::new();
    assert_eq!(world.record("web"), "create");
    let plain = world.occurrence("web", "Greeted");
    let other = |change: fn(&mut Occurrence)| {
        let mut occurrence = plain.clone();
        change(&mut occurrence);
        occurrence
    };
    for occurrence in [
        other(|it| it.reason = "Left".into()),
        other(|it| it.action = Some("Greeting".into())),
        other(|it| it.event_type = EventType::Warning),
        other(|it| it.related = Some(ObjectReference::default())),
        other(|it| it.involved.field_path = Some("spec".into())),
        other(|it| it.involved.uid = Some("2".into())),
    ] {
        assert_eq!(world.record_this(occurrence.clone()), "create");
        assert_eq!(world.record_this(occurrence), "patch 2");
    }
}

#[tokio::test(start_paused = true)]
async fn creates_of_one_object_are_limited() {
    let mut world = World::new();
    let created = (0..100).filter(|n| {
        let occurrence = world.occurrence("web", &format!("Reason{n}"));
        world.record_this(occurrence) == "create"
    });
    assert_eq!(created.count(), 25);
    assert_eq!(world.record("other"), "create");
}

#[tokio::test(start_paused = true)]
async fn event_has_what_the_api_requires() {
    let mut world = World::new();
    let mut occurrence = world.occurrence("web", "Greeted");
    occurrence.message = "ä".repeat(1000);
    let Step::Send(post) = world.cache.record(occurrence) else { panic!("no request") };
    let event = post.event();
    assert_eq!(event.note.as_ref().unwrap().len(), 1024);
    assert_eq!(event.action.as_deref(), Some("Greeted"));
    assert_eq!(event.reporting_controller.as_deref(), Some("shop"));
    assert_eq!(event.reporting_instance.as_deref(), Some("shop-0"));
    assert_eq!(event.event_time, Some(MicroTime(world.wall)));
    assert_eq!(event.metadata.namespace.as_deref(), Some("ns"));
}

#[test]
fn text_is_cut_between_characters() {
    assert_eq!(boundary_before("aä", 2), 1);
    assert_eq!(boundary_before("aä", 3), 3);
    assert_eq!(boundary_before("", 3), 0);
}
