//! The text that comes of a merge. Pure.

import type { Hunk } from "./lines";

/** Which side a stretch is taken from. */
export type Choice = "mine" | "theirs" | "both" | "base";

/** The text that comes of choices for the conflicts, in their order. */
export function merged(hunks: Hunk[], choices: Choice[]): string {
  let conflict = 0;
  const lines = hunks.flatMap((hunk) => {
    if (hunk.kind !== "conflict") return hunk.kind === "theirs" ? hunk.theirs : hunk.mine;
    const choice = choices[conflict] ?? "both";
    conflict += 1;
    return choice === "both" ? [...hunk.mine, ...hunk.theirs] : hunk[choice];
  });
  return lines.join("\n");
}
