//! The texts and the arithmetic of admission.

use homeostat_core::GroupResource;
use homeostat_quota::object::Object;
use homeostat_quota::{
    DeviceClassMapping, Evaluator, Gates, NewUsage, Operation, Quota, QuotaError, Request,
    check_request,
};
use jiff::Timestamp;
use serde_json::{Value, json};

fn quota(value: Value) -> Quota {
    serde_json::from_value(value).expect("a quota")
}

fn counted(name: &str, hard: &Value, used: &Value) -> Quota {
    quota(json!({"metadata": {"name": name}, "status": {"hard": hard, "used": used}}))
}

struct Case<'a> {
    evaluator: Evaluator,
    operation: Operation,
    subresource: &'a str,
    object: Value,
    old: Option<Value>,
}

// === impl Case ===

impl<'a> Case<'a> {
    fn create(evaluator: Evaluator, object: Value) -> Self {
        Self { evaluator, operation: Operation::Create, subresource: "", object, old: None }
    }

    fn update(evaluator: Evaluator, subresource: &'a str, old: Value, object: Value) -> Self {
        Self { evaluator, operation: Operation::Update, subresource, object, old: Some(old) }
    }

    fn check(&self, quotas: &[Quota]) -> Result<Vec<NewUsage>, QuotaError> {
        let read = |object| Object::read(self.evaluator.resource(), object).expect("an object");
        let old = self.old.as_ref().map(read);
        check_request(
            quotas,
            Request {
                evaluator: &self.evaluator,
                operation: self.operation,
                subresource: self.subresource,
                object: &read(&self.object),
                old: old.as_ref(),
                context: &DeviceClassMapping::default(),
                now: Timestamp::UNIX_EPOCH,
            },
        )
    }

    fn shown(&self, quotas: &[Quota]) -> Result<Vec<(usize, String)>, String> {
        let shown = |new: &NewUsage| (new.quota, new.used.to_string());
        let outcome = self.check(quotas).map_err(|error| error.to_string());
        outcome.map(|changed| changed.iter().map(shown).collect())
    }
}

fn pods() -> Evaluator {
    Evaluator::pods(Gates::default())
}

fn pod(cpu: &str) -> Value {
    let resources = json!({"limits": {"cpu": cpu}, "requests": {"cpu": cpu}});
    json!({"spec": {"containers": [{"name": "a", "resources": resources}]}})
}

fn storage(size: &str) -> Value {
    json!({"spec": {"resources": {"requests": {"storage": size}}}})
}

#[test]
fn charge_is_added_to_each_matching_quota() {
    let quotas = [
        counted(
            "a",
            &json!({"pods": "5", "cpu": "4"}),
            &json!({"pods": "1", "cpu": "0", "other": "7"}),
        ),
        counted("b", &json!({"secrets": "5"}), &json!({"secrets": "1"})),
        counted("c", &json!({"limits.cpu": "1"}), &json!({"limits.cpu": "900m"})),
    ];
    let changed = Case::create(pods(), pod("0.1")).shown(&quotas);
    let expected = [(0, "cpu=100m,other=7,pods=2".to_owned()), (2, "limits.cpu=1".to_owned())];
    assert_eq!(changed, Ok(expected.to_vec()));
}

#[test]
fn exceeded_names_are_listed_with_their_numbers() {
    let quotas = [counted(
        "q",
        &json!({"limits.cpu": "1", "pods": "5", "requests.cpu": "650m"}),
        &json!({"limits.cpu": "600m", "pods": "2", "requests.cpu": "0"}),
    )];
    let text = "exceeded quota: q, requested: limits.cpu=900m,requests.cpu=900m, \
                used: limits.cpu=600m,requests.cpu=0, limited: limits.cpu=1,requests.cpu=650m";
    let error = Case::create(pods(), pod("900m")).check(&quotas).unwrap_err();
    assert_eq!(error.to_string(), text);
    assert!(error.is_forbidden());
}

#[test]
fn usage_above_the_limit_matters_for_requested_names_only() {
    let quotas = [counted(
        "q",
        &json!({"pods": "5", "services": "1"}),
        &json!({"pods": "2", "services": "9"}),
    )];
    let changed = Case::create(pods(), pod("1")).shown(&quotas);
    assert_eq!(changed, Ok(vec![(0, "pods=3,services=9".to_owned())]));
}

#[test]
fn missing_resources_precede_missing_usage() {
    let hard = json!({"limits.cpu": "1", "requests.memory": "1Gi", "pods": "5"});
    let bare = json!({"spec": {"containers": [{"name": "c"}, {"name": "b"}]}});
    let uncounted = quota(json!({"metadata": {"name": "q"}, "status": {"hard": hard}}));
    let text = "failed quota: q: must specify limits.cpu for: b,c; requests.memory for: b,c";
    assert_eq!(Case::create(pods(), bare).shown(&[uncounted]), Err(text.to_owned()));
}

#[test]
fn missing_usage_is_refused() {
    let hard = json!({"pods": "5", "count/pods": "5", "secrets": "1"});
    let uncounted =
        quota(json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": {"pods": "1"}}}));
    let text = "status unknown for quota: q, resources: count/pods,pods";
    assert_eq!(Case::create(pods(), pod("1")).shown(&[uncounted]), Err(text.to_owned()));
    // Before the first count there is no limit to enforce.
    let fresh = quota(json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}));
    assert_eq!(Case::create(pods(), pod("1")).shown(&[fresh]), Ok(vec![]));
}

#[test]
fn negative_usage_is_refused() {
    let text = "quota usage is negative for resource(s): cpu,limits.cpu,requests.cpu";
    assert_eq!(Case::create(pods(), pod("-1")).shown(&[]), Err(text.to_owned()));
}

#[test]
fn update_is_charged_for_its_increase() {
    let claims = Evaluator::persistent_volume_claims;
    let quotas =
        [counted("q", &json!({"requests.storage": "10Gi"}), &json!({"requests.storage": "5Gi"}))];
    let grown = Case::update(claims(), "", storage("5Gi"), storage("8Gi"));
    assert_eq!(grown.shown(&quotas), Ok(vec![(0, "requests.storage=8Gi".to_owned())]));
    let shrunk = Case::update(claims(), "", storage("5Gi"), storage("1Gi"));
    assert_eq!(shrunk.shown(&quotas), Ok(vec![]));
    let beyond = Case::update(claims(), "", storage("5Gi"), storage("11Gi"));
    let text = "exceeded quota: q, requested: requests.storage=6Gi, used: requests.storage=5Gi, \
                limited: requests.storage=10Gi";
    assert_eq!(beyond.shown(&quotas), Err(text.to_owned()));
}

#[test]
fn update_into_a_quota_is_charged_in_full() {
    let scoped = quota(json!({
        "metadata": {"name": "q"},
        "spec": {"scopes": ["Terminating"]},
        "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}},
    }));
    let mut ending = pod("1");
    ending["spec"]["activeDeadlineSeconds"] = json!(5);
    let text = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
    let into = Case::update(pods(), "", pod("1"), ending.clone());
    assert_eq!(into.shown(std::slice::from_ref(&scoped)), Err(text.to_owned()));
    let out = Case::update(pods(), "", ending, pod("1"));
    assert_eq!(out.shown(&[scoped]), Ok(vec![]));
}

#[test]
fn status_update_may_exceed_the_quota() {
    let quotas =
        [counted("q", &json!({"requests.storage": "1Gi"}), &json!({"requests.storage": "1Gi"}))];
    let mut allocated = storage("1Gi");
    allocated["status"] = json!({"allocatedResources": {"storage": "3Gi"}});
    let case =
        Case::update(Evaluator::persistent_volume_claims(), "status", storage("1Gi"), allocated);
    assert_eq!(case.shown(&quotas), Ok(vec![(0, "requests.storage=3Gi".to_owned())]));
}

#[test]
fn operations_that_charge_nothing_pass() {
    let full = [counted("q", &json!({"count/jobs.batch": "0"}), &json!({"count/jobs.batch": "0"}))];
    let jobs = || Evaluator::counter(GroupResource::new("batch", "jobs"));
    assert_eq!(Case::update(jobs(), "", json!({}), json!({})).shown(&full), Ok(vec![]));
    let text = "exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=0, \
                limited: count/jobs.batch=0";
    assert_eq!(Case::create(jobs(), json!({})).shown(&full), Err(text.to_owned()));
}

#[test]
fn scope_that_cannot_be_evaluated_is_a_fault_of_the_quota() {
    let of = |operator: &str, values: Value| {
        let expression =
            json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        let quota = quota(json!({
            "metadata": {"name": "q"},
            "spec": {"scopeSelector": {"matchExpressions": [expression]}},
            "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}},
        }));
        let error = Case::create(pods(), pod("1")).check(&[quota]).unwrap_err();
        assert!(!error.is_forbidden());
        error.to_string()
    };
    let start = |requirement: &str| {
        format!(
            "error matching scopes of quota q, err: error on matching scope \
             {{PriorityClass {requirement}}}: failed to parse and convert selector: "
        )
    };
    for (operator, values, requirement, end) in [
        ("X", json!([]), "X []", "\"X\" is not a valid scope selector operator"),
        (
            "In",
            json!([]),
            "In []",
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            "DoesNotExist",
            json!(["a", "b"]),
            "DoesNotExist [a b]",
            "values: Invalid value: [\"a\",\"b\"]: \
             values set must be empty for exists and does not exist",
        ),
    ] {
        assert_eq!(of(operator, values), format!("{}{end}", start(requirement)));
    }
    let long = "a".repeat(64);
    let text = of("In", json!(["a", long]));
    let end = format!(
        "values[1][PriorityClass]: Invalid value: \"{long}\": must be no more than 63 bytes"
    );
    assert_eq!(text, format!("{}{end}", start(&format!("In [a {long}]"))));
    let text = of("NotIn", json!(["-b", "c d"]));
    assert!(text.starts_with(&format!(
        "{}[values[0][PriorityClass]: Invalid value: \"-b\": a valid label",
        start("NotIn [-b c d]")
    )));
    assert!(
        text.contains("), values[1][PriorityClass]: Invalid value: \"c d\": a valid label"),
        "{text}"
    );
}
