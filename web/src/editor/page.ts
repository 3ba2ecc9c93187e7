//! What the server gives the page of the editor, and its texts.

import type { Kind } from "./language";

/** What is known when the page is loaded. */
export interface PageData {
  /** Where the file is in the library, e.g. `prompts/sre/incident-triage.md`. */
  path: string;
  kind: Kind;
  /** The commit of main that the text is of; none in an empty library. */
  base: string | null;
  /** Whether the file is there at that commit. */
  exists: boolean;
  /** Its text as it is stored; for a new file that of the starter. */
  raw: string;
  may: { publish: boolean; propose: boolean };
  /** Why nothing can be saved here, for people; none where it can. */
  readOnly: string | null;
  /** What the server keeps of an unfinished edit. */
  draft: Draft | null;
  /** Files that a starter needs and the library has not, by path. */
  comesWith: Record<string, string>;
  /** The largest file that is taken, in bytes. */
  maxBytes: number;
  texts: Record<string, string>;
}

/** An edit that is not finished. */
export interface Draft {
  /** The commit that it was begun from. */
  base: string | null;
  /** The text as it would be stored. */
  text: string;
  /** When it was kept, in milliseconds since 1970. */
  saved_at: number;
}

let texts: Record<string, string> = {};

/** Reads what the server put into the page; none where this is no page of the editor. */
export function read<T extends { texts: Record<string, string> }>(name: string): T | undefined {
  const content = document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
  if (!content) return undefined;
  const data = JSON.parse(content) as T;
  texts = data.texts;
  return data;
}

/** The text of a key, with its `{name}` replaced. */
export function t(key: string, values: Record<string, string | number> = {}): string {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
