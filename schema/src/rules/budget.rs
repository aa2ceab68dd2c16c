//! The limits of the estimated costs of rules, with the texts of `apiextensions-apiserver`.

use crate::field_error::FieldError;

/// The largest estimated cost of one expression.
pub(super) const MOST_OF_RULE: u64 = 10_000_000;
/// The largest estimated cost of all expressions of a schema.
const MOST_OF_SCHEMA: u64 = 100_000_000;
/// The number of expressions that a report of the sum names.
const NAMED: usize = 4;

/// The sum of the estimated costs of a schema's expressions.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: u64,
    /// The largest costs, each at least 1 % of the limit, and the paths of their expressions.
    largest: Vec<(u64, String)>,
}

impl Budget {
    pub(super) fn add(&mut self, cost: u64, at: String) {
        self.spent = self.spent.saturating_add(cost);
        if cost >= MOST_OF_SCHEMA / 100 {
            self.largest.push((cost, at));
            self.largest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.largest.truncate(NAMED);
        }
    }

    /// Reports a sum over the limit for the schema at the path `at`.
    pub(super) fn report(self, at: &str, errors: &mut Vec<FieldError>) {
        if self.spent <= MOST_OF_SCHEMA {
            return;
        }
        for (_, path) in self.largest {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire \
                          OpenAPIv3 schema";
            errors.push(FieldError::forbidden(path, detail));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = excess(name, self.spent, MOST_OF_SCHEMA);
        errors.push(FieldError::forbidden(at, &detail));
    }
}

/// Returns the message for a cost over a limit.
#[expect(clippy::cast_precision_loss, reason = "the message shows a factor")]
pub(super) fn excess(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use super::excess;

    #[test]
    fn factor_is_rounded_by_its_size() {
        for (cost, expected) in [
            (1001, "1.001000x"),
            (1500, "1.5x"),
            (99_960, "100.0x"),
            (100_001, "more than 100x"),
            (u64::MAX, "more than 100x"),
        ] {
            let text = excess("cost", cost, 1000);
            assert!(text.starts_with(&format!("cost exceeds budget by factor of {expected} (")));
        }
    }
}
