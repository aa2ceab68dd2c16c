//! The decisions of the reflector, one by one: the next request, and the wait before it.

use std::time::Duration;

use super::failures::MAX_REFUSED;
use super::*;
use crate::list_watch::{ApiError, BoxError, ListError, WatchError};

const MINUTE: Duration = Duration::from_secs(60);

fn state(watch_list: bool) -> State {
    let config = StateConfig { watch_list, ..StateConfig::default() };
    State::new(config, Some(1))
}

fn following(version: &str) -> State {
    let mut state = state(true);
    state.gathered(version.into());
    state
}

fn list_refused(code: u16) -> ListError {
    ListError::Refused { target: "pods".into(), error: ApiError::new(code, "", "") }
}

fn refused(code: u16) -> WatchError {
    WatchError::Refused { target: "pods".into(), error: ApiError::new(code, "", "") }
}

fn ended(code: u16) -> WatchError {
    WatchError::Ended { target: "pods".into(), error: ApiError::new(code, "", "") }
}

fn torn() -> WatchError {
    WatchError::Torn { target: "pods".into(), source: BoxError::from("reset") }
}

fn corrupt() -> WatchError {
    WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() }
}

/// Returns the next request as text: verb and version.
fn next_request(state: &mut State) -> String {
    let version = |version: Option<ResourceVersion>| {
        version.map_or_else(|| "newest".to_owned(), |version| version.to_string())
    };
    match state.next_request() {
        NextRequest::List(request) => match request.limit {
            Some(limit) => format!("list {} by {limit}", version(request.resource_version)),
            None => format!("list {}", version(request.resource_version)),
        },
        NextRequest::WatchList(request) => {
            format!("watch-list {}", version(request.resource_version))
        }
        NextRequest::Watch(request) => format!("watch {}", version(request.resource_version)),
        NextRequest::Probe(request) => format!("probe {}", version(request.resource_version)),
    }
}

#[test]
fn initial_list_is_the_newest_and_watch_follows_it() {
    let mut state = state(true);
    assert_eq!(next_request(&mut state), "watch-list newest");
    state.gathered("7".into());
    assert_eq!(next_request(&mut state), "watch 7");
    assert!(
        state.followed("9".into()) && !state.followed("9".into()) && !state.followed("8".into())
    );
    assert_eq!(next_request(&mut state), "watch 8", "a replay is followed to its end");
    assert!(!state.followed("9".into()));
    assert_eq!(next_request(&mut state), "watch 9");
}

#[test]
fn non_numeric_version_does_not_replace_a_number() {
    let mut state = following("7");
    for garbage in ["", "0", "abc"] {
        assert!(!state.followed(garbage.into()));
        assert_eq!(next_request(&mut state), "watch 7");
    }
    let mut opaque = following("abc");
    assert!(opaque.followed("abd".into()) && !opaque.followed("abd".into()));
}

#[test]
fn bad_request_list_is_retried_without_version() {
    let mut state = state(false);
    state.gathered("abc".into());
    state.watch_failed(&refused(400), Duration::ZERO, false);
    assert_eq!(next_request(&mut state), "list abc by 500");
    assert_eq!(state.list_failed(&list_refused(400), false), Duration::ZERO);
    assert_eq!(next_request(&mut state), "list newest by 500");
    assert!(!state.list_failed(&list_refused(400), false).is_zero(), "endless loop");
}

#[test]
fn watch_timeout_is_five_to_ten_minutes() {
    let mut state = following("1");
    for _ in 0..100 {
        let NextRequest::Watch(request) = state.next_request() else { panic!() };
        assert!((5 * MINUTE..10 * MINUTE).contains(&request.timeout));
    }
}

#[test]
fn long_watch_is_reopened_at_once_and_short_empty_watch_after_backoff() {
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
        assert_eq!(next_request(&mut state), "watch 7", "no relist");
    }
}

#[test]
fn expired_version_causes_relist_not_older_then_newest() {
    for error in [refused(410), ended(410)] {
        let mut state = following("7");
        assert!(!state.watch_failed(&error, MINUTE, true).is_zero());
        assert_eq!(next_request(&mut state), "watch-list 7");
        assert_eq!(state.watch_list_failed(&refused(410)), Duration::ZERO);
        assert_eq!(next_request(&mut state), "watch-list newest");
        state.gathered("20".into());
        assert_eq!(next_request(&mut state), "watch 20");
    }
}

#[test]
fn newest_state_is_requested_from_lagging_server() {
    let mut state = following("7");
    state.watch_failed(&ended(410), MINUTE, true);
    let mut error = ApiError::new(504, "Timeout", "");
    error.causes.push("ResourceVersionTooLarge".into());
    let error = WatchError::Refused { target: "pods".into(), error };
    assert_eq!(state.watch_list_failed(&error), Duration::ZERO);
    assert_eq!(next_request(&mut state), "watch-list newest");
}

#[test]
fn expired_continue_token_causes_one_unpaged_list() {
    let mut state = state(false);
    assert_eq!(next_request(&mut state), "list newest by 500");
    assert_eq!(state.list_failed(&list_refused(410), true), Duration::ZERO);
    assert_eq!(next_request(&mut state), "list newest");
    assert!(!state.list_failed(&list_refused(410), false).is_zero(), "endless loop");
    assert_eq!(next_request(&mut state), "list newest by 500");
}

#[test]
fn unsupported_watch_list_is_retried_at_the_next_sync() {
    for code in [400, 422] {
        let mut state = state(true);
        assert_eq!(state.watch_list_failed(&refused(code)), Duration::ZERO);
        assert_eq!(next_request(&mut state), "list newest by 500");
        state.gathered("7".into());
        state.watch_failed(&ended(410), MINUTE, true);
        assert_eq!(next_request(&mut state), "watch-list 7");
    }
}

#[test]
fn watch_list_retries_back_off_and_never_stop() {
    let mut state = state(true);
    let mut lists_between = Vec::new();
    for _ in 0..9 {
        let incomplete = WatchError::Incomplete { target: "pods".into() };
        assert_eq!(state.watch_list_failed(&incomplete), Duration::ZERO);
        let mut lists = 0;
        while next_request(&mut state).starts_with("list") {
            // Also when a list fails: another WatchList that stalls would cost 30 s.
            assert!(!state.list_failed(&list_refused(500), false).is_zero());
            assert!(next_request(&mut state).starts_with("list"));
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
    assert_eq!(next_request(&mut state), "watch-list 7", "a successful WatchList resets the count");
}

#[test]
fn disabled_watch_list_is_never_requested() {
    let mut state = state(false);
    for _ in 0..100 {
        assert_eq!(
            next_request(&mut state),
            if state.last.is_some() { "list 7 by 500" } else { "list newest by 500" }
        );
        state.gathered("7".into());
        state.watch_failed(&ended(410), MINUTE, true);
    }
}

#[test]
fn retry_after_delays_the_list_fallback() {
    let error = ApiError::new(503, "", "").with_retry_after(Duration::from_secs(9));
    let error = WatchError::Refused { target: "pods".into(), error };
    let mut state = state(true);
    assert!(state.watch_list_failed(&error) >= Duration::from_secs(9));
    assert_eq!(next_request(&mut state), "list newest by 500");
}

#[test]
fn answer_older_than_requested_is_followed_by_newest_which_is_accepted() {
    let mut state = following("120");
    state.watch_failed(&ended(410), MINUTE, true);
    assert!(state.is_back(&"119".into()) && !state.is_back(&"120".into()));
    assert!(!state.is_back(&"abc".into()), "versions that are not numbers have no order");
    assert_eq!(state.full_state_too_old(), Duration::ZERO);
    assert_eq!(next_request(&mut state), "watch-list newest");
    state.gathered("110".into());
    assert_eq!(next_request(&mut state), "watch 110");
    assert!(state.followed("111".into()));
}

#[test]
fn inconsistent_pages_cause_unpaged_list() {
    let corrupt = ListError::Corrupt { target: "pods".into(), error: "circle".into() };
    let mut state = state(false);
    assert!(!state.list_failed(&corrupt, true).is_zero());
    assert_eq!(next_request(&mut state), "list newest");
    assert!(!state.list_failed(&corrupt, false).is_zero());
    assert_eq!(next_request(&mut state), "list newest by 500");
}

#[test]
fn other_watch_list_failures_fall_back_to_one_list() {
    for error in [refused(403), refused(500), torn(), corrupt()] {
        let mut state = state(true);
        assert_eq!(state.watch_list_failed(&error), Duration::ZERO);
        assert_eq!(next_request(&mut state), "list newest by 500");
        assert!(!state.list_failed(&list_refused(403), false).is_zero());
        assert_eq!(next_request(&mut state), "watch-list newest");
    }
}

#[test]
fn busy_or_unreachable_server_is_not_listed() {
    let unreachable =
        WatchError::Unreachable { target: "pods".into(), source: BoxError::from("refused") };
    for error in [refused(429), unreachable] {
        let mut state = state(true);
        assert!(!state.watch_list_failed(&error).is_zero());
        assert_eq!(next_request(&mut state), "watch-list newest");
    }
}

#[test]
fn refused_watch_keeps_its_version_and_backs_off() {
    for code in [401, 403, 404, 429, 500, 503] {
        let mut state = following("7");
        let mut least = Duration::from_millis(800);
        for _ in 0..MAX_REFUSED - 1 {
            let pause = state.watch_failed(&refused(code), Duration::ZERO, false);
            assert!((least..2 * least).contains(&pause), "{pause:?} for {least:?}");
            least *= 2;
            assert_eq!(next_request(&mut state), "watch 7", "{code}");
        }
    }
}

#[test]
fn forbidden_watch_is_replaced_by_periodic_lists() {
    let mut state = following("7");
    for _ in 0..MAX_REFUSED {
        state.watch_failed(&refused(403), Duration::ZERO, false);
    }
    for version in ["7", "8", "9"] {
        assert_eq!(next_request(&mut state), format!("watch-list {version}"));
        assert_eq!(state.watch_list_failed(&refused(403)), Duration::ZERO);
        assert_eq!(next_request(&mut state), format!("list {version} by 500"));
        let next: u32 = version.parse::<u32>().unwrap() + 1;
        state.gathered(next.to_string().as_str().into());
        assert_eq!(next_request(&mut state), format!("watch {next}"));
        assert!(state.watch_failed(&refused(403), Duration::ZERO, false) > MINUTE / 4);
    }
    assert_eq!(next_request(&mut state), "watch-list 10");
    state.watch_list_failed(&refused(403));
    assert!(!state.list_failed(&list_refused(403), false).is_zero());
    assert_eq!(next_request(&mut state), "watch 10", "the version stays valid");
    state.watch_ended(MINUTE, false);
    state.watch_failed(&refused(403), Duration::ZERO, false);
    assert_eq!(next_request(&mut state), "watch 10", "an open watch resets the count of refusals");
}

#[test]
fn unreachable_or_unauthorized_watch_causes_no_relist() {
    let away = || WatchError::Unreachable { target: "pods".into(), source: "refused".into() };
    for error in [away(), refused(401), refused(429)] {
        let mut state = following("7");
        for _ in 0..20 {
            assert!(!state.watch_failed(&error, Duration::ZERO, false).is_zero());
            assert_eq!(next_request(&mut state), "watch 7");
        }
    }
}

#[test]
fn unanswered_watch_is_replaced_by_lists_and_a_silent_one_is_not() {
    let silent = WatchError::Silent { target: "pods".into(), timeout: MINUTE };
    let mut state = following("7");
    for _ in 0..MAX_REFUSED {
        assert_eq!(next_request(&mut state), "watch 7");
        assert!(!state.watch_failed(&silent, Duration::ZERO, false).is_zero());
    }
    assert_eq!(next_request(&mut state), "watch-list 7");
    state.watch_list_failed(&silent);
    assert_eq!(next_request(&mut state), "list 7 by 500");
    state.gathered("9".into());
    assert!(!state.watch_failed(&silent, Duration::ZERO, false).is_zero());
    assert_eq!(next_request(&mut state), "watch-list 9", "it is still not answered");

    let mut state = following("7");
    for _ in 0..20 {
        assert!(state.watch_failed(&silent, 3 * MINUTE, false).is_zero());
        assert_eq!(next_request(&mut state), "watch 7", "an opened watch that fell silent");
    }
}

#[test]
fn silence_of_consecutive_watches_adds_up() {
    let mut state = following("7");
    for _ in 0..2 {
        state.silent_watch_ended(MINUTE);
        assert_eq!(next_request(&mut state), "watch 7");
    }
    state.watch_delivered();
    for _ in 0..2 {
        state.silent_watch_ended(MINUTE);
        assert_eq!(next_request(&mut state), "watch 7", "it has heard from the server");
    }
    state.silent_watch_ended(MINUTE);
    assert_eq!(next_request(&mut state), "probe newest");
    state.probed(&"7".into());
    state.silent_watch_ended(MINUTE);
    assert_eq!(next_request(&mut state), "watch 7", "the probe has heard from the server");
}

#[test]
fn repeated_panic_at_one_version_causes_relist() {
    let mut state = following("7");
    for _ in 0..2 {
        assert!(!state.panicked().is_zero());
        assert_eq!(next_request(&mut state), "watch 7");
    }
    state.panicked();
    assert_eq!(next_request(&mut state), "watch-list 7");
    assert!(!state.panicked().is_zero());
    assert_eq!(next_request(&mut state), "watch 7");
}

#[test]
fn retry_after_delays_the_next_watch() {
    let error = ApiError::new(429, "", "").with_retry_after(Duration::from_secs(9));
    let error = WatchError::Refused { target: "pods".into(), error };
    let pause = following("7").watch_failed(&error, Duration::ZERO, false);
    assert!(pause >= Duration::from_secs(9), "{pause:?}");
}

#[test]
fn three_corrupt_watches_at_one_version_cause_relist() {
    for error in [corrupt(), ended(500)] {
        let mut state = following("7");
        for _ in 0..2 {
            state.watch_failed(&error, Duration::ZERO, false);
            assert_eq!(next_request(&mut state), "watch 7");
        }
        state.followed("8".into());
        for _ in 0..2 {
            state.watch_failed(&error, Duration::ZERO, false);
            assert_eq!(next_request(&mut state), "watch 8");
        }
        assert!(!state.watch_failed(&error, Duration::ZERO, false).is_zero());
        assert_eq!(next_request(&mut state), "watch-list 8");
    }
}

#[test]
fn backoff_resets_only_after_two_healthy_minutes() {
    let mut state = following("7");
    for _ in 0..9 {
        state.watch_failed(&refused(500), Duration::ZERO, false);
    }
    assert!(state.watch_failed(&ended(500), MINUTE, true) >= Duration::from_secs(30));
    assert!(state.watch_failed(&ended(500), 2 * MINUTE, true) < Duration::from_secs(2));
}

#[test]
fn server_behind_an_object_of_one_collection_has_gone_back() {
    let mut state = following("7");
    state.queued("9".into());
    state.queued("8".into());
    assert_eq!(next_request(&mut state), "watch 7", "not all collections have reached 9");
    let after_probe = |state: &mut State, version: &str| {
        state.silent_watch_ended(3 * MINUTE);
        assert_eq!(next_request(state), "probe newest");
        state.probed(&version.into());
        next_request(state)
    };
    assert_eq!(after_probe(&mut state, "9"), "watch 7");
    assert_eq!(after_probe(&mut state, "8"), "watch-list 9");
    assert!(state.is_back(&"8".into()), "a full state of another history");
    state.gathered("8".into());
    assert_eq!(after_probe(&mut state, "8"), "watch 8");
    state.queued("9".into());
    state.followed("10".into());
    assert_eq!(after_probe(&mut state, "9"), "watch-list 10");
}

#[test]
fn silent_watch_is_followed_by_a_probe_not_by_a_list() {
    let after_probe = |version: &str| {
        let mut state = following("7");
        state.watch_ended(3 * MINUTE, false);
        state.silent_watch_ended(3 * MINUTE);
        assert_eq!(next_request(&mut state), "probe newest");
        state.probed(&version.into());
        next_request(&mut state)
    };
    assert_eq!(after_probe("7"), "watch 7");
    assert_eq!(after_probe("9"), "watch 7", "the watch delivers what is between");
    assert_eq!(after_probe("6"), "watch-list 7", "the server has gone back");
    assert_eq!(after_probe("abc"), "watch-list 7", "versions without an order");

    let mut state = following("7");
    state.silent_watch_ended(Duration::from_secs(179));
    assert_eq!(next_request(&mut state), "watch 7");
    state.silent_watch_ended(3 * MINUTE);
    assert!(!state.probe_failed(&list_refused(403)).is_zero());
    assert_eq!(next_request(&mut state), "watch 7");
    state.silent_watch_ended(3 * MINUTE);
    assert!(!state.panicked().is_zero());
    assert_eq!(next_request(&mut state), "watch 7");
}
