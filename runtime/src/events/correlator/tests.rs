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

    /// Returns the request of an event: `create COUNT: MESSAGE`, `update COUNT: MESSAGE`, `none`.
    fn request(&mut self, occurrence: &Occurrence) -> String {
        let occurrence = Occurrence { recorded: self.now, at: self.wall, ..occurrence.clone() };
        let shown = |event: &Event| {
            format!("{}: {}", event.count.unwrap(), event.message.as_deref().unwrap())
        };
        match self.correlator.correlate(occurrence) {
            Some(Post::Create(event)) => format!("create {}", shown(&event)),
            Some(Post::Update(event)) => format!("update {}", shown(&event)),
            None => "none".to_owned(),
        }
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

/// Returns an event about `object` with this reason and message.
fn event(object: &str, reason: &str, message: &str) -> Occurrence {
    Occurrence { reason: reason.into(), ..occurrence(object, message) }
}

fn in_container(name: &str, mut occurrence: Occurrence) -> Occurrence {
    occurrence.involved.field_path = Some(format!("spec.containers{{{name}}}"));
    occurrence
}

/// A name, the events before, the event, the seconds between two events, and its request.
type Case<'a> = (&'static str, Vec<Occurrence>, &'a Occurrence, u64, &'a str);

/// Checks cases of upstream's `TestEventCorrelator`.
fn check<'a>(cases: impl IntoIterator<Item = Case<'a>>) {
    for (case, before, new, seconds, expected) in cases {
        let mut world = World::new();
        for occurrence in &before {
            world.request(occurrence);
            world.later(seconds);
        }
        assert_eq!(world.request(new), expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_events_are_counted_until_they_are_spam() {
    let first = event("my-pod", "first", "i am first");
    let duplicate = event("my-pod", "duplicate", "me again");
    let unique = event("my-pod", "unique", "snowflake");
    let same = |count| vec![duplicate.clone(); count];
    let unrelated = |n| event(&format!("pod-{n}"), &format!("reason-{n}"), &format!("message-{n}"));
    let counted = "the-same-event-should-just-count-even-if-more-than-aggregate";
    check([
        ("create-a-single-event", vec![], &first, 5, "create 1: i am first"),
        ("the-same-event-should-just-count", same(1), &duplicate, 5, "update 2: me again"),
        (counted, same(SIMILAR), &duplicate, 30, "update 11: me again"),
        ("the-same-event-is-spam-if-happens-too-frequently", same(26), &duplicate, 1, "none"),
        (
            "create-many-unique-events",
            (0..30).map(unrelated).collect(),
            &unique,
            5,
            "create 1: snowflake",
        ),
    ]);
}

#[tokio::test(start_paused = true)]
async fn similar_events_of_one_container_are_combined() {
    let similar = in_container("container1", event("my-pod", "similar", "similar message"));
    let elsewhere = in_container("container2", similar.clone());
    let others = |count| {
        let text = |n| format!("similar message-{n}-similar message");
        (0..count).map(|n| Occurrence { message: text(n), ..similar.clone() }).collect::<Vec<_>>()
    };
    let plain = "create 1: similar message";
    let created = "create 1: (combined from similar events): similar message";
    let counted = "update 2: (combined from similar events): similar message";
    check([
        ("similar-events-should-aggregate-event", others(SIMILAR - 1), &similar, 5, created),
        (
            "similar-events-many-times-should-count-the-aggregate",
            others(SIMILAR),
            &similar,
            5,
            counted,
        ),
        ("events-from-different-containers-do-not-aggregate", vec![elsewhere], &similar, 5, plain),
        (
            "similar-events-whose-interval-is-greater-than-aggregate-interval-do-not-aggregate",
            others(SIMILAR - 1),
            &similar,
            601,
            plain,
        ),
    ]);
}

/// The order of upstream's `TestEventf`: two objects of one name, whose events alternate.
#[tokio::test(start_paused = true)]
async fn objects_of_one_name_have_events_of_their_own() {
    let mut world = World::new();
    let of = |uid: &str, field: &str, reason: &str, message: &str| {
        let mut occurrence = event("foo", reason, message);
        occurrence.involved.uid = Some(uid.into());
        occurrence.involved.field_path = (!field.is_empty()).then(|| field.to_owned());
        occurrence
    };
    let (verbose, other) = ("some verbose message: 1", "some other verbose message: 1");
    let started = of("bar", "spec.containers[2]", "Started", verbose);
    let started_again = of("differentUid", "spec.containers[3]", "Started", verbose);
    let stopped = of("differentUid", "spec.containers[3]", "Stopped", verbose);
    for (occurrence, expected) in [
        (&started, format!("create 1: {verbose}")),
        (&of("bar", "", "Killed", other), format!("create 1: {other}")),
        (&started, format!("update 2: {verbose}")),
        (&started_again, format!("create 1: {verbose}")),
        (&started, format!("update 3: {verbose}")),
        (&stopped, format!("create 1: {verbose}")),
        (&stopped, format!("update 2: {verbose}")),
    ] {
        world.later(1);
        assert_eq!(world.request(occurrence), expected, "{occurrence:?}");
    }
}

/// The first case of upstream's `TestEventSpamFilter`; the others change the filter's key.
#[tokio::test(start_paused = true)]
async fn events_of_other_reasons_are_spam_too() {
    let mut world = World::new();
    let requests = (0..26).map(|n| world.request(&event("my-pod", &format!("reason-{n}"), "hi")));
    let requests: Vec<_> = requests.collect();
    assert!(requests[..25].iter().all(|request| request == "create 1: hi"));
    assert_eq!(requests[25], "none");
}
