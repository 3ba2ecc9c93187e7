// Words that were typed below a proposal and not sent yet, by the place they are for. A copy goes only once the page shows
// what was sent.

/** Texts by place. */
export type Kept = Record<string, string>;

/** What a form sent last. */
export interface Sent {
  places: Kept;
  /** The head that it was sent for. */
  head: string;
}

/** What the page that came after shows. */
export interface Shown {
  /** Whether it says that something was refused. */
  refused: boolean;
  /** Whether it is the page of conflicts. */
  conflicts: boolean;
  head: string | undefined;
  /** The title, and every comment and message. */
  words: string[];
}

/** The whole conversation. */
export const SAY = "say";
/** A comment that is edited. */
export const EDIT = "edit:";
/** The title of the proposal, and what is said with it. */
export const RENAME = "rename:";

/** A line of a file, or of what an example renders to. */
export function lineOf(path: string, side: string, line: string, example?: string, rendered?: string): string {
  return `line:${JSON.stringify([path, side, line, example ?? "", rendered ?? ""])}`;
}

/** The place that the words of a field are for, by the values of its form; none where nothing is kept of it. */
export function placeIn(field: { name: string; id: string }, value: (name: string) => string): string | undefined {
  // a text belongs to the commits it was made on, so that it is never saved over others
  if (isFile(field.name)) return `${field.name}@${value("head")}@${value("main")}`;
  if (value("tag")) return `${RENAME}${field.name}`;
  if (value("comment")) return `${EDIT}${value("comment")}`;
  if (value("thread")) return `thread:${value("thread")}`;
  if (value("path")) return lineOf(value("path"), value("side"), value("line"), value("example"), value("rendered"));
  return field.id === "message" ? SAY : undefined;
}

/** Whether a place holds something already, which what was typed is to replace. */
export function isFilled(place: string): boolean {
  return isFile(place) || place.startsWith(EDIT) || place.startsWith(RENAME);
}

const plain = (text: string): string => text.trim().replace(/\s+/g, " ");

/** Whether a place is a file of the page of conflicts. */
export function isFile(place: string): boolean {
  return place.startsWith("file:");
}

/** What of the copies is still to be sent. */
export function left(kept: Kept, sent: Sent | undefined, shown: Shown): Kept {
  if (!sent || shown.refused) return kept;
  const said = new Set(shown.words.map(plain));
  const resolved = !shown.conflicts && shown.head !== undefined && shown.head !== sent.head;
  const out: Kept = {};
  for (const [place, text] of Object.entries(kept)) {
    const mine = sent.places[place];
    const done = isFile(place)
      ? resolved && Object.keys(sent.places).some(isFile)
      : mine !== undefined && plain(mine) === plain(text) && said.has(plain(text));
    if (!done) out[place] = text;
  }
  return out;
}

/** The copies and what was sent last, as stored under a name; nothing where storage is switched off or holds something else. */
export function read(name: string): { kept: Kept; sent?: Sent } {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(name) ?? "");
    if (typeof stored === "object" && stored !== null && "kept" in stored) return stored as { kept: Kept; sent?: Sent };
  } catch {
    // nothing is kept
  }
  return { kept: {} };
}

/** Stores them; false where that cannot be done. */
export function write(name: string, kept: Kept, sent?: Sent): boolean {
  try {
    if (Object.keys(kept).length === 0) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, JSON.stringify(sent ? { kept, sent } : { kept }));
    return true;
  } catch {
    return false;
  }
}
