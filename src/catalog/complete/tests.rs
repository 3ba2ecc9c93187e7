//! The index against an oracle: every value is looked at, with plain strings and edit distances from a table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::super::text::{are_initials, fold, initials, jamo};
use super::super::values::parse;
use super::*;
use crate::prompt::source::Source;

/// Where words of a folded text begin.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if !c.is_alphanumeric() => 0,
        'ㄱ'..='ㅣ' | '가'..='힣' | '\u{1100}'..='\u{11FF}' => 1,
        'ぁ'..='ゟ' => 2,
        'ァ'..='ヿ' => 3,
        '一'..='鿿' => 4,
        _ => 5,
    };
    let mut out = vec![text];
    let mut before = text.chars().next().map_or(0, kind);
    for (at, c) in text.char_indices().skip(1) {
        let now = kind(c);
        if now != 0 && (now != before || now == 4) {
            out.push(&text[at..]);
        }
        before = now;
    }
    out
}

/// Fewest edits from a query to any beginning of a text.
fn distance(query: &[char], text: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=query.len()).collect();
    let mut best = query.len();
    for (j, t) in text.iter().enumerate() {
        let mut next = vec![j + 1];
        for (i, q) in query.iter().enumerate() {
            let changed = row[i] + usize::from(q != t);
            next.push(changed.min(row[i + 1] + 1).min(next[i] + 1));
        }
        best = best.min(next[query.len()]);
        row = next;
    }
    best
}

fn tier(value: &str, typed: &str) -> Option<usize> {
    let (folded, query) = (fold(value), fold(typed));
    if folded.starts_with(&query) {
        return Some(0);
    }
    let words = words(&folded);
    if words.iter().any(|word| word.starts_with(&query)) {
        return Some(1);
    }
    let query = jamo(typed);
    if words.iter().any(|word| jamo(word).starts_with(&query)) {
        return Some(2);
    }
    if are_initials(typed) {
        let query = initials(typed);
        let found = words.iter().any(|word| initials(word).starts_with(&query));
        return found.then_some(3);
    }
    let mut query: Vec<char> = query.chars().collect();
    let allowed = match query.len() {
        0..=3 => return None,
        8..=16 => 2,
        _ => 1,
    };
    query.truncate(24);
    let text: Vec<char> = jamo(value).chars().collect();
    (distance(&query, &text) <= allowed).then_some(4)
}

type Row = (String, Option<String>);

/// All that fits, best first: by source and row within a tier.
fn oracle(sources: &[Vec<Row>], typed: &str, wanted: Option<&str>) -> Completion {
    let mut found: Vec<(usize, usize, usize, &str)> = Vec::new();
    for (source, rows) in sources.iter().enumerate() {
        for (at, (value, key)) in rows.iter().enumerate() {
            let (Some(wanted), Some(key)) = (wanted, key) else {
                found.extend(tier(value, typed).map(|t| (t, source, at, &**value)));
                continue;
            };
            if fold(key) == fold(wanted) {
                found.extend(tier(value, typed).map(|t| (t, source, at, &**value)));
            }
        }
    }
    found.sort_unstable();
    let mut seen = BTreeSet::new();
    found.retain(|(.., value)| seen.insert(*value));
    let strict = found.iter().filter(|(tier, ..)| *tier < 4).count();
    if strict >= MAX_VALUES {
        found.truncate(strict);
    }
    Completion {
        total: found.len(),
        values: found
            .iter()
            .take(MAX_VALUES)
            .map(|(.., value)| (*value).to_owned())
            .collect(),
    }
}

fn rows(rows: &[Row]) -> Rows {
    let mut text = String::new();
    for (value, key) in rows {
        writeln!(text, "{value}\tabout it\t{}", key.as_deref().unwrap_or("")).unwrap();
    }
    let mut problems = Vec::new();
    let rows = parse(Source::new(&"values/x.txt".into(), &text), &mut problems);
    assert_eq!(problems, []);
    rows
}

/// The two forms of an index, and one that is not made yet.
fn forms(of: &[Row]) -> [ValueIndex; 3] {
    [Some(false), Some(true), None].map(|many| {
        let rows = rows(of);
        let index = Arc::new(OnceLock::new());
        if let Some(many) = many {
            index.set(Index::new(&rows, many)).unwrap();
        }
        ValueIndex {
            rows: Arc::new(rows),
            index,
        }
    })
}

fn check(sources: &[Vec<Row>], typed: &str, wanted: Option<&str>) -> Result<(), TestCaseError> {
    let expected = oracle(sources, typed, wanted);
    let folded = wanted.map(fold);
    let indexes: Vec<[ValueIndex; 3]> = sources.iter().map(|rows| forms(rows)).collect();
    for form in 0..3 {
        let values: Vec<Values<'_>> = indexes
            .iter()
            .enumerate()
            .map(|(n, forms)| Values::Indexed(&forms[(n + form) % 3]))
            .collect();
        let found = complete(&values, typed, folded.as_deref());
        prop_assert_eq!(&found, &expected, "form {} {:?} {:?}", form, typed, wanted);
    }
    Ok(())
}

/// A value that a line can hold, in a few letters, so that much is alike.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[abAB]{1,4}([-_ /.][abc1]{1,3}){0,2}",
        "[가각갃간나낙서석울우결제과고]{1,4}( [가나결제]{1,2})?",
        "(ａ|Ｂ|結|済|サ|ー|ビ|の|ガ|é|e\u{301}|ß|가|a|-){1,6}",
        "(payments|payroll|paymants|deployment|결제시스템|결재 시스템)(-api|-1|)",
    ]
    .prop_map(|value| value.trim().to_owned())
    .prop_filter("no value", |value| !value.is_empty())
}

fn row() -> impl Strategy<Value = Row> {
    let key = prop_oneof![
        Just(None),
        Just(Some("kr")),
        Just(Some("ＫＲ")),
        Just(Some("us"))
    ];
    (value(), key).prop_map(|(value, key)| (value, key.map(str::to_owned)))
}

fn typed() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[abc가결서ㄱㅅ]{0,2}",
        2 => value(),
        2 => (value(), 0usize..8).prop_map(|(value, n)| value.chars().take(n).collect()),
        1 => value().prop_map(|value| value.nfd().collect()),
        1 => (value(), 0usize..4).prop_map(|(value, n)| initials(&value).chars().take(n).collect()),
        // while the last syllable is typed
        1 => (value(), "[ㄱㄴㅅㅇㅈ]").prop_map(|(value, jamo)| value + &jamo),
        1 => "(paymnets|paymens|payyments-|deplyoment|겱제시스|결제시스텐)(-ap)?",
    ]
}

/// The oracle has no word for a value that is in a group and in all of them; there the group's own place does not count.
fn without_mixed(rows: Vec<Row>) -> Vec<Row> {
    let free: BTreeSet<String> = rows
        .iter()
        .filter(|(_, key)| key.is_none())
        .map(|(value, _)| value.clone())
        .collect();
    rows.into_iter()
        .filter(|(value, key)| key.is_none() || !free.contains(value))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 5000 }))]

    #[test]
    fn an_index_finds_what_looking_at_every_value_finds(
        rows in prop::collection::vec(row(), 0..60),
        typed in typed(),
        wanted in prop_oneof![Just(None), Just(Some("kr")), Just(Some("us")), Just(Some("xx"))],
    ) {
        check(&[without_mixed(rows)], &typed, wanted)?;
    }

    #[test]
    fn sources_are_merged(
        sources in prop::collection::vec(prop::collection::vec(row(), 0..25), 1..4),
        typed in typed(),
        wanted in prop_oneof![Just(None), Just(Some("kr"))],
    ) {
        let sources: Vec<Vec<Row>> = sources.into_iter().map(without_mixed).collect();
        check(&sources, &typed, wanted)?;
    }

    #[test]
    fn no_query_is_an_error(rows in prop::collection::vec(row(), 0..5), typed in any::<String>()) {
        for form in forms(&rows) {
            let found = complete(&[Values::Indexed(&form)], &typed, None);
            prop_assert!(found.values.len() <= found.total);
        }
    }
}

/// More than an answer holds, in every order of weights.
#[test]
fn the_best_of_many() {
    let many: Vec<Row> = (0..1200u32)
        .map(|n| {
            let n = n.wrapping_mul(2_654_435_761) % 1200;
            let (a, b) = (
                ["pay", "play", "결제", "결산", "석유"][n as usize % 5],
                n / 5,
            );
            let key = ["kr", "us"].get(n as usize % 3).map(|k| (*k).to_owned());
            (
                format!("{a}-{b:03} {}", ["api", "앱", "db"][n as usize % 3]),
                key,
            )
        })
        .collect();
    let many = without_mixed(many);
    let indexes = forms(&many);
    for typed in [
        "",
        "p",
        "pa",
        "pay",
        "pay-1",
        "pay-123 api",
        "a",
        "api",
        "ap",
        "d",
        "1",
        "12",
        "결",
        "결제",
        "결ㅈ",
        "겨",
        "ㄱ",
        "ㄱㅈ",
        "ㅇ",
        "서",
        "성",
        "석ㅇ",
        "play-99",
        "pley-01",
        "결재-0",
        "zzz",
        "앱",
    ] {
        for wanted in [None, Some("kr"), Some("us"), Some("none")] {
            let expected = oracle(std::slice::from_ref(&many), typed, wanted);
            for index in &indexes {
                let found = complete(&[Values::Indexed(index)], typed, wanted);
                assert_eq!(found, expected, "{typed} {wanted:?}");
            }
        }
    }
}

fn of(values: &[&str], typed: &str) -> Vec<String> {
    complete(
        &[Values::Indexed(&ValueIndex::plain(values.iter().copied()))],
        typed,
        None,
    )
    .values
}

#[test]
fn the_order_of_what_fits() {
    let values = ["go-pay", "pyaments", "Payments", "my payroll", "payroll"];
    assert_eq!(
        of(&values, "pay"),
        ["Payments", "payroll", "go-pay", "my payroll"]
    );
    assert_eq!(of(&values, "PAYMENTS"), ["Payments", "pyaments"]);
    let values = ["견적", "결제", "경제", "겨울", "공지", "서울 결제"];
    assert_eq!(
        of(&values, "겨"),
        ["겨울", "견적", "결제", "경제", "서울 결제"]
    );
    assert_eq!(of(&values, "결ㅈ"), ["결제", "서울 결제", "견적", "경제"]);
    assert_eq!(
        of(&values, "ㄱㅈ"),
        ["견적", "결제", "경제", "공지", "서울 결제"]
    );
    assert_eq!(of(&values, "ㅅㅇㄱㅈ"), ["서울 결제"]);
}

#[test]
fn every_script_and_form() {
    let nfd = |text: &str| text.nfd().collect::<String>();
    let values = [
        "決済サービス",
        "支付服务",
        &nfd("결제 게이트웨이"),
        "Café",
        "ｶﾞｲﾄﾞ",
    ];
    assert_eq!(of(&values, "済"), ["決済サービス"]);
    assert_eq!(of(&values, "サー"), ["決済サービス"]);
    assert_eq!(of(&values, "服务"), ["支付服务"]);
    assert_eq!(of(&values, "결제 게이"), [nfd("결제 게이트웨이")]);
    assert_eq!(of(&values, &nfd("게잍")), [nfd("결제 게이트웨이")]);
    assert_eq!(of(&values, "ＣＡＦÉ"), ["Café"]);
    assert_eq!(of(&values, "ガイ"), ["ｶﾞｲﾄﾞ"]);
}

#[test]
fn recent_values_by_their_weight_after_those_of_the_author() {
    let recent = |value: &str, weight: f64| Recent {
        value: value.into(),
        weight,
    };
    let listed = ["prod".to_owned(), "stage".to_owned()];
    let used = [
        recent("pre-prod", 1.0),
        recent("prod-kr", 5.0),
        recent("prod", 9.0),
        recent("prod-us", 5.0),
        recent("prod-xx", f64::NAN),
    ];
    let sources = [Values::Listed(&listed), Values::Recent(&used)];
    let found = complete(&sources, "pro", None);
    assert_eq!(
        found.values,
        ["prod", "prod-xx", "prod-kr", "prod-us", "pre-prod"]
    );
    assert_eq!(found.total, 5);
}

#[test]
fn many_rows_are_answered_before_they_are_indexed() {
    let text: String = (0..60_000).map(|n| format!("service-{n:05}\n")).collect();
    let rows = || {
        let mut problems = Vec::new();
        parse(Source::new(&"values/x.txt".into(), &text), &mut problems)
    };
    let index = ValueIndex::new(rows());
    // whether it is made by now or not
    let early = complete(&[Values::Indexed(&index)], "service-5", None);
    index.wait();
    let late = complete(&[Values::Indexed(&index)], "service-5", None);
    assert_eq!(early, late);
    assert_eq!((late.total, &*late.values[99]), (10_000, "service-50099"));
    assert!(index.memory() < 100 * 60_000);
    // one that nobody needs any more is not waited for
    for _ in 0..3 {
        drop(ValueIndex::new(rows()));
    }
}

#[test]
fn a_file_that_is_the_same_is_not_indexed_again() {
    use super::super::{MemoryTree, Revision, build, examples};
    use crate::prompt::Limits;

    let make = |tree: &MemoryTree, previous: Option<&super::super::Catalog>| {
        let limits = Limits::default();
        let revision = Revision::WorkTree;
        build(tree, revision, &limits, previous, &examples::none)
            .unwrap()
            .catalog
    };
    let tree = MemoryTree::default()
        .with("values/a.txt", b"one\n".to_vec())
        .with("values/b.txt", b"one\n".to_vec());
    let first = make(&tree, None);
    let tree = tree
        .with("values/a.txt", b"two\n".to_vec())
        .with("partials/p.md", b"text".to_vec());
    let second = make(&tree, Some(&first));
    let same = |name: &str| Arc::ptr_eq(&first.values[name], &second.values[name]);
    assert_eq!((same("a.txt"), same("b.txt")), (false, true));
}
