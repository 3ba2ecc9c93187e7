//! A stored text and the one that is edited: no BOM and `\n` alone in the editor, the stored bytes again when it is saved.

import { matches } from "./lines";

/** How the lines of a stored text end. */
export type Endings = "none" | "lf" | "crlf" | "cr" | "mixed";

/** A text as it is stored. */
export interface Stored {
  /** As it came, to the byte. */
  raw: string;
  /** What is edited. */
  text: string;
  /** Whether it begins with a byte order mark. */
  bom: boolean;
  endings: Endings;
  /** What ends each line but the last. */
  each: string[];
}

/** Reads a stored text. */
export function open(raw: string): Stored {
  const bom = raw.startsWith("\ufeff");
  const body = bom ? raw.slice(1) : raw;
  const each = body.match(/\r\n|\r|\n/g) ?? [];
  const text = body.replace(/\r\n?/g, "\n");
  return { raw, text, bom, endings: endings(each), each };
}

function endings(each: string[]): Endings {
  const kinds = new Set(each);
  if (kinds.size > 1) return "mixed";
  const [only] = kinds;
  return only === undefined ? "none" : only === "\n" ? "lf" : only === "\r" ? "cr" : "crlf";
}

/** What to store for an edited text: a line that was there keeps its end, a new one ends as its neighbour does. */
export function save(stored: Stored, text: string): string {
  if (text === stored.text) return stored.raw;
  const mark = stored.bom ? "\ufeff" : "";
  if (stored.endings === "none" || stored.endings === "lf") return mark + text;
  if (stored.endings !== "mixed") return mark + text.replace(/\n/g, stored.each[0] as string);
  const lines = text.split("\n");
  const own = new Array<string | undefined>(lines.length);
  for (const { a, b, length } of matches(stored.text.split("\n"), lines)) {
    for (let i = 0; i < length; i += 1) own[b + i] = stored.each[a + i];
  }
  let last = most(stored.each);
  return (
    mark +
    lines
      .map((line, i) => {
        if (i === lines.length - 1) return line;
        last = own[i] ?? last;
        return line + last;
      })
      .join("")
  );
}

function most(each: string[]): string {
  const count = (end: string) => each.filter((other) => other === end).length;
  return ["\n", "\r\n", "\r"].reduce((best, end) => (count(end) > count(best) ? end : best));
}
