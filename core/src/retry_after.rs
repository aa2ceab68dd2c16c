//! The `Retry-After` header of HTTP.
//!
//! The API server sends it with 429 (priority and fairness refused the request) and with 503. The
//! client of `homeostat` repeats such a request after that time.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;

/// Parses the value of a `Retry-After` header: a number of seconds or an HTTP date (RFC 9110,
/// section 10.2.3).
///
/// A date is compared with `server_date`, the value of the answer's `Date` header: it is the
/// server's own clock, which the machine's clock may not agree with.
///
/// Returns `None` if the value is neither, if the date has passed, or if a date is given and
/// `server_date` is missing or no date.
///
/// The result is not limited: a server may send `18446744073709551615`. The caller sets the limit.
/// Surrounding white space is ignored. It never panics, whatever the server sends.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_core::retry_after;
///
/// assert_eq!(retry_after("7", None), Some(Duration::from_secs(7)));
/// let wait = retry_after("Sun, 06 Nov 1994 08:50:37 GMT", Some("Sun, 06 Nov 1994 08:49:37 GMT"));
/// assert_eq!(wait, Some(Duration::from_secs(60)));
/// ```
pub fn retry_after(value: &str, server_date: Option<&str>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let parse = |text: &str| DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let wait = parse(value)?.duration_since(parse(server_date?)?);
    Duration::try_from(wait).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:50:37 GMT";

    #[test]
    fn seconds_need_no_date() {
        assert_eq!(retry_after(" 7 ", None), Some(Duration::from_secs(7)));
        let longest = Some(Duration::from_secs(u64::MAX));
        assert_eq!(retry_after("18446744073709551615", None), longest);
    }

    #[test]
    fn date_is_compared_with_the_servers_clock() {
        let minute = Some(Duration::from_secs(60));
        assert_eq!(retry_after(DATE, Some("Sun, 06 Nov 1994 08:49:37 GMT")), minute);
        assert_eq!(retry_after(DATE, Some("Sun, 06 Nov 1994 08:51:37 GMT")), None);
        assert_eq!(retry_after(DATE, None), None);
    }

    #[test]
    fn malformed_values_are_ignored() {
        for odd in
            ["", "soon", "-1", "1.5", "18446744073709551616", "Sun, 99 Nov 1994 08:49:37 GMT"]
        {
            assert_eq!(retry_after(odd, Some(DATE)), None, "{odd}");
            assert_eq!(retry_after(DATE, Some(odd)), None, "{odd}");
        }
    }
}
