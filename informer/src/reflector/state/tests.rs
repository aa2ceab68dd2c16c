use super::*;
use crate::list_watch::BoxError;

const MINUTE: Duration = Duration::from_secs(60);

fn state(watch_list: bool) -> State {
    let config = StateConfig { page_size: 500, watch_list, backoff: BackoffConfig::default() };
    State::new(config, 1)
}

fn following(version: &str) -> State {
    let mut state = state(true);
    state.gathered(version.into());
    state
}

fn list_refused(code: u16) -> ListError {
    ListError::Refused { target: "pods".into(), refusal: Refusal::new(code, "", "") }
}

fn refused(code: u16) -> WatchError {
    WatchError::Refused { target: "pods".into(), refusal: Refusal::new(code, "", "") }
}

fn ended(code: u16) -> WatchError {
    WatchError::Ended { target: "pods".into(), refusal: Refusal::new(code, "", "") }
}

fn torn() -> WatchError {
    WatchError::Torn { target: "pods".into(), source: BoxError::from("reset") }
}

fn corrupt() -> WatchError {
    WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() }
}

/// What is asked, in short: verb and version.
fn asked(state: &mut State) -> String {
    let version = |version: Option<ResourceVersion>| {
        version.map_or_else(|| "newest".to_owned(), |version| version.to_string())
    };
    match state.ask() {
        Ask::List(request) => match request.limit {
            Some(limit) => format!("list {} by {limit}", version(request.resource_version)),
            None => format!("list {}", version(request.resource_version)),
        },
        Ask::WatchList(request) => format!("watch-list {}", version(request.resource_version)),
        Ask::Watch(request) => format!("watch {}", version(request.resource_version)),
    }
}

#[test]
fn first_state_is_the_newest_and_what_follows_is_watched() {
    let mut state = state(true);
    assert_eq!(asked(&mut state), "watch-list newest");
    state.gathered("7".into());
    assert_eq!(asked(&mut state), "watch 7");
    assert!(
        state.followed("9".into()) && !state.followed("9".into()) && !state.followed("8".into())
    );
    assert_eq!(asked(&mut state), "watch 8", "what was told again is to be heard to its end");
    assert!(!state.followed("9".into()));
    assert_eq!(asked(&mut state), "watch 9");
}

#[test]
fn version_that_is_no_number_does_not_take_the_place_of_one() {
    let mut state = following("7");
    for garbage in ["", "0", "abc"] {
        assert!(!state.followed(garbage.into()));
        assert_eq!(asked(&mut state), "watch 7");
    }
    let mut opaque = following("abc");
    assert!(opaque.followed("abd".into()) && !opaque.followed("abd".into()));
}

#[test]
fn list_that_the_server_does_not_understand_is_asked_for_without_a_version() {
    let mut state = state(false);
    state.gathered("abc".into());
    state.watch_failed(&refused(400), Duration::ZERO, false);
    assert_eq!(asked(&mut state), "list abc by 500");
    assert_eq!(state.list_failed(&list_refused(400), false), Duration::ZERO);
    assert_eq!(asked(&mut state), "list newest by 500");
    assert!(!state.list_failed(&list_refused(400), false).is_zero(), "no endless loop");
}

#[test]
fn watch_lasts_five_to_ten_minutes() {
    let mut state = following("1");
    for _ in 0..100 {
        let Ask::Watch(request) = state.ask() else { panic!() };
        assert!((5 * MINUTE..10 * MINUTE).contains(&request.timeout));
    }
}

#[test]
fn watch_that_was_one_is_opened_again_at_once_and_a_short_empty_one_later() {
    for failed in [false, true] {
        let mut state = following("7");
        let mut end = |lived, progress| {
            if failed {
                state.watch_failed(&torn(), lived, progress)
            } else {
                state.watch_ended(lived, progress)
            }
        };
        assert_eq!(end(Duration::from_secs(1), false), Duration::ZERO);
        assert_eq!(end(Duration::ZERO, true), Duration::ZERO);
        assert!(end(Duration::from_millis(999), false) >= Duration::from_millis(800));
        assert_eq!(asked(&mut state), "watch 7", "no new list");
    }
}

#[test]
fn expired_version_means_a_new_state_not_older_and_then_the_newest() {
    for error in [refused(410), ended(410)] {
        let mut state = following("7");
        assert!(!state.watch_failed(&error, MINUTE, true).is_zero());
        assert_eq!(asked(&mut state), "watch-list 7");
        assert_eq!(state.watch_list_failed(&refused(410)), Duration::ZERO);
        assert_eq!(asked(&mut state), "watch-list newest");
        state.gathered("20".into());
        assert_eq!(asked(&mut state), "watch 20");
    }
}

#[test]
fn server_that_lags_behind_is_asked_for_its_newest() {
    let mut state = following("7");
    state.watch_failed(&ended(410), MINUTE, true);
    let mut refusal = Refusal::new(504, "Timeout", "");
    refusal.causes.push("ResourceVersionTooLarge".into());
    let error = WatchError::Refused { target: "pods".into(), refusal };
    assert_eq!(state.watch_list_failed(&error), Duration::ZERO);
    assert_eq!(asked(&mut state), "watch-list newest");
}

#[test]
fn place_in_a_list_that_expired_means_one_list_in_one_piece() {
    let mut state = state(false);
    assert_eq!(asked(&mut state), "list newest by 500");
    assert_eq!(state.list_failed(&list_refused(410), true), Duration::ZERO);
    assert_eq!(asked(&mut state), "list newest");
    assert!(!state.list_failed(&list_refused(410), false).is_zero(), "no endless loop");
    assert_eq!(asked(&mut state), "list newest by 500");
}

#[test]
fn server_that_does_not_know_the_question_is_asked_again_at_the_next_whole_state() {
    for code in [400, 422] {
        let mut state = state(true);
        assert_eq!(state.watch_list_failed(&refused(code)), Duration::ZERO);
        assert_eq!(asked(&mut state), "list newest by 500");
        state.gathered("7".into());
        state.watch_failed(&ended(410), MINUTE, true);
        assert_eq!(asked(&mut state), "watch-list 7");
    }
}

#[test]
fn watch_that_was_waited_for_in_vain_is_tried_again_ever_later_but_for_ever() {
    let mut state = state(true);
    let mut lists_between = Vec::new();
    for _ in 0..9 {
        let incomplete = WatchError::Incomplete { target: "pods".into() };
        assert_eq!(state.watch_list_failed(&incomplete), Duration::ZERO);
        let mut lists = 0;
        while asked(&mut state).starts_with("list") {
            // Also when a list fails: waiting in vain again costs half a minute.
            assert!(!state.list_failed(&list_refused(500), false).is_zero());
            assert!(asked(&mut state).starts_with("list"));
            state.gathered("7".into());
            state.watch_failed(&ended(410), MINUTE, true);
            lists += 1;
        }
        lists_between.push(lists);
    }
    assert_eq!(lists_between, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    state.gathered("7".into());
    state.watch_failed(&ended(410), MINUTE, true);
    state.watch_list_failed(&WatchError::Incomplete { target: "pods".into() });
    state.gathered("7".into());
    state.watch_failed(&ended(410), MINUTE, true);
    assert_eq!(asked(&mut state), "watch-list 7", "one that came through ends the distrust");
}

#[test]
fn who_wants_no_watch_for_a_whole_state_gets_none() {
    let mut state = state(false);
    for _ in 0..100 {
        assert_eq!(
            asked(&mut state),
            if state.last.is_some() { "list 7 by 500" } else { "list newest by 500" }
        );
        state.gathered("7".into());
        state.watch_failed(&ended(410), MINUTE, true);
    }
}

#[test]
fn server_that_asks_for_time_is_not_listed_before_that() {
    let refusal = Refusal::new(503, "", "").with_retry_after(Duration::from_secs(9));
    let error = WatchError::Refused { target: "pods".into(), refusal };
    let mut state = state(true);
    assert!(state.watch_list_failed(&error) >= Duration::from_secs(9));
    assert_eq!(asked(&mut state), "list newest by 500");
}

#[test]
fn answer_older_than_asked_for_means_asking_for_the_newest_and_then_believing_it() {
    let mut state = following("120");
    state.watch_failed(&ended(410), MINUTE, true);
    assert!(state.is_back(&"119".into()) && !state.is_back(&"120".into()));
    assert!(!state.is_back(&"abc".into()), "nobody can tell");
    assert_eq!(state.whole_is_too_old(), Duration::ZERO);
    assert_eq!(asked(&mut state), "watch-list newest");
    state.gathered("110".into());
    assert_eq!(asked(&mut state), "watch 110");
    assert!(state.followed("111".into()));
}

#[test]
fn pages_that_make_no_sense_are_asked_for_in_one_piece() {
    let corrupt = ListError::Corrupt { target: "pods".into(), error: "circle".into() };
    let mut state = state(false);
    assert!(!state.list_failed(&corrupt, true).is_zero());
    assert_eq!(asked(&mut state), "list newest");
    assert!(!state.list_failed(&corrupt, false).is_zero());
    assert_eq!(asked(&mut state), "list newest by 500");
}

#[test]
fn other_failures_are_listed_around_once() {
    for error in [refused(403), refused(500), torn(), corrupt()] {
        let mut state = state(true);
        assert_eq!(state.watch_list_failed(&error), Duration::ZERO);
        assert_eq!(asked(&mut state), "list newest by 500");
        assert!(!state.list_failed(&list_refused(403), false).is_zero());
        assert_eq!(asked(&mut state), "watch-list newest");
    }
}

#[test]
fn server_that_is_busy_or_away_is_not_listed() {
    let unreachable =
        WatchError::Unreachable { target: "pods".into(), source: BoxError::from("refused") };
    for error in [refused(429), unreachable] {
        let mut state = state(true);
        assert!(!state.watch_list_failed(&error).is_zero());
        assert_eq!(asked(&mut state), "watch-list newest");
    }
}

#[test]
fn refused_watch_keeps_its_place_and_backs_off() {
    for code in [401, 403, 404, 429, 500, 503] {
        let mut state = following("7");
        let mut least = Duration::from_millis(800);
        for _ in 0..REFUSED - 1 {
            let pause = state.watch_failed(&refused(code), Duration::ZERO, false);
            assert!((least..2 * least).contains(&pause), "{pause:?} for {least:?}");
            least *= 2;
            assert_eq!(asked(&mut state), "watch 7", "{code}");
        }
    }
}

#[test]
fn whoever_may_list_but_not_watch_gets_a_late_copy() {
    let mut state = following("7");
    for _ in 0..REFUSED {
        state.watch_failed(&refused(403), Duration::ZERO, false);
    }
    for version in ["7", "8", "9"] {
        assert_eq!(asked(&mut state), format!("watch-list {version}"));
        assert_eq!(state.watch_list_failed(&refused(403)), Duration::ZERO);
        assert_eq!(asked(&mut state), format!("list {version} by 500"));
        let next: u32 = version.parse::<u32>().unwrap() + 1;
        state.gathered(next.to_string().as_str().into());
        assert_eq!(asked(&mut state), format!("watch {next}"));
        assert!(state.watch_failed(&refused(403), Duration::ZERO, false) > MINUTE / 4);
    }
    assert_eq!(asked(&mut state), "watch-list 10");
    state.watch_list_failed(&refused(403));
    assert!(!state.list_failed(&list_refused(403), false).is_zero());
    assert_eq!(asked(&mut state), "watch 10", "what is known stays known");
    state.watch_ended(MINUTE, false);
    state.watch_failed(&refused(403), Duration::ZERO, false);
    assert_eq!(asked(&mut state), "watch 10", "a watch that was open starts the count over");
}

#[test]
fn nobody_lists_a_server_that_is_away_or_does_not_know_who_asks() {
    let away = || WatchError::Unreachable { target: "pods".into(), source: "refused".into() };
    for error in [away(), refused(401), refused(429)] {
        let mut state = following("7");
        for _ in 0..20 {
            assert!(!state.watch_failed(&error, Duration::ZERO, false).is_zero());
            assert_eq!(asked(&mut state), "watch 7");
        }
    }
}

#[test]
fn author_whose_code_panics_at_one_place_is_led_around_it() {
    let mut state = following("7");
    for _ in 0..2 {
        assert!(!state.panicked().is_zero());
        assert_eq!(asked(&mut state), "watch 7");
    }
    state.panicked();
    assert_eq!(asked(&mut state), "watch-list 7");
    assert!(!state.panicked().is_zero());
    assert_eq!(asked(&mut state), "watch 7");
}

#[test]
fn server_that_asks_for_time_gets_it() {
    let refusal = Refusal::new(429, "", "").with_retry_after(Duration::from_secs(9));
    let error = WatchError::Refused { target: "pods".into(), refusal };
    let pause = following("7").watch_failed(&error, Duration::ZERO, false);
    assert!(pause >= Duration::from_secs(9), "{pause:?}");
}

#[test]
fn what_cannot_be_read_three_times_is_gone_around() {
    for error in [corrupt(), ended(500)] {
        let mut state = following("7");
        for _ in 0..2 {
            state.watch_failed(&error, Duration::ZERO, false);
            assert_eq!(asked(&mut state), "watch 7");
        }
        state.followed("8".into());
        for _ in 0..2 {
            state.watch_failed(&error, Duration::ZERO, false);
            assert_eq!(asked(&mut state), "watch 8");
        }
        assert!(!state.watch_failed(&error, Duration::ZERO, false).is_zero());
        assert_eq!(asked(&mut state), "watch-list 8");
    }
}

#[test]
fn only_a_long_healthy_watch_starts_the_back_off_over() {
    let mut state = following("7");
    for _ in 0..9 {
        state.watch_failed(&refused(500), Duration::ZERO, false);
    }
    assert!(state.watch_failed(&ended(500), MINUTE, true) >= Duration::from_secs(30));
    assert!(state.watch_failed(&ended(500), 2 * MINUTE, true) < Duration::from_secs(2));
}
