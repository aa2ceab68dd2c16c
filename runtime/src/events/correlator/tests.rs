use super::*;
use crate::events::EventType;

fn occurrence(object: &str, message: &str) -> Occurrence {
    Occurrence {
        involved: ObjectReference {
            kind: Some("ReplicaSet".into()),
            namespace: Some("ns".into()),
            name: Some(object.into()),
            uid: Some(format!("uid of {object}")),
            ..ObjectReference::default()
        },
        event_type: EventType::Normal,
        reason: "SuccessfulCreate".into(),
        message: message.into(),
        related: None,
        action: None,
        annotations: std::collections::BTreeMap::new(),
        recorded: Instant::now(),
        at: Timestamp::UNIX_EPOCH,
    }
}

struct World {
    correlator: Correlator,
    now: Instant,
    wall: Timestamp,
}

impl World {
    fn new() -> Self {
        Self {
            correlator: Correlator::new("test-controller".into()),
            now: Instant::now(),
            wall: Timestamp::from_second(1_700_000_000).unwrap(),
        }
    }

    fn later(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.wall += Duration::from_secs(seconds);
    }

    fn about(&mut self, object: &str, message: &str) -> Option<Post<Event>> {
        let occurrence =
            Occurrence { recorded: self.now, at: self.wall, ..occurrence(object, message) };
        self.correlator.correlate(occurrence)
    }

    fn create(&mut self, message: &str) -> Event {
        match self.about("web", message) {
            Some(Post::Create(event)) => *event,
            other => panic!("{message}: {other:?}"),
        }
    }

    fn update(&mut self, message: &str) -> Event {
        match self.about("web", message) {
            Some(Post::Update(event)) => *event,
            other => panic!("{message}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn first_event_has_source_reason_and_times() {
    let mut world = World::new();
    let event = world.create("Created pod: web-1");
    assert_eq!(event.metadata.name.as_deref(), Some("web.17979cfe362a0000"));
    assert_eq!(event.metadata.namespace.as_deref(), Some("ns"));
    assert_eq!(event.type_.as_deref(), Some("Normal"));
    assert_eq!(event.count, Some(1));
    assert_eq!(event.first_timestamp, Some(Time(world.wall)));
    assert_eq!(event.reporting_component.as_deref(), Some("test-controller"));
    assert_eq!(event.source.unwrap().component.as_deref(), Some("test-controller"));
}

#[tokio::test(start_paused = true)]
async fn equal_event_raises_the_count_of_the_first() {
    let mut world = World::new();
    let first = world.create("same");
    world.later(7);
    let again = world.update("same");
    assert_eq!(again.metadata.name, first.metadata.name);
    assert_eq!(again.count, Some(2));
    assert_eq!(again.first_timestamp, first.first_timestamp);
    assert_eq!(again.last_timestamp, Some(Time(world.wall)));
    assert_eq!(world.update("same").count, Some(3));
}

#[tokio::test(start_paused = true)]
async fn tenth_different_message_is_combined_and_known_messages_are_not() {
    let mut world = World::new();
    for n in 1..10 {
        assert_eq!(world.create(&format!("pod {n}")).message.unwrap(), format!("pod {n}"));
    }
    let combined = world.create("pod 10");
    assert_eq!(combined.message.as_deref(), Some("(combined from similar events): pod 10"));
    let again = world.update("pod 11");
    assert_eq!(again.message.as_deref(), Some("(combined from similar events): pod 11"));
    assert_eq!(again.metadata.name, combined.metadata.name);
    assert_eq!(again.count, Some(2));
    assert_eq!(world.update("pod 3").message.as_deref(), Some("pod 3"));
}

#[tokio::test(start_paused = true)]
async fn events_ten_minutes_apart_are_not_combined() {
    let mut world = World::new();
    for n in 1..=10 {
        world.create(&format!("pod {n}"));
    }
    world.later(600);
    assert_eq!(world.update("pod 11").count, Some(2), "not longer than ten minutes");
    world.later(601);
    assert_eq!(world.create("pod 12").message.as_deref(), Some("pod 12"));
}

#[tokio::test(start_paused = true)]
async fn thousand_pods_cause_twenty_five_requests_and_one_more_after_five_minutes() {
    let mut world = World::new();
    let posts = (0..1000).filter_map(|n| world.about("web", &format!("pod {n}"))).count();
    assert_eq!(posts, 25);
    assert!(world.about("db", "another object has its own").is_some());
    world.later(299);
    assert!(world.about("web", "pod 1000").is_none());
    world.later(1);
    let event = world.update("pod 1001");
    assert_eq!(event.count, Some(993), "dropped events are counted: all but nine");
    assert!(world.about("web", "pod 1002").is_none());
}

#[tokio::test(start_paused = true)]
async fn names_differ_if_the_clock_stands_still() {
    let mut world = World::new();
    let names: HashSet<_> = (1..10).map(|n| world.create(&n.to_string()).metadata.name).collect();
    assert_eq!(names.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn cache_is_bounded() {
    let mut world = World::new();
    for n in 0..10_000 {
        world.about(&format!("object-{n}"), "hello");
    }
    assert!(world.about("object-0", "hello").is_some_and(|post| matches!(post, Post::Create(_))));
}
