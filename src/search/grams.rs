//! Which runs of three bytes a text has, near enough to say of most words at once that they are not in it.

/// A set of runs that may say yes to one that is not there: a bit for each (a Bloom filter of one hash).
#[derive(Debug)]
pub(super) struct Grams {
    bits: Box<[u64]>,
    /// What is left of a hash is the number of a bit.
    shift: u32,
}

/// The runs of a word, hashed.
#[derive(Debug)]
pub(super) struct Runs(Box<[u32]>);

impl Grams {
    /// Those of a text: between one bit and two for each of its bytes, of which a quarter is set.
    pub(super) fn of(text: &str) -> Self {
        let bits = text.len().clamp(64, 1 << 20).next_power_of_two();
        let mut grams = Self {
            bits: vec![0; bits / 64].into(),
            shift: u32::BITS - bits.trailing_zeros(),
        };
        for run in runs(text) {
            let (word, bit) = grams.place(run);
            grams.bits[word] |= bit;
        }
        grams
    }

    /// Whether a word may be in the text; false is sure.
    pub(super) fn may_have(&self, word: &Runs) -> bool {
        word.0.iter().all(|run| {
            let (word, bit) = self.place(*run);
            self.bits[word] & bit != 0
        })
    }

    fn place(&self, run: u32) -> (usize, u64) {
        let bit = (run >> self.shift) as usize;
        (bit / 64, 1 << (bit % 64))
    }
}

impl Runs {
    /// Those of a word; none of one that is shorter than a run.
    pub(super) fn of(word: &str) -> Self {
        Self(runs(word).collect())
    }
}

fn runs(text: &str) -> impl Iterator<Item = u32> {
    text.as_bytes().windows(3).map(|run| {
        let number = run
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte));
        number.wrapping_mul(0x9e37_79b1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_never_denied_and_what_is_not_nearly_always() {
        let text = "payment-service rolls back\nㄱㅕㄹㅈㅔㅈㅏㅇㅇㅐ".repeat(20);
        let grams = Grams::of(&text);
        for from in (0..text.len()).filter(|i| text.is_char_boundary(*i)) {
            for to in (from..text.len().min(from + 20)).filter(|i| text.is_char_boundary(*i)) {
                assert!(grams.may_have(&Runs::of(&text[from..to])), "{from}..{to}");
            }
        }
        let other = (0..1000).map(|n| format!("other-{n}"));
        let wrong = other.filter(|word| grams.may_have(&Runs::of(word)));
        assert!(wrong.count() < 10);
    }

    #[test]
    fn texts_of_any_length() {
        for text in ["", "a", "abc", &"x".repeat(3_000_000)] {
            let grams = Grams::of(text);
            assert!(grams.may_have(&Runs::of(&text[..text.len().min(5)])));
            assert!(!grams.may_have(&Runs::of("quite another")));
        }
    }
}
