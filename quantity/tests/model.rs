//! Compares quantities with a model of big integers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_types, reason = "the test measures real time, and has no runtime")]

use std::time::{Duration, Instant};

use homeostat_quantity::{Format, ParseQuantityError, Quantity, Scale};
use num_bigint::{BigInt, BigUint, Sign};
use proptest::prelude::*;

/// A text, and the billionths for which it stands.
#[derive(Debug, Clone)]
struct Written {
    text: String,
    billionths: BigInt,
}

fn ten(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

/// `numerator` / `denominator`, rounded away from zero.
fn divided_up(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let (sign, size) = (numerator.sign(), numerator.magnitude());
    let denominator = denominator.magnitude();
    let quotient = (size + denominator - BigUint::from(1_u8)) / denominator;
    BigInt::from_biguint(if quotient == BigUint::ZERO { Sign::NoSign } else { sign }, quotient)
}

fn written() -> impl Strategy<Value = Written> {
    let digits = prop_oneof!["[0-9]{1,6}", "[0-9]{1,25}", "[1-9]{1,3}0{0,30}"];
    let fraction = prop_oneof![Just(String::new()), "[0-9]{1,4}", "[0-9]{1,20}"];
    let decimal = prop_oneof![
        prop::sample::select(vec![
            ("n", -9_i32),
            ("u", -6),
            ("m", -3),
            ("", 0),
            ("k", 3),
            ("M", 6),
            ("G", 9),
            ("T", 12),
            ("P", 15),
            ("E", 18),
        ])
        .prop_map(|(suffix, power)| (suffix.to_owned(), Ok(power))),
        (-60..60_i32).prop_map(|power| (format!("e{power}"), Ok(power))),
        (1..7_u32).prop_map(|step| {
            let suffix = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][step as usize - 1];
            (suffix.to_owned(), Err(step))
        }),
    ];
    (any::<bool>(), digits, fraction, decimal).prop_map(
        |(minus, whole, fraction, (suffix, power))| {
            let sign = if minus { "-" } else { "" };
            let text = format!("{sign}{whole}.{fraction}{suffix}");
            let digits: BigInt = format!("{sign}{whole}{fraction}").parse().unwrap();
            let numerator = digits * ten(9);
            let behind = ten(u32::try_from(fraction.len()).unwrap());
            let billionths = match power {
                Ok(power) if power >= 0 => {
                    divided_up(&(numerator * ten(power.unsigned_abs())), &behind)
                }
                Ok(power) => divided_up(&numerator, &(behind * ten(power.unsigned_abs()))),
                Err(step) => {
                    let most = BigInt::from(i64::MAX) * ten(9);
                    let exact = divided_up(&(numerator * BigInt::from(1024).pow(step)), &behind);
                    exact.clamp(-most.clone(), most)
                }
            };
            Written { text, billionths }
        },
    )
}

/// The billionths of a quantity, read from its exponent form, which is never rounded or limited.
fn billionths(quantity: &Quantity) -> BigInt {
    let mut shown = Quantity::new(0, Format::DecimalExponent);
    shown += quantity;
    let exponent_form = if quantity.format() == Format::DecimalExponent {
        shown.to_string()
    } else {
        let mut sum = Quantity::new(1, Format::DecimalExponent);
        sum += quantity;
        sum -= &Quantity::from(1);
        // A zero takes the other format.
        if sum.is_zero() { "0".to_owned() } else { sum.to_string() }
    };
    let (digits, power) = exponent_form.split_once('e').unwrap_or((&exponent_form, "0"));
    digits.parse::<BigInt>().unwrap()
        * ten(u32::try_from(power.parse::<i32>().unwrap() + 9).unwrap())
}

fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(default), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn reading_and_arithmetic_agree_with_big_integers(
        left in written(), right in written(), factor in any::<i64>(),
    ) {
        let a: Quantity = left.text.parse().unwrap();
        let b: Quantity = right.text.parse().unwrap();
        prop_assert_eq!(billionths(&a), left.billionths.clone());
        prop_assert_eq!(billionths(&(&a + &b)), &left.billionths + &right.billionths);
        prop_assert_eq!(billionths(&(&a - &b)), &left.billionths - &right.billionths);
        prop_assert_eq!(billionths(&-a.clone()), -&left.billionths);
        let mut product = a.clone();
        product *= factor;
        prop_assert_eq!(billionths(&product), &left.billionths * factor);
        prop_assert_eq!(a.cmp(&b), left.billionths.cmp(&right.billionths));
        prop_assert_eq!(a == b, left.billionths == right.billionths);
        prop_assert_eq!(a.is_zero(), left.billionths == BigInt::ZERO);
        prop_assert_eq!(a.is_negative(), left.billionths < BigInt::ZERO);
        prop_assert_eq!(a.is_positive(), left.billionths > BigInt::ZERO);
        prop_assert_eq!(a.is_integer(), &left.billionths % ten(9) == BigInt::ZERO);
    }

    #[test]
    fn values_are_rounded_away_from_zero_and_limited(written in written()) {
        let quantity: Quantity = written.text.parse().unwrap();
        let scales = [
            (Scale::Nano, 0), (Scale::Micro, 3), (Scale::Milli, 6), (Scale::One, 9),
            (Scale::Kilo, 12), (Scale::Mega, 15), (Scale::Giga, 18), (Scale::Tera, 21),
            (Scale::Peta, 24), (Scale::Exa, 27),
        ];
        for (scale, power) in scales {
            let exact = divided_up(&written.billionths, &ten(power));
            let limited = exact.clone().clamp(i64::MIN.into(), i64::MAX.into());
            prop_assert_eq!(BigInt::from(quantity.scaled_value(scale)), limited);
            let mut rounded = quantity.clone();
            let unchanged = rounded.round_up(scale);
            prop_assert_eq!(unchanged, &exact * ten(power) == written.billionths);
            prop_assert_eq!(billionths(&rounded), exact * ten(power));
        }
    }

    #[test]
    fn text_is_stable(written in written()) {
        let quantity: Quantity = written.text.parse().unwrap();
        let shown = quantity.to_string();
        let again: Quantity = shown.parse().unwrap();
        prop_assert_eq!(&again, &quantity);
        prop_assert_eq!(again.to_string(), shown);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,12}|[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,12}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let shown = quantity.to_string();
            prop_assert_eq!(shown.parse::<Quantity>().unwrap(), quantity);
        }
    }
}

#[test]
fn hostile_texts_take_bounded_time() {
    let started = Instant::now();
    for text in
        ["1e2147483648", "1e-2147483648", "1e9999999999", "0e2147483647", "1e1001", "1E-1001"]
    {
        assert_eq!(text.parse::<Quantity>(), Err(ParseQuantityError::Suffix), "{text}");
    }
    let digits = "7".repeat(1 << 20);
    for text in [
        digits.clone(),
        format!("0.{digits}"),
        format!("{digits}e1000"),
        format!("{digits}e-1000"),
        format!("{digits}.{digits}Ei"),
        format!("1{}", "0".repeat(1 << 20)),
    ] {
        let mut quantity: Quantity = text.parse().unwrap();
        quantity += &"1e-9".parse().unwrap();
        quantity *= i64::MAX;
        assert!(quantity.is_positive());
        assert!(!quantity.to_string().is_empty());
        assert!(quantity.value() > 0);
    }
    let suffix = "e".repeat(1 << 20);
    assert_eq!(format!("1{suffix}").parse::<Quantity>(), Err(ParseQuantityError::Suffix));
    // Quadratic work on a megabyte of digits takes minutes in a debug build.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
