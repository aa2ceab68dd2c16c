use std::time::Duration;

use tokio::time::Instant;

use super::{
    BucketRateLimiter, ExponentialFailureRateLimiter, FastSlowRateLimiter, MaxOfRateLimiter,
    MaxWaitRateLimiter, RateLimiter, default_controller_rate_limiter, default_item_rate_limiter,
};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns the delays of `attempts` attempts of one item at one instant.
fn delays(limiter: &mut impl RateLimiter<char>, attempts: usize) -> Vec<Duration> {
    let now = Instant::now();
    (0..attempts).map(|_| limiter.when(&'a', now)).collect()
}

#[test]
fn exponential_delay_doubles_up_to_its_maximum() {
    let mut limiter = ExponentialFailureRateLimiter::new(millis(1), millis(50));
    let expected = [1, 2, 4, 8, 16, 32, 50, 50].map(millis);
    assert_eq!(delays(&mut limiter, 8), expected);
    assert_eq!(limiter.failures(&'a'), 8);
}

#[test]
fn exponential_default_is_5_ms_to_1000_s() {
    let mut limiter = ExponentialFailureRateLimiter::default();
    let delays = delays(&mut limiter, 20);
    assert_eq!(delays[..4], [5, 10, 20, 40].map(millis));
    assert_eq!(delays[17], millis(5 << 17));
    assert_eq!(delays[18..], [Duration::from_secs(1000); 2]);
}

#[test]
fn exponential_counts_failures_per_item_until_forget() {
    let now = Instant::now();
    let mut limiter = ExponentialFailureRateLimiter::new(millis(1), millis(50));
    limiter.when(&'a', now);
    limiter.when(&'a', now);
    limiter.when(&'b', now);
    assert_eq!((limiter.failures(&'a'), limiter.failures(&'b')), (2, 1));
    limiter.forget(&'a');
    assert_eq!((limiter.failures(&'a'), limiter.failures(&'b')), (0, 1));
    assert_eq!(limiter.when(&'a', now), millis(1));
}

#[test]
fn exponential_survives_any_number_of_failures() {
    for (base, max) in [
        (Duration::from_nanos(1), Duration::MAX),
        (millis(5), Duration::MAX),
        (Duration::MAX, Duration::MAX),
        (Duration::MAX, millis(7)),
        (millis(5), Duration::ZERO),
    ] {
        let limiter = ExponentialFailureRateLimiter::<char>::new(base, max);
        let mut before = Duration::ZERO;
        // From 128 failures on, 2^failures does not fit into 128 bits.
        for failures in (0..300).chain([u32::MAX - 1, u32::MAX]) {
            let delay = limiter.delay(failures);
            assert!(delay >= before && delay <= max, "{base:?}·2^{failures} = {delay:?}");
            before = delay;
        }
        assert_eq!(before, max);
    }
    let nothing = ExponentialFailureRateLimiter::<char>::new(Duration::ZERO, Duration::MAX);
    assert_eq!(
        [0, 1, 127, 128, u32::MAX].map(|failures| nothing.delay(failures)),
        [Duration::ZERO; 5]
    );
}

#[test]
fn exponential_is_exact_up_to_its_maximum() {
    let limiter = ExponentialFailureRateLimiter::<char>::new(Duration::new(1, 1), Duration::MAX);
    assert_eq!(limiter.delay(3), Duration::new(8, 8));
    assert_eq!(limiter.delay(40), Duration::new(1 << 40, 0) + Duration::from_nanos(1 << 40));
    assert_eq!(limiter.delay(63), Duration::new(1 << 63, 0) + Duration::from_nanos(1 << 63));
    assert_eq!(limiter.delay(64), Duration::MAX);
}

#[test]
fn bucket_gives_each_call_its_own_slot() {
    let mut limiter = BucketRateLimiter::new(10.0, 3);
    assert_eq!(delays(&mut limiter, 6), [0, 0, 0, 100, 200, 300].map(millis));
    assert_eq!(RateLimiter::<char>::failures(&limiter, &'a'), 0);
}

#[test]
fn bucket_refills_with_time_up_to_its_burst() {
    let now = Instant::now();
    let mut limiter = BucketRateLimiter::new(10.0, 2);
    let mut when = |at: u64| limiter.when(&'a', now + millis(at));
    assert_eq!([when(0), when(0), when(0)], [0, 0, 100].map(millis));
    // 150 ms later the bucket holds half a token.
    assert_eq!(when(150), millis(50));
    // Much later it holds two tokens, its burst.
    assert_eq!([when(90_000), when(90_000), when(90_000)], [0, 0, 100].map(millis));
}

#[test]
fn bucket_accepts_extreme_rates() {
    let mut limiter = BucketRateLimiter::new(f64::MIN_POSITIVE, 1);
    assert_eq!(delays(&mut limiter, 3), [Duration::ZERO, Duration::MAX, Duration::MAX]);
    // One attempt in 10^18 seconds: the burst takes longer to fill than a duration can express.
    let mut limiter = BucketRateLimiter::new(1e-18, 100);
    let delays_of_burst = delays(&mut limiter, 101);
    assert!(delays_of_burst[..100].iter().all(Duration::is_zero));
    assert!(delays_of_burst[100] >= Duration::from_secs(900_000_000_000_000_000));
    let mut limiter = BucketRateLimiter::new(f64::INFINITY, 0);
    assert_eq!(delays(&mut limiter, 3), [Duration::ZERO; 3]);
}

#[test]
fn bucket_without_a_burst_lets_nothing_through() {
    let mut limiter = BucketRateLimiter::new(10.0, 0);
    assert_eq!(delays(&mut limiter, 2), [Duration::MAX; 2]);
}

#[test]
fn bucket_gives_slots_in_call_order_even_if_clocks_disagree() {
    let now = Instant::now();
    let mut limiter = BucketRateLimiter::new(10.0, 1);
    // A caller reads the clock before it takes the limiter's lock, so that a later call may have an
    // earlier time.
    let slots = [0, 3, 1, 2].map(|at| {
        let at = now + millis(at);
        at + limiter.when(&'a', at)
    });
    assert_eq!(slots, [0, 100, 200, 300].map(|after| now + millis(after)));
}

#[test]
#[should_panic(expected = "a rate above zero")]
fn bucket_rejects_a_rate_that_is_not_a_number() {
    BucketRateLimiter::new(f64::NAN, 1);
}

#[test]
fn fast_slow_is_fast_a_few_times_for_each_item() {
    let mut limiter = FastSlowRateLimiter::new(millis(5), millis(1000), 3);
    assert_eq!(delays(&mut limiter, 5), [5, 5, 5, 1000, 1000].map(millis));
    assert_eq!(limiter.when(&'b', Instant::now()), millis(5));
    assert_eq!((limiter.failures(&'a'), limiter.failures(&'b')), (5, 1));
    limiter.forget(&'a');
    assert_eq!(limiter.failures(&'a'), 0);
    assert_eq!(delays(&mut limiter, 4), [5, 5, 5, 1000].map(millis));
    assert_eq!(limiter.failures(&'b'), 1);
}

#[test]
fn fast_slow_without_fast_attempts_is_slow() {
    let mut limiter = FastSlowRateLimiter::new(millis(5), millis(1000), 0);
    assert_eq!(delays(&mut limiter, 2), [millis(1000); 2]);
}

#[test]
fn max_wait_bounds_the_delay_of_another_limiter() {
    let inner = ExponentialFailureRateLimiter::new(millis(1), millis(50));
    let mut limiter = MaxWaitRateLimiter::new(inner, millis(5));
    assert_eq!(delays(&mut limiter, 5), [1, 2, 4, 5, 5].map(millis));
    assert_eq!(limiter.failures(&'a'), 5);
    limiter.forget(&'a');
    assert_eq!(limiter.failures(&'a'), 0);
    assert_eq!(limiter.when(&'a', Instant::now()), millis(1));
}

#[test]
fn item_default_is_1_ms_to_1000_s() {
    let delays = delays(&mut default_item_rate_limiter(), 22);
    let doubled = (0..20).map(|failures| millis(1 << failures));
    let expected = doubled.chain([Duration::from_secs(1000); 2]);
    assert_eq!(delays, expected.collect::<Vec<_>>());
}

#[test]
fn max_of_charges_all_and_takes_the_longest() {
    let now = Instant::now();
    let mut limiter = MaxOfRateLimiter::new([
        Box::new(ExponentialFailureRateLimiter::new(millis(150), millis(1000)))
            as Box<dyn RateLimiter<char>>,
        Box::new(BucketRateLimiter::new(10.0, 1)),
    ]);
    let items = ['a', 'b', 'c', 'd', 'a'];
    let delays = items.map(|item| limiter.when(&item, now));
    assert_eq!(delays, [150, 150, 200, 300, 400].map(millis));
    assert_eq!(limiter.failures(&'a'), 2);
    limiter.forget(&'a');
    assert_eq!(limiter.failures(&'a'), 0);
    assert_eq!(limiter.when(&'a', now), millis(500), "`forget` does not refill the bucket");
    assert_eq!(MaxOfRateLimiter::new([]).when(&'a', now), Duration::ZERO);
}

#[test]
fn controller_default_is_back_off_and_a_bucket_of_100() {
    let now = Instant::now();
    let mut limiter = default_controller_rate_limiter::<u32>();
    assert!((0..100).all(|item| limiter.when(&item, now) == millis(5)));
    assert_eq!(limiter.when(&100, now), millis(100));
    assert_eq!(limiter.when(&101, now), millis(200));
    let failing = (0..20).map(|_| limiter.when(&0, now)).last();
    assert_eq!(failing, Some(Duration::from_secs(1000)));
}
