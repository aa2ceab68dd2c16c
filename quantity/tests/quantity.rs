//! Upstream's tables (`quantity_test.go`, `resources_test.go`).

use std::collections::HashMap;

use homeostat_quantity::{
    Format, ParseQuantityError, Quantity, ResourceList, ResourceName, Scale, names,
};
use serde_json::json;

fn q(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn list<const LEN: usize>(entries: [(&str, &str); LEN]) -> ResourceList {
    ResourceList::parse(entries).expect("the list is well formed")
}

fn name_list<const LEN: usize>(list: [&str; LEN]) -> Vec<ResourceName> {
    list.map(ResourceName::from).to_vec()
}

#[test]
fn texts_have_a_canonical_form() {
    let kept = [
        "1.500", "007", "+1", "+3", "1.Gi", "5.", "1E3", "1e+3", "12e6", "1k", "8Ki", "1500m", "0",
    ];
    for text in kept {
        assert_eq!(q(text).to_string(), text);
    }
    for (text, canonical) in [
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1000k", "1M"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        (".5", "500m"),
        ("1e1", "10"),
        ("1E20", "100e18"),
        ("1.0", "1"),
        ("0Mi", "0"),
        ("-0", "0"),
        (".", "0"),
        ("1e-10", "1e-9"),
        ("9Ei", "9223372036854775807"),
        ("16Mi", "16Mi"),
        ("1023", "1023"),
        ("-1024Ki", "-1Mi"),
    ] {
        assert_eq!(q(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn formats_follow_the_suffix() {
    for (text, format) in [
        ("0", Format::DecimalSI),
        ("0Ki", Format::BinarySI),
        ("5n", Format::DecimalSI),
        ("3Ei", Format::BinarySI),
        ("1E", Format::DecimalSI),
        ("1E-3", Format::DecimalExponent),
        ("0.5e0", Format::DecimalExponent),
        ("100.035Ki", Format::BinarySI),
        ("0.000000000001Ki", Format::DecimalSI),
    ] {
        assert_eq!(q(text).format(), format, "{text}");
    }
}

#[test]
fn errors_have_upstreams_texts() {
    let form = "quantities must match the regular expression \
                '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for (text, message) in [
        ("", form),
        ("1..5", form),
        ("1.2.3", form),
        (" 1", form),
        ("1e", "unable to parse quantity's suffix"),
        ("1mm", "unable to parse quantity's suffix"),
        ("Pi", "unable to parse numeric part of quantity"),
    ] {
        assert_eq!(text.parse::<Quantity>().unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn arithmetic_drops_the_text_and_zero_takes_the_other_format() {
    assert_eq!((&Quantity::ZERO + &q("1.500")).to_string(), "1500m");
    assert_eq!((&q("1Gi") + &q("1G")).to_string(), "2073741824");
    let zero = &q("1Gi") - &q("1Gi");
    assert_eq!((zero.to_string(), zero.format()), ("0".to_owned(), Format::BinarySI));
    let five = &zero + &q("5");
    assert_eq!((five.to_string(), five.format()), ("5".to_owned(), Format::DecimalSI));
    assert_eq!((&q("8Ei") + &q("8Ei")).to_string(), "18446744073709551614");
    for value in ["100m", "1Gi"] {
        assert_eq!((&q(value) + &q("0")).to_string(), value);
        assert_eq!((&q("0") + &q(value)).to_string(), value);
        assert_eq!((&q(value) - &q("0")).to_string(), value);
        assert_eq!((&q("0") - &q(value)).to_string(), (-q(value)).to_string());
    }
    assert_eq!([q("1Gi"), q("50Gi")].iter().sum::<Quantity>().to_string(), "51Gi");
}

#[test]
fn numbers_without_a_suffix_letter_keep_their_amount() {
    for (text, shown) in
        [("1000E", "1e21"), ("100000000000000000000000000000000000000000", "100e39")]
    {
        assert_eq!(q(text).to_string(), shown);
        assert_eq!(q(shown), q(text));
    }
    let mut binary = q("4Ei");
    binary *= 256;
    assert_eq!(binary.to_string(), "1024Ei");
}

#[test]
fn conversions_round_away_from_zero() {
    for (text, value, milli) in [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("-0.1Ki", -103, -102_400),
        ("3Mi", 3 << 20, (3 << 20) * 1000),
        ("100E", i64::MAX, i64::MAX),
        ("-100E", i64::MIN, i64::MIN),
    ] {
        assert_eq!((q(text).value(), q(text).milli_value()), (value, milli), "{text}");
    }
    assert_eq!(q("5k").to_i64(), Some(5000));
    assert_eq!(q("5m").to_i64(), None);
    assert_eq!(q("100E").to_i64(), None);
    assert_eq!(q("-2.5Ki").to_f64().to_bits(), (-2560_f64).to_bits());
    assert_eq!(Quantity::scaled(3, Scale::Kilo), q("3k"));
    assert_eq!(Quantity::new(2048, Format::BinarySI).to_string(), "2Ki");
}

#[test]
fn rounding_keeps_the_text_of_a_multiple() {
    let mut whole = q("007");
    assert!(whole.round_up(Scale::One));
    assert_eq!(whole.to_string(), "007");
    let mut fraction = q("1.500");
    assert!(fraction.round_up(Scale::Milli));
    assert_eq!(fraction.to_string(), "1.500");
    assert!(!fraction.round_up(Scale::One));
    assert_eq!(fraction.to_string(), "2");
}

#[test]
fn equality_is_numeric_and_agrees_with_the_hash() {
    assert_eq!(q("1024Mi"), q("1Gi"));
    assert_eq!(q("1"), q("1000m"));
    assert!(q("10000T") > q("100Gi"));
    let by_amount: HashMap<Quantity, &str> = [(q("1Gi"), "one")].into();
    assert_eq!(by_amount.get(&q("1024Mi")), Some(&"one"));
}

#[test]
fn json_has_strings_and_takes_numbers() {
    for (value, text) in [
        (json!("1.500"), "1.500"),
        (json!(" 1Gi "), "1Gi"),
        (json!(2), "2"),
        (json!(-3), "-3"),
        (json!(1.5), "1500m"),
        (json!(1e21), "1e21"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(null), "0"),
    ] {
        let quantity: Quantity = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&quantity).unwrap(), json!(text), "{value}");
    }
    let error = serde_json::from_str::<Quantity>("\"1e\"").unwrap_err();
    assert!(error.to_string().starts_with(&ParseQuantityError::Suffix.to_string()), "{error}");
    assert!(serde_json::from_str::<Quantity>("true").is_err());
}

#[test]
fn lists_travel_as_objects() {
    let read: ResourceList =
        serde_json::from_value(json!({"pods": 2, "cpu": "500m", "memory": "1Gi"})).unwrap();
    assert_eq!(read, list([("cpu", "0.5"), ("memory", "1024Mi"), ("pods", "2")]));
    assert_eq!(
        serde_json::to_string(&read).unwrap(),
        r#"{"cpu":"500m","memory":"1Gi","pods":"2"}"#
    );
    assert!(serde_json::from_value::<ResourceList>(json!(null)).unwrap().is_empty());
    let error = ResourceList::parse([("cpu", "1"), ("memory", "x")]).unwrap_err();
    let why = "quantity of resource memory: quantities must match";
    assert!(error.to_string().starts_with(why), "{error}");
}

#[test]
fn list_equality_needs_the_same_names() {
    assert_eq!(list([]), list([]));
    assert_eq!(
        list([("cpu", "100m"), ("memory", "1Gi")]),
        list([("memory", "1Gi"), ("cpu", "0.1")])
    );
    assert_ne!(list([("cpu", "100m"), ("memory", "1Gi")]), list([("cpu", "100m")]));
    assert_ne!(list([("cpu", "100m")]), list([("memory", "100m")]));
    assert_ne!(list([("cpu", "100m")]), list([("cpu", "200m")]));
}

#[test]
fn max_takes_the_larger_of_each() {
    for (left, right, expected) in [
        (list([]), list([]), ""),
        (list([("cpu", "1")]), list([]), "cpu=1"),
        (list([]), list([("cpu", "1")]), "cpu=1"),
        (list([("cpu", "100m")]), list([("cpu", "200m")]), "cpu=200m"),
        (list([("cpu", "200m")]), list([("cpu", "100m")]), "cpu=200m"),
        (list([("memory", "1Gi")]), list([("cpu", "1")]), "cpu=1,memory=1Gi"),
        (list([("memory", "1Gi")]), list([("memory", "1073741824")]), "memory=1073741824"),
    ] {
        assert_eq!(left.max(&right).to_string(), expected);
    }
}

#[test]
fn sums_and_differences_cover_every_name() {
    for (left, right, sum, difference, floored) in [
        (list([]), list([]), "", "", ""),
        (list([("cpu", "100m")]), list([]), "cpu=100m", "cpu=100m", "cpu=100m"),
        (list([]), list([("cpu", "100m")]), "cpu=100m", "cpu=-100m", "cpu=0"),
        (list([("cpu", "100m")]), list([("cpu", "100m")]), "cpu=200m", "cpu=0", "cpu=0"),
        (list([("cpu", "1")]), list([("cpu", "3")]), "cpu=4", "cpu=-2", "cpu=0"),
        (list([]), list([("cpu", "-1")]), "cpu=-1", "cpu=1", "cpu=0"),
        (
            list([("cpu", "100m"), ("memory", "50Mi")]),
            list([("cpu", "50m"), ("pods", "1")]),
            "cpu=150m,memory=50Mi,pods=1",
            "cpu=50m,memory=50Mi,pods=-1",
            "cpu=50m,memory=50Mi,pods=0",
        ),
        (list([("cpu", "1.500")]), list([]), "cpu=1.500", "cpu=1.500", "cpu=1.500"),
    ] {
        assert_eq!(left.add(&right).to_string(), sum);
        assert_eq!(left.subtract(&right).to_string(), difference);
        assert_eq!(left.subtract_with_non_negative_result(&right).to_string(), floored);
        let mut added = left.clone();
        added += &right;
        assert_eq!(added, left.add(&right));
    }
}

#[test]
fn comparison_names_what_exceeds() {
    let hard = list([("cpu", "100m"), ("memory", "1Gi"), ("pods", "1")]);
    assert!(list([("cpu", "100m"), ("secrets", "9")]).is_less_than_or_equal(&hard));
    let used = list([("pods", "2"), ("cpu", "200m"), ("memory", "1Gi")]);
    assert_eq!(used.names_exceeding(&hard), ["cpu", "pods"]);
    assert!(list([]).is_less_than_or_equal(&list([])));
    assert!(list([("cpu", "100m")]).is_less_than_or_equal(&list([("cpu", "200m")])));
    assert!(!used.is_less_than_or_equal(&hard));
}

#[test]
fn masks_and_name_lists_are_sorted_sets() {
    let all = list([("cpu", "1"), ("memory", "0"), ("pods", "-1")]);
    assert_eq!(all.mask(&name_list(["pods", "cpu", "cpu", "other"])).to_string(), "cpu=1,pods=-1");
    assert_eq!(all.remove_zeros().to_string(), "cpu=1,pods=-1");
    assert_eq!(all.negative_names(), ["pods"]);
    assert!(!all.is_zero());
    assert!(list([("cpu", "0"), ("memory", "0Mi")]).is_zero());
    assert!(list([]).is_zero());
    let (left, right) = (name_list(["memory", "cpu", "memory", "a"]), name_list(["cpu", "memory"]));
    assert_eq!(names::intersection(&left, &right), ["cpu", "memory"]);
    assert_eq!(names::difference(&left, &right), ["a"]);
    assert_eq!(names::difference(&left, &[]), ["a", "cpu", "memory"]);
    assert!(names::difference(&right, &left).is_empty());
    assert!(names::intersection(&[], &right).is_empty());
    assert!(list([]).negative_names().is_empty() && list([("cpu", "0")]).remove_zeros().is_empty());
    assert_eq!(names::to_set(&left).len(), 3);
    assert!(names::contains_prefix(&["hugepages-", "x"], "hugepages-2Mi"));
    assert!(!names::contains_prefix(&["hugepages-"], "requests.hugepages-2Mi"));
}

#[test]
fn last_entry_of_a_name_stays() {
    let collected: ResourceList =
        [("cpu", q("1")), ("pods", q("4")), ("cpu", q("2")), ("cpu", q("3"))].into();
    assert_eq!(collected.to_string(), "cpu=3,pods=4");
    let mut edited = collected;
    assert_eq!(edited.insert("cpu", q("5")), Some(q("3")));
    assert_eq!(edited.insert("a", q("1")), None);
    edited.add_to(&ResourceName::from("a"), &q("1"));
    edited.add_to(&ResourceName::from("b"), &q("7"));
    assert_eq!(edited.remove("pods"), Some(q("4")));
    assert_eq!(edited.to_string(), "a=2,b=7,cpu=5");
    assert_eq!(edited.names().map(ResourceName::as_str).collect::<Vec<_>>(), ["a", "b", "cpu"]);
    edited.add_to_present(&list([("aa", "1"), ("b", "1"), ("cpu", "1"), ("d", "1")]));
    assert_eq!(edited.to_string(), "a=2,b=8,cpu=6");
    assert!(edited.contains("a") && !edited.is_empty() && edited.len() == 3);
}
