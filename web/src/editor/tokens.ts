//! How many tokens a text is, about: no tokenizer of a model is asked.

/** About how many tokens a text is: one a Hangul syllable, Han character or kana, one for four of anything else. */
export function estimate(text: string): number {
  let dense = 0;
  let rest = 0;
  for (const c of text) {
    if (/[\p{Script=Hangul}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(c)) dense += 1;
    else rest += 1;
  }
  return dense + Math.ceil(rest / 4);
}
