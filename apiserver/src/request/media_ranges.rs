//! The media ranges of an `Accept` header.

/// The properties of a media range that its place depends on.
struct Rank {
    quality: f32,
    is_any_type: bool,
    is_any_subtype: bool,
}

/// Returns the media ranges of a header in the order in which the real server tries them: by their
/// quality, and named types before wildcards of any quality.
pub(super) fn ranges(accept: &str) -> impl Iterator<Item = &str> {
    // Most headers are in order: they have neither.
    let is_ordered = !accept.contains(['*', '=']) || !accept.contains(',');
    let plain = is_ordered.then(|| accept.split(','));
    let sorted = if is_ordered { Vec::new() } else { sorted_ranges(accept) };
    sorted.into_iter().chain(plain.into_iter().flatten()).map(str::trim)
}

/// Sorts media ranges. Go's order is not transitive, so its algorithm matters: it inserts one range
/// after the other.
fn sorted_ranges(accept: &str) -> Vec<&str> {
    let mut sorted: Vec<(&str, Rank)> = Vec::new();
    for range in accept.split(',') {
        let rank = Rank::of(range);
        let after = sorted.iter().rposition(|(_, other)| !rank.is_before(other));
        sorted.insert(after.map_or(0, |at| at + 1), (range, rank));
    }
    sorted.into_iter().map(|(range, _)| range).collect()
}

// === impl Rank ===

impl Rank {
    fn of(range: &str) -> Self {
        let (media_type, parameters) = range.split_once(';').unwrap_or((range, ""));
        let media_type = media_type.trim();
        let (kind, subtype) = media_type.split_once('/').unwrap_or((media_type, "*"));
        let mut parameters = parameters.rsplit(';').filter_map(|one| one.split_once('='));
        let quality = parameters.find(|(name, _)| name.trim() == "q");
        // A text that is no number counts as 0.
        let quality = quality.map_or(1.0, |(_, quality)| quality.parse().unwrap_or_default());
        Self { quality, is_any_type: kind == "*", is_any_subtype: subtype == "*" }
    }

    fn is_before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (!self.is_any_type && other.is_any_type)
            || (!self.is_any_subtype && other.is_any_subtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_and_wildcards_decide_the_order() {
        let order = |accept: &'static str| ranges(accept).collect::<Vec<_>>();
        let types = order("a/x;q=0.5, b/y, c/z;q=0.9");
        assert_eq!(types, ["b/y", "c/z;q=0.9", "a/x;q=0.5"]);
        assert_eq!(order("*/*, a/*, a/x;q=0.1"), ["a/x;q=0.1", "a/*", "*/*"]);
        assert_eq!(order("a/x;q=no,b/y;as=T"), ["b/y;as=T", "a/x;q=no"]);
        assert_eq!(order("b/y;v=1,a/x;v=1,b/y"), ["b/y;v=1", "a/x;v=1", "b/y"]);
        assert_eq!(order("b/y, a/x"), ["b/y", "a/x"]);
    }
}
