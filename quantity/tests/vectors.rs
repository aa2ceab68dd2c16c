//! Checks each line of `vectors/vectors.txt`, which `vectors/main.go` recorded from apimachinery
//! 0.37.1.

use std::cmp::Ordering;

use homeostat_quantity::{Format, Quantity, Scale};

const RECORDED: &str = include_str!("../vectors/vectors.txt");

fn read(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn format(name: &str) -> Format {
    match name {
        "DecimalSI" => Format::DecimalSI,
        "BinarySI" => Format::BinarySI,
        "DecimalExponent" => Format::DecimalExponent,
        other => panic!("unknown format {other}"),
    }
}

/// Checks a text. Where apimachinery lost the suffix, ours must stand for the amount.
fn check_text(line: &str, quantity: &Quantity, recorded: &str) {
    let ours = quantity.to_string();
    match recorded.strip_prefix('!') {
        None => assert_eq!(ours, recorded, "{line}"),
        Some(wrong) => {
            assert_ne!(ours, wrong, "{line}");
            if quantity.format() != Format::BinarySI {
                assert_eq!(read(&ours), *quantity, "{line}");
            }
        }
    }
}

fn check_value(line: &str, value: i64, recorded: &str) {
    assert_eq!(value.to_string(), recorded.trim_start_matches('!'), "{line}");
}

fn check_parse(line: &str, fields: &[&str]) {
    let [input, text, name, canonical, negated, value, milli, rounded, exact] = fields else {
        panic!("{line}")
    };
    let quantity = read(input);
    check_text(line, &quantity, text);
    assert_eq!(quantity.format(), format(name), "{line}");
    check_text(line, &(&quantity + &Quantity::new(0, quantity.format())), canonical);
    check_text(line, &-quantity.clone(), negated);
    check_value(line, quantity.value(), value);
    check_value(line, quantity.milli_value(), milli);
    let mut up = quantity;
    assert_eq!(up.round_up(Scale::One).to_string(), *exact, "{line}");
    check_text(line, &up, rounded);
}

fn check_pair(line: &str, fields: &[&str]) {
    let [left, right, sum, sum_format, difference, difference_format, order] = fields else {
        panic!("{line}")
    };
    let (left, right) = (read(left), read(right));
    let ours = &left + &right;
    check_text(line, &ours, sum);
    assert_eq!(ours.format(), format(sum_format), "{line}");
    let ours = &left - &right;
    check_text(line, &ours, difference);
    assert_eq!(ours.format(), format(difference_format), "{line}");
    let expected = match *order {
        "-1" => Ordering::Less,
        "0" => Ordering::Equal,
        _ => Ordering::Greater,
    };
    assert_eq!(left.cmp(&right), expected, "{line}");
    assert_eq!(left == right, expected.is_eq(), "{line}");
}

fn scale(power: &str) -> Scale {
    match power {
        "-9" => Scale::Nano,
        "-6" => Scale::Micro,
        "-3" => Scale::Milli,
        "0" => Scale::One,
        "3" => Scale::Kilo,
        "6" => Scale::Mega,
        "9" => Scale::Giga,
        "12" => Scale::Tera,
        "15" => Scale::Peta,
        "18" => Scale::Exa,
        other => panic!("unknown scale {other}"),
    }
}

#[test]
fn recorded_answers_are_reproduced() {
    let mut checked = [0; 5];
    for line in RECORDED.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let place = match fields.as_slice() {
            ["error", input, message] => {
                let ours = input.parse::<Quantity>().map_err(|error| error.to_string());
                assert_eq!(ours, Err((*message).to_owned()), "{line}");
                0
            }
            ["parse", fields @ ..] => {
                check_parse(line, fields);
                1
            }
            ["pair", fields @ ..] => {
                check_pair(line, fields);
                2
            }
            ["times", input, factor, text] => {
                let mut product = read(input);
                product *= factor.parse::<i64>().unwrap();
                check_text(line, &product, text);
                3
            }
            ["scaled", value, power, text] => {
                let quantity = Quantity::scaled(value.parse().unwrap(), scale(power));
                check_text(line, &quantity, text);
                4
            }
            _ => panic!("unknown line {line}"),
        };
        checked[place] += 1;
    }
    let minima = [400, 3500, 2500, 800, 90];
    assert!(checked.iter().zip(minima).all(|(count, least)| *count >= least), "{checked:?}");
}
