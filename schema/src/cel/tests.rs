use serde_json::json;

use super::{EvalError, Evaluator, Scope, Type, Value, check, parse};

fn schema() -> serde_json::Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    json!({"type": "object", "properties": {
        "a": number, "b": {"type": "boolean"}, "s": text, "n": {"type": "number"},
        "l": {"type": "array", "items": number},
        "m": {"type": "object", "additionalProperties": number},
        "o": {"type": "object", "properties": {"x": number, "y-z": text}},
        "port": {"x-kubernetes-int-or-string": true},
        "when": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte"},
    }})
}

fn object() -> serde_json::Value {
    json!({
        "a": 3, "b": true, "s": "héllo", "n": 2, "l": [3, 1, 2], "m": {"k": 1, "j": 2},
        "o": {"x": 7, "y-z": "w"}, "port": "http", "when": "2026-01-31T10:00:00Z", "wait": "1h30m",
        "data": "aGk=",
    })
}

/// Compiles an expression and evaluates it with at most `limit` steps.
fn evaluate(source: &str, limit: usize) -> Result<bool, String> {
    let kind = Type::of_schema(&schema(), true).unwrap();
    let object = object();
    let mut expr = parse(source).map_err(|issues| issues.show(source))?;
    let scope = Scope::of(&[("self", kind.clone())]);
    check(&mut expr, &scope).map_err(|issues| issues.show(source))?;
    let variables = vec![("self", Value::read(&object, &kind))];
    match Evaluator::new(variables, limit).evaluate(&expr) {
        Ok(Value::Bool(result)) => Ok(result),
        Ok(other) => Err(format!("not a bool: {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

#[track_caller]
fn assert_true(sources: &[&str]) {
    for source in sources {
        assert_eq!(evaluate(source, 1_000_000), Ok(true), "{source}");
    }
}

#[track_caller]
fn assert_error(source: &str, part: &str) {
    let error = evaluate(source, 1_000_000).unwrap_err();
    assert!(error.contains(part), "{source}: {error}");
}

#[test]
fn operators_follow_their_rank() {
    assert_true(&[
        "1 + 2 * 3 == 7 && !(1 + 2 == 4) || false",
        "7 % 3 == 1 && 7 / 2 == 3 && -7 / 2 == -3",
        "1 < 2 ? true : 1 / 0 == 1",
        "self.n >= 2 && self.n == 2.0",
        "1 < 2.5 && 2u > 1",
        "'a' + 'b' == 'ab' && [1] + [2] == [1, 2]",
        "--1 == 1 && !!true",
        "-9223372036854775808 < 0",
        "0x10 == 16 && 1e2 == 100.0",
    ]);
}

#[test]
fn fields_and_items_are_read() {
    assert_true(&[
        "self.o.x == 7 && self.o.y__dash__z == 'w'",
        "has(self.o.x) && has(self.o) && self.l[0] == 3",
        "self.m['k'] == 1 && self.m.j == 2 && 'k' in self.m && !('z' in self.m)",
        "2 in self.l && !(9 in self.l)",
        "self.l.size() == 3 && size(self.m) == 2 && self.s.size() == 5",
        "{'a': 1}['a'] == 1 && {1: 2}.size() == 1",
        "self.port == 'http' && type(self.port) == string",
        "self.data == b'hi' && size(self.data) == 2",
    ]);
}

#[test]
fn macros_run_over_lists_and_maps() {
    assert_true(&[
        "self.l.all(x, x > 0) && self.l.exists(x, x == 2) && self.l.exists_one(x, x > 2)",
        "self.l.map(x, x * 2) == [6, 2, 4] && self.l.filter(x, x > 1) == [3, 2]",
        "self.l.map(x, x > 1, x + 1) == [4, 3]",
        "self.m.all(k, self.m[k] < 3) && self.m.exists(k, k == 'k')",
        "self.l.all(i, x, i < 3 && x > 0) && self.m.exists(k, v, k == 'j' && v == 2)",
        "self.l.transformList(i, x, i * x) == [0, 1, 4]",
        "self.m.transformMap(k, v, v + 1) == {'j': 3, 'k': 2}",
        "self.m.transformMapEntry(k, v, {v: k}) == {1: 'k', 2: 'j'}",
        "self.m.transformMapEntry(k, v, v > 1, {k: v}) == {'j': 2}",
        "self.l.sortBy(x, x) == [1, 2, 3]",
        "[[1, 2], [3]].all(x, x.exists(y, y > 1))",
    ]);
}

#[test]
fn errors_that_cannot_decide_are_ignored() {
    assert_true(&[
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "[0, 1].exists(x, 1 / x == 1)",
        "![0, 2].all(x, 2 / x == 2)",
    ]);
    assert_error("1 / 0 == 1 || false", "division by zero");
    assert_error("[0].exists(x, 1 / x == 1)", "division by zero");
    assert_error("self.l[3] == 1", "index out of bounds: 3");
    assert_error("self.m['z'] == 1", "no such key: z");
    assert_error("9223372036854775807 + 1 == 0", "integer overflow");
    assert_error("self.port > 1", "no such overload");
    let twice = "[1, 2].transformMapEntry(i, v, {'a': v}).size() == 1";
    assert_error(twice, "insert failed: key a already exists");
    assert_error("int('x') == 1", "type conversion error from 'string' to 'int'");
}

#[test]
fn texts_are_changed_and_searched() {
    assert_true(&[
        "self.s.startsWith('h') && self.s.endsWith('o') && self.s.contains('ll')",
        "self.s.charAt(1) == 'é' && self.s.indexOf('l') == 2 && self.s.lastIndexOf('l') == 3",
        "self.s.substring(1, 3) == 'él' && self.s.substring(3) == 'lo'",
        "'Ab'.lowerAscii() == 'ab' && 'Ab'.upperAscii() == 'AB' && ' a '.trim() == 'a'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "['a', 'b'].join('-') == 'a-b' && 'aaa'.replace('a', 'b', 2) == 'bba'",
        "'x1y22'.findAll('[0-9]+') == ['1', '22']",
        "'x1'.find('[0-9]') == '1' && 'x'.find('[0-9]') == '' && self.s.matches('^h.*o$')",
    ]);
    assert_error("'a'.matches('(')", "invalid matches argument");
    assert_error("'a'.matches('(' + '')", "error parsing regexp");
    assert_error("'a'.charAt(5) == ''", "index out of range: 5");
}

#[test]
fn lists_are_ordered_and_summed() {
    assert_true(&[
        "!self.l.isSorted() && self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3",
        "self.l.indexOf(1) == 1 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(9) == -1",
        "self.l.sort() == [1, 2, 3] && self.l.reverse() == [2, 1, 3] && [1, 1].distinct() == [1]",
        "self.l.slice(1, 3) == [1, 2] && [[1], [2]].flatten() == [1, 2]",
        "lists.range(3) == [0, 1, 2]",
        "sets.contains(self.l, [1, 2]) && sets.intersects(self.l, [9, 1])",
        "sets.equivalent(self.l, [1, 2, 3, 3]) && !sets.contains([1], self.l)",
    ]);
    assert_error("self.l.filter(x, x > 9).max() == 1", "max called on empty list");
}

#[test]
fn optionals_are_followed() {
    assert_true(&[
        "self.?a.hasValue() && self.?a.value() == 3 && self.m[?'z'].orValue(5) == 5",
        "!optional.none().hasValue() && optional.of(1).or(optional.of(2)).value() == 1",
        "self.m[?'k'].optMap(x, x + 1).value() == 2",
        "!optional.ofNonZeroValue(0).hasValue()",
        "[?self.m[?'z'], 1] == [1]",
    ]);
    assert_error("self.m[?'z'].value() == 1", "optional.none() dereference");
}

#[test]
fn times_and_durations_are_computed() {
    assert_true(&[
        "self.when > timestamp('2020-01-01T00:00:00Z') && self.when.getFullYear() == 2026",
        "self.when.getMonth() == 0 && self.when.getDate() == 31 && self.when.getDayOfWeek() == 6",
        "self.when.getHours('02:00') == 12 && self.wait == duration('90m')",
        "self.wait.getMinutes() == 90 && string(duration('1.5s')) == '1.5s'",
        "self.when + duration('24h') == timestamp('2026-02-01T10:00:00Z')",
        "self.when - timestamp('2026-01-31T09:00:00Z') == duration('1h')",
    ]);
    assert_error("duration('x') < self.wait", "invalid duration argument");
    assert_error("duration('x' + '') < self.wait", "type conversion error");
}

#[test]
fn libraries_of_kubernetes_are_there() {
    assert_true(&[
        "quantity('1Gi').isGreaterThan(quantity('500Mi')) && isQuantity('1k') && !isQuantity('x')",
        "quantity('1').add(quantity('500m')) == quantity('1500m')",
        "quantity('2k').asInteger() == 2000",
        "sign(quantity('-1')) == -1 && quantity('1').compareTo(quantity('2')) == -1",
        "url('https://a.b:80/c?d=e&d=f').getHost() == 'a.b:80' && isURL('https://a') && !isURL('a b')",
        "url('https://a.b:80/c?d=e&d=f').getQuery()['d'] == ['e', 'f']",
        "url('https://[::1]:80/c').getHostname() == '::1' && url('https://a.b:80/').getPort() == '80'",
        "url('https://a/b%20c').getEscapedPath() == '/b%20c' && url('http://a').getScheme() == 'http'",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('10.0.0.256')",
        "ip('127.0.0.1').isLoopback() && ip('8.8.8.8').isGlobalUnicast() && ip.isCanonical('::1')",
        "cidr('10.0.0.0/8').containsIP('10.2.3.4') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.1.2.3/8').masked().ip() == ip('10.0.0.0')",
        "cidr('fd00::/16').prefixLength() == 16 && isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33')",
        "cidr('::/0').containsIP('::1') && string(ip('::1')) == '::1'",
    ]);
}

#[test]
fn hostile_expressions_end() {
    let nested = |depth: usize| format!("{}1{} == 1", "(".repeat(depth), ")".repeat(depth));
    assert_true(&[&nested(200)]);
    assert_error(&nested(100_000), "expression recursion limit exceeded: 250");
    assert_error(&format!("1{} == 1", "+1".repeat(100_000)), "recursion limit exceeded");
    assert_error(&format!("self{} == 1", ".o".repeat(100_000)), "recursion limit exceeded");
    // Chains in brackets: no level is deep, and all of them together are.
    let chain = format!("){}", ".o".repeat(60));
    let chains = |depth: usize| format!("{}self{}", "(".repeat(depth), chain.repeat(depth));
    assert_error(&format!("{} == 1", chains(200)), "recursion limit exceeded");
    assert_true(&[&format!("true{}", " && true".repeat(10_000))]);
    assert_true(&[&format!("{}true", "!".repeat(10_000))]);

    let limit = EvalError::Limit.to_string();
    let doubled = format!("['x']{}.size() == 1", ".map(x, x + x)".repeat(60));
    assert_error(&doubled, &limit);
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let loops = |depth: usize| vec![format!("{list}.all(x, "); depth].concat();
    assert_error(&format!("{}true{}", loops(12), ")".repeat(12)), &limit);
    let copies = format!("{list}.map(x, self.l)");
    assert_error(&format!("{}{copies} == {copies}{}", loops(6), ")".repeat(6)), &limit);
    assert_error("lists.range(1000000).size() == 1", &limit);
    assert_error("lists.range(1000000000).size() == 1", "exceeds maximum allowed (1000000)");
    // 100,000 references to one list of 100,000 numbers.
    for sum in ["l.map(x, l).flatten() == []", "l.map(x, dyn(l)).sum() == []"] {
        assert_error(&format!("[lists.range(100000)].exists(l, {sum})"), &limit);
    }
    let joined = format!("[{}].join('').size() == 1", vec!["'x'"; 1000].join(", "));
    assert_eq!(evaluate(&joined, 1_000_000), Ok(false));
    assert_error("'aaaaaaaaaa'.matches('((a{100}){100}){100}')", "invalid matches argument");
    let computed = "'aaaaaaaaaa'.matches('((a{100}){100})' + '{100}')";
    assert_error(computed, "error parsing regexp");
}

#[test]
fn wrong_types_are_reported_with_their_position() {
    for (source, expected) in [
        ("self.z == 1", "1:5: undefined field 'z'"),
        ("[1].all(x, x > 0) && x > 0", "1:22: undeclared reference to 'x'"),
        ("z == 1", "1:1: undeclared reference to 'z' (in container '')"),
        ("self.a.size() == 1", "1:12: found no matching overload for 'size' applied to 'int.()'"),
        ("self.l == ['x']", "applied to '(list(int), list(string))'"),
        ("self.m == {'a': 'b'}", "applied to '(map(string, int), map(string, string))'"),
        ("self.s == null", "applied to '(string, null)'"),
        ("self.a == 1.0", "applied to '(int, double)'"),
        ("'x' in self.l", "found no matching overload for '@in' applied to '(string, list(int))'"),
        ("self.b ? 1 : 'x'", "'_?_:_' applied to '(bool, int, string)'"),
        ("self.l.all(1, true)", "argument must be a simple name"),
        ("self.a == ", "mismatched input '<EOF>' expecting {'['"),
        ("1 == 1 2", "1:8: Syntax error: extraneous input '2' expecting <EOF>"),
        ("as == 1", "reserved identifier: as"),
        ("9223372036854775808 > 1", "invalid int literal"),
    ] {
        assert_error(source, expected);
    }
    assert_true(&["self.l == [] || true", "{} == self.m || true", "self.o == null || true"]);
}

#[test]
fn semantic_versions_are_compared() {
    assert_true(&[
        "semver('1.2.3').major() == 1 && semver('1.2.3-a.1+b').minor() == 2",
        "semver('1.2.3-a').isLessThan(semver('1.2.3')) && semver('1.2.3') == semver('1.2.3+x')",
        "semver('1.2.3-1').compareTo(semver('1.2.3-a')) == -1",
        "semver('1.2.3-a.2').isLessThan(semver('1.2.3-a.10'))",
        "semver('1.10.0').isGreaterThan(semver('1.9.9')) && semver('v1.2', true).patch() == 0",
        "semver('01.02', true) == semver('1.2.0') && !isSemver('v1.2.3') && isSemver('v1', true)",
    ]);
    for (text, expected) in [
        ("1.2", "No Major.Minor.Patch elements found"),
        ("", "Version string empty"),
        ("01.2.3", "Major number must not contain leading zeroes \"01\""),
        ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3-a_b", "Invalid character(s) found in prerelease \"a_b\""),
        ("1.x.3", "Invalid character(s) found in minor number \"x\""),
        (
            "99999999999999999999.1.1",
            "strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
        ),
    ] {
        assert_error(&format!("semver('{text}').major() == 1"), expected);
    }
    let short = "short version cannot contain PreRelease/Build meta data";
    assert_error("semver('1-a', true).major() == 1", short);
}

#[test]
fn texts_have_named_formats() {
    assert_true(&[
        "!format.dns1123Label().validate('a-b').hasValue()",
        "format.dns1123Label().validate('A').value()[0].startsWith('a lowercase RFC 1123 label')",
        "!format.dns1123LabelPrefix().validate('a-').hasValue()",
        "format.labelValue().validate('-').value().size() == 1",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "format.byte().validate('x').value() == ['invalid base64']",
        "format.date().validate('x').value() == ['invalid date']",
        "format.datetime().validate('x').value() == ['invalid datetime']",
        r#"format.uri().validate('x').value() == ['parse "x": invalid URI for request']"#,
        r#"format.uri().validate('').value() == ['parse "": empty url']"#,
        "!format.uri().validate('https://a.b/c').hasValue()",
        "format.named('uuid').value() == format.uuid() && !format.named('x').hasValue()",
        "format.qualifiedName().validate('a/b/c').value()[0].startsWith('a valid label key')",
    ]);
}

/// The results are those of kube-apiserver 1.37.1.
#[test]
fn values_are_formatted() {
    for (expression, expected) in [
        ("'%f'.format([1234567.891])", "1,234,567.891000"),
        ("'%.2f'.format([1234.5])", "1,234.50"),
        ("'%.0f'.format([2.5])", "2"),
        ("'%f'.format([-1234.5])", "-1,234.500000"),
        ("'%e'.format([1234567.891])", "1.234568×10⁰⁶"),
        ("'%e'.format([0.00012])", "1.200000×10⁻⁰⁴"),
        ("'%e'.format([0.0])", "0.000000×10⁰⁰"),
        ("'%f'.format(['NaN'])", "NaN"),
        ("'%d'.format([1234567])", "1234567"),
        ("'%s'.format([1234567.891])", "1.234567891e+06"),
        ("'%s'.format([1.0])", "1"),
        ("'%s'.format([[1, 2]])", "[1, 2]"),
        ("'%s'.format([[1.5]])", "[1.500000]"),
        ("'%s'.format([{'b': 'x', 'a': 'y'}])", r#"{"a":"y", "b":"x"}"#),
        ("'%s'.format([self.m])", r#"{"j":2, "k":1}"#),
        ("'%s'.format([self.when])", "2026-01-31T10:00:00Z"),
        ("'%s'.format([[self.when]])", r#"[timestamp("2026-01-31T10:00:00Z")]"#),
        ("'%s'.format([self.wait])", "5400s"),
        ("'%s %s'.format([true, null])", "true null"),
        ("'%s %s'.format([self.data, [self.data]])", r#"hi [b"hi"]"#),
        ("'%b %b %b'.format([5, true, -5])", "101 1 -101"),
        ("'%x %X %x %x'.format([255, 255, 'hi', b'hi'])", "ff FF 6869 6869"),
        ("'%x %o'.format([-255, 8])", "-ff 10"),
        ("'%% %s'.format(['a'])", "% a"),
    ] {
        let expected = homeostat_core::go_quote(expected);
        assert_true(&[&format!("{expression} == {expected}")]);
    }
    assert_error("'%d'.format([dyn('a')]) == ''", "decimal clause can only be used on integers");
    assert_error("self.s.format([]) == '' || 1 / 0 == 1", "division by zero");
    // Each clause copies its argument: the steps end before the memory does.
    let many = "%s".repeat(200);
    let rule = format!("'{many}'.format([[1], {}]) == ''", "self.l".to_owned());
    assert_error(&rule, "index 2 out of range");
}

/// Rules with another answer here.
const DIFFERENT: [&str; 7] = [
    // Go limits the repetitions of a pattern to 1,000.
    "self.s.matches('a{1001}')",
    // The functions of the authorizer are declared, but no variable is one.
    "authorizer.path('/').check('get').allowed()",
    // The type of a type has no parameter here.
    "self.a == int",
    // ANTLR reads two characters before it gives up, and goes on inside of a text.
    "self.a = 1",
    r"'\q' == 'x'",
    // Messages of protobuf are not supported.
    "Foo{a: 1} == 1",
    "google.protobuf.Timestamp{seconds: 1} == self.when",
];

/// Compares the costs and the errors of rules with those in `vectors/costs`.
#[test]
fn costs_are_those_of_upstream() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../vectors/costs/schema.json")).unwrap();
    let kind = Type::of_schema(&schema, true).unwrap();
    let bounds = super::Bounds::of_schema(&schema, true).unwrap();
    let scope = Scope::of(&[("self", kind.clone()), ("oldSelf", kind)]);
    let own_type = regex::Regex::new(r"selfType\d+[.@\w]*").unwrap();
    let mut wrong = Vec::new();
    for line in include_str!("../../vectors/costs/costs.txt").lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let rule = line["rule"].as_str().unwrap();
        let compiled = parse(rule).and_then(|mut expr| {
            let found = check(&mut expr, &scope)?;
            Ok((expr, found))
        });
        let found = match compiled {
            Ok((_, found)) if found != Type::Bool => {
                "cel expression must evaluate to a bool".to_owned()
            }
            Ok((expr, _)) => super::estimate(&expr, &bounds).to_string(),
            Err(issues) => format!("compilation failed: {}", issues.show(rule)),
        };
        let expected = match line["error"].as_str() {
            Some(error) => own_type.replace_all(error, "object").into_owned(),
            None => line["cost"].to_string(),
        };
        if found != expected && !DIFFERENT.contains(&rule) {
            wrong.push(format!("{rule}\n  found:    {found}\n  expected: {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
