use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::*;

#[test]
fn forms_and_cases_are_one() {
    let nfd: String = "결제".nfd().collect();
    assert_eq!(fold(&nfd), fold("결제"));
    assert_eq!(fold("ＡＢＣ"), "abc");
    assert_eq!(fold("PayMents"), "payments");
    assert_eq!(fold_query(&"한".repeat(200)).chars().count(), 85);
}

#[test]
fn hangul_is_taken_apart_into_keys() {
    for (text, expected) in [
        ("서울", "ㅅㅓㅇㅜㄹ"),
        ("닭과 흙", "ㄷㅏㄹㄱㄱㅗㅏ ㅎㅡㄹㄱ"),
        ("없ㅀㅄ", "ㅇㅓㅂㅅㄹㅎㅂㅅ"),
        ("까의", "ㄲㅏㅇㅡㅣ"),
        ("ㄳㅘ", "ㄱㅅㅗㅏ"),
        ("ㄱㅏㄱㅏ", "ㄱㅏㄱㅏ"),
        // half-width
        ("ﾡￂﾤ", "ㄱㅏㄴ"),
        ("API 게이트웨이", "api ㄱㅔㅇㅣㅌㅡㅇㅜㅔㅇㅣ"),
        ("決済", "決済"),
        ("", ""),
    ] {
        assert_eq!(jamo(text), expected, "{text}");
    }
}

#[test]
fn initial_consonants() {
    for (text, expected) in [
        ("결제", "ㄱㅈ"),
        ("결제 시스템 API", "ㄱㅈㅅㅅㅌapi"),
        ("ㄱㅈ", "ㄱㅈ"),
        // some input methods join the two
        ("ㄳ", "ㄱㅅ"),
        ("까치", "ㄲㅊ"),
        ("決済", "決済"),
    ] {
        assert_eq!(initials(text), expected, "{text}");
    }
    for (text, expected) in [
        ("ㄱㅈ", true),
        ("ㄱㅈ api", true),
        ("ㄳ", true),
        ("\u{1100}", true),
        ("결ㅈ", false),
        ("ㅏ", false),
        ("api", false),
        ("", false),
    ] {
        assert_eq!(are_initials(text), expected, "{text}");
    }
}

/// How a keyboard builds a syllable: its text after each key.
fn typed(syllable: char) -> Vec<char> {
    let n = syllable as u32 - 0xAC00;
    let (block, last) = (n - n % 28, n % 28);
    let with = |vowel: u32, last: u32| {
        char::from_u32(0xAC00 + (block / 28 / 21 * 21 + vowel) * 28 + last).unwrap()
    };
    let vowel = block / 28 % 21;
    let first = char::from_u32(0x1100 + block / 28 / 21).unwrap();
    let mut out = vec![first];
    // ㅘ ㅙ ㅚ begin as ㅗ; ㅝ ㅞ ㅟ as ㅜ; ㅢ as ㅡ
    out.extend(match vowel {
        9..=11 => Some(with(8, 0)),
        14..=16 => Some(with(13, 0)),
        19 => Some(with(18, 0)),
        _ => None,
    });
    out.push(with(vowel, 0));
    // ㄳ begins as ㄱ; ㄵ ㄶ as ㄴ; ㄺ to ㅀ as ㄹ; ㅄ as ㅂ
    out.extend(match last {
        3 => Some(with(vowel, 1)),
        5 | 6 => Some(with(vowel, 4)),
        9..=15 => Some(with(vowel, 8)),
        18 => Some(with(vowel, 17)),
        _ => None,
    });
    out.push(syllable);
    out
}

fn full_width(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '!'..='~' => char::from_u32(c as u32 + 0xFEE0).unwrap(),
            c => c,
        })
        .collect()
}

const TEXT: &str = "[a-zA-Z0-9 ._/éÉñ가-힣ㄱ-ㅣァ-ヶ一-三ﾡ-ﾾ]{0,12}";

proptest! {
    #[test]
    fn every_form_of_a_text_is_one(text in TEXT) {
        let nfd: String = text.nfd().collect();
        let nfc: String = text.nfc().collect();
        let wide = full_width(&text);
        for form in [fold, jamo, initials] {
            let expected = form(&text);
            for other in [&nfd, &nfc, &wide, &text.to_uppercase()] {
                prop_assert_eq!(&form(other), &expected, "{:?}", other);
            }
            prop_assert_eq!(form(&expected), expected);
        }
    }

    #[test]
    fn every_step_of_typing_is_a_prefix(word in "[가-힣]{1,6}", before in "[a-z 가-힣]{0,3}") {
        let whole = jamo(&format!("{before}{word}"));
        let mut done = before;
        for syllable in word.chars() {
            for step in typed(syllable) {
                let so_far = jamo(&format!("{done}{step}"));
                prop_assert!(whole.starts_with(&so_far), "{so_far} of {whole}");
            }
            done.push(syllable);
        }
        prop_assert_eq!(jamo(&done), whole);
    }

    #[test]
    fn a_word_has_one_initial_a_syllable(word in "[가-힣]{1,12}", cut in 0usize..12) {
        let all = initials(&word);
        prop_assert_eq!(all.chars().count(), word.chars().count());
        prop_assert!(are_initials(&all));
        let some: String = word.chars().take(cut).collect();
        prop_assert!(all.starts_with(&initials(&some)));
        prop_assert!(jamo(&word).starts_with(all.chars().next().unwrap()));
    }

    #[test]
    fn no_text_is_too_odd(text in any::<String>()) {
        let _ = (jamo(&text), initials(&text), are_initials(&text));
        prop_assert!(clip_query(&text).len() <= MAX_QUERY);
    }
}
