//! Edits of a prompt's front matter as edits of its text: a change touches its own lines, and what else is there, comments
//! and quotes included, stays as it was written.

import { type Document, type Node, type Pair, type Scalar, type YAMLMap, type YAMLSeq, isMap, isPair, isScalar, isSeq, parseDocument } from "yaml";

/** A text that takes the place of another. */
export interface Edit {
  from: number;
  to: number;
  insert: string;
}

/** A place in the front matter, e.g. `["arguments", 0, "name"]`. */
export type Path = ReadonlyArray<string | number>;

/** What a new key holds: a text, several texts, or what stands under it. */
export type Fresh = string | boolean | Fresh[] | { [key: string]: Fresh };

/** The keys of each table in the order in which they are written. */
const ORDER: Record<string, string[]> = {
  "": ["title", "description", "tags", "arguments", "resources", "examples"],
  arguments: ["name", "description", "required", "values", "default"],
  values: ["list", "file", "where", "resource", "recent"],
  resources: ["name", "uri", "required", "as"],
  examples: ["name", "arguments", "expect"],
};

/** The front matter of a text. */
export class FrontMatter {
  /** Why it cannot be edited as a form; none when it can. */
  readonly fault: string | undefined;
  private readonly document: Document.Parsed | undefined;

  private constructor(
    private readonly text: string,
    /** Where the YAML is in the text; both ends equal where there is none. */
    readonly from: number,
    readonly to: number,
    private readonly present: boolean,
    closed: boolean,
  ) {
    if (!closed) {
      this.fault = "open";
      return;
    }
    // failsafe: a plain scalar is its source text, as the library format says
    const document = parseDocument(text.slice(from, to), { schema: "failsafe", keepSourceTokens: true, uniqueKeys: true });
    if (document.errors.length > 0) this.fault = document.errors[0]?.message.split("\n")[0] ?? "unreadable";
    else if (document.contents !== null && !isMap(document.contents) && to > from) {
      if (!(isScalar(document.contents) && document.contents.source === "")) this.fault = "no table";
    }
    this.document = document as Document.Parsed;
  }

  /** Reads the front matter of a prompt's text, whose lines end in `\n`. */
  static read(text: string): FrontMatter {
    const first = /^---[ \t]*(\n|$)/.exec(text);
    if (!first) return new FrontMatter(text, 0, 0, false, true);
    const from = first[0].length;
    let at = from;
    while (at < text.length) {
      const end = text.indexOf("\n", at);
      const line = text.slice(at, end < 0 ? text.length : end);
      if (line.trimEnd() === "---") return new FrontMatter(text, from, at, true, true);
      if (end < 0) break;
      at = end + 1;
    }
    return new FrontMatter(text, from, text.length, true, false);
  }

  /** The text at a place; none where there is none. */
  value(path: Path): string | undefined {
    const node = this.node(path);
    if (!isScalar(node)) return undefined;
    return node.value === null ? "" : String(node.value);
  }

  /** What is at a place: `none`, a `text`, a `list` or a `table`. */
  kind(path: Path): "none" | "text" | "list" | "table" {
    const node = this.node(path);
    return isMap(node) ? "table" : isSeq(node) ? "list" : isScalar(node) ? "text" : "none";
  }

  /** How many items a list has. */
  count(path: Path): number {
    const node = this.node(path);
    return isSeq(node) ? node.items.length : 0;
  }

  /** The keys of a table, as written. */
  keys(path: Path): string[] {
    const node = path.length === 0 ? this.root() : this.node(path);
    return isMap(node) ? node.items.map((pair) => keyOf(pair)) : [];
  }

  /** The texts of a list. */
  texts(path: Path): string[] {
    const node = this.node(path);
    if (!isSeq(node)) return [];
    return node.items.map((item) => (isScalar(item) ? String(item.value ?? "") : ""));
  }

  /** Gives a place a text; nothing when it has it. */
  set(path: Path, value: string | boolean): Edit[] {
    if (this.fault !== undefined) return [];
    const node = this.node(path);
    const text = String(value);
    if (isScalar(node) && node.range) {
      if (node.value !== null && String(node.value) === text) return [];
      return [this.replaced(node as Scalar, text, typeof value === "boolean")];
    }
    if (node !== undefined) return [];
    return this.add(path, typeof value === "boolean" ? value : text);
  }

  /** Puts something at a place where there is nothing, in the order in which keys are written. */
  add(path: Path, value: Fresh): Edit[] {
    if (this.fault !== undefined) return [];
    const parent = path.slice(0, -1);
    const key = path.at(-1);
    if (typeof key === "number") return this.append(parent, value);
    if (key === undefined) return [];
    if (parent.length === 0) return this.addTop(key, value);
    const map = this.node(parent);
    if (map === undefined) return this.add(parent, { [key]: value });
    if (!isMap(map)) return [];
    return [this.addKey(map, key, value, tableOf(parent))];
  }

  /** Puts an item behind the last of a list, which is made where there is none. */
  append(path: Path, value: Fresh): Edit[] {
    if (this.fault !== undefined) return [];
    const list = this.node(path);
    if (list === undefined) return this.add(path, [value]);
    if (isScalar(list) && (list.value === null || list.value === "")) {
      const at = this.from + this.start(list);
      return [{ from: at, to: at, insert: ` ${flow([value])}` }];
    }
    if (!isSeq(list)) return [];
    if (list.flow) {
      const last = list.items.at(-1) as Node | undefined;
      const at = last ? this.end(last) : this.start(list) + 1;
      return [this.edit(at, at, last ? `, ${flow(value)}` : flow(value))];
    }
    const indent = this.column(this.start(list));
    const at = this.lineEnd(this.tail(list));
    return [this.lines(at, block([value], indent))];
  }

  /** Takes away a key or an item, with the lines it is on; the last one takes its table or list with it. */
  remove(path: Path): Edit[] {
    if (this.fault !== undefined) return [];
    const parent = path.slice(0, -1);
    const holder = parent.length === 0 ? this.root() : this.node(parent);
    const key = path.at(-1);
    if (isMap(holder)) {
      const index = holder.items.findIndex((pair) => keyOf(pair) === key);
      const pair = holder.items[index];
      if (!pair) return [];
      if (holder.items.length === 1 && parent.length > 0) return this.remove(parent);
      const start = this.start(pair.key as Node);
      const value = pair.value as Node | null;
      const end = value ? this.tail(value) : this.keyEnd(pair);
      return [this.taken(holder, index, start, Math.max(end, this.keyEnd(pair)), (i) => this.start(holder.items[i]?.key as Node))];
    }
    if (isSeq(holder) && typeof key === "number") {
      const item = holder.items[key] as Node | undefined;
      if (!item) return [];
      if (holder.items.length === 1) return this.remove(parent);
      const start = holder.flow ? this.start(item) : this.dash(item);
      return [this.taken(holder, key, start, this.tail(item), (i) => this.start(holder.items[i] as Node))];
    }
    return [];
  }

  /** Makes an item of a list of tables change places with the one behind it. */
  swap(path: Path, first: number): Edit[] {
    if (this.fault !== undefined) return [];
    const list = this.node(path);
    if (!isSeq(list) || list.flow) return [];
    const one = list.items[first] as Node | undefined;
    const two = list.items[first + 1] as Node | undefined;
    if (!one || !two) return [];
    const text = this.yaml();
    const spans = [one, two].map((item) => [this.lineStart(this.dash(item)), this.lineEnd(this.tail(item))] as const);
    const [[a, b], [c, d]] = spans as [readonly [number, number], readonly [number, number]];
    return [this.edit(c, d, text.slice(a, b)), this.edit(a, b, text.slice(c, d))];
  }

  /** Makes a list of texts hold these: items that stay are not touched. */
  setTexts(path: Path, wanted: string[]): Edit[] {
    if (this.fault !== undefined) return [];
    const now = this.texts(path);
    if (now.length === wanted.length && now.every((text, i) => text === wanted[i])) return [];
    if (wanted.length === 0) return this.remove(path);
    if (now.length === 0) {
      const kind = this.kind(path);
      return kind === "none" ? this.add(path, wanted) : kind === "table" ? [] : this.append(path, wanted[0] as string);
    }
    // one at a time, so that each is an edit of a text that is known
    const same = now.findIndex((text, i) => text !== wanted[i]);
    const at = same < 0 ? now.length : same;
    if (wanted.length === now.length) return this.set([...path, at], wanted[at] as string);
    if (wanted.length > now.length) {
      if (at === now.length) return this.append(path, wanted[at] as string);
      return this.set([...path, at], wanted[at] as string);
    }
    return this.remove([...path, at]);
  }

  private yaml(): string {
    return this.text.slice(this.from, this.to);
  }

  private root(): Node | undefined {
    return (this.document?.contents as Node | null) ?? undefined;
  }

  private node(path: Path): Node | undefined {
    let node: Node | undefined = this.root();
    for (const step of path) {
      if (isMap(node) && typeof step === "string") {
        const pair: Pair | undefined = node.items.find((other) => keyOf(other) === step);
        node = (pair?.value as Node | null) ?? undefined;
      } else if (isSeq(node) && typeof step === "number") {
        const item: unknown = node.items[step];
        node = isPair(item) ? undefined : (item as Node | undefined);
      } else return undefined;
    }
    return node;
  }

  private start(node: Node): number {
    return node.range?.[0] ?? 0;
  }

  private end(node: Node): number {
    return node.range?.[1] ?? 0;
  }

  /** Where what a node says ends, without the blank lines and comments behind it. */
  private tail(node: Node): number {
    if (isMap(node) && !node.flow) {
      const last = node.items.at(-1);
      const value = last?.value as Node | null | undefined;
      if (last) return Math.max(this.keyEnd(last), value ? this.tail(value) : 0);
    }
    if (isSeq(node) && !node.flow) {
      const last = node.items.at(-1) as Node | undefined;
      if (last) return this.tail(last);
    }
    const text = this.yaml();
    let end = this.end(node);
    while (end > this.start(node) && /\s/.test(text[end - 1] ?? "")) end -= 1;
    return end;
  }

  private keyEnd(pair: Pair): number {
    const end = this.end(pair.key as Node);
    const colon = this.yaml().indexOf(":", end);
    return colon < 0 ? end : colon + 1;
  }

  private dash(item: Node): number {
    const text = this.yaml();
    let at = this.start(item) - 1;
    while (at > 0 && text[at] !== "-") at -= 1;
    return at;
  }

  private lineStart(at: number): number {
    return this.yaml().lastIndexOf("\n", at - 1) + 1;
  }

  /** The beginning of the line behind the one of `at`. */
  private lineEnd(at: number): number {
    const end = this.yaml().indexOf("\n", at);
    return end < 0 ? this.yaml().length : end + 1;
  }

  private column(at: number): number {
    return at - this.lineStart(at);
  }

  /** Where the key of a line stands, behind the dashes of the items that it begins. */
  private keyColumn(at: number): number {
    const line = this.lineStart(at);
    return /^ *(?:- +)*/.exec(this.yaml().slice(line, at))?.[0].length ?? 0;
  }

  private edit(from: number, to: number, insert: string): Edit {
    return { from: this.from + from, to: this.from + to, insert };
  }

  /** Whole lines put in at the beginning of a line. */
  private lines(at: number, insert: string): Edit {
    const text = this.yaml();
    const open = at > 0 && text[at - 1] !== "\n";
    return this.edit(at, at, open ? `\n${insert}` : `${insert}\n`);
  }

  private addTop(key: string, value: Fresh): Edit[] {
    const root = this.root();
    if (!this.present) {
      return [{ from: 0, to: 0, insert: `---\n${entry(key, value, 0)}\n---\n` }];
    }
    if (!isMap(root) || root.items.length === 0) {
      return [this.lines(this.yaml().length, entry(key, value, 0))];
    }
    return [this.addKey(root, key, value, "")];
  }

  private addKey(map: YAMLMap, key: string, value: Fresh, table: string): Edit {
    const order = ORDER[table] ?? [];
    const rank = order.indexOf(key);
    const before = map.items.findLastIndex((pair) => {
      const other = order.indexOf(keyOf(pair));
      return rank < 0 || other < 0 || other < rank;
    });
    const after = map.items[before];
    if (map.flow) {
      const text = `${key}: ${flow(value)}`;
      if (after) {
        const at = Math.max(this.keyEnd(after), after.value ? this.end(after.value as Node) : 0);
        return this.edit(at, at, `, ${text}`);
      }
      const first = map.items[0];
      const at = first ? this.start(first.key as Node) : this.start(map) + 1;
      return this.edit(at, at, first ? `${text}, ` : ` ${text} `);
    }
    const first = map.items[0] as Pair;
    const indent = this.column(this.start(first.key as Node));
    if (!after) {
      // in front of the first key, which may stand behind a dash
      const at = this.start(first.key as Node);
      return this.edit(at, at, `${entry(key, value, indent).trimStart()}\n${" ".repeat(indent)}`);
    }
    const end = Math.max(this.keyEnd(after), after.value ? this.tail(after.value as Node) : 0);
    return this.lines(this.lineEnd(end), entry(key, value, indent));
  }

  /** What removing an entry of a table or list takes away. */
  private taken(holder: YAMLMap | YAMLSeq, index: number, start: number, end: number, startOf: (index: number) => number): Edit {
    const text = this.yaml();
    const many = holder.items.length;
    if (holder.flow) {
      if (index + 1 < many) return this.edit(start, startOf(index + 1), "");
      const comma = text.lastIndexOf(",", start);
      return this.edit(comma < 0 ? start : comma, end, "");
    }
    const line = this.lineStart(start);
    // the first key of an item stands behind its dash, which stays
    if (isMap(holder) && text.slice(line, start).trim() !== "" && index + 1 < many) {
      return this.edit(start, startOf(index + 1), "");
    }
    return this.edit(line, this.lineEnd(end), "");
  }

  private replaced(node: Scalar, value: string, bare: boolean): Edit {
    const start = this.start(node);
    const text = this.yaml();
    const inFlow = this.inFlow(start);
    if (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED") {
      const header = text.slice(start, text.indexOf("\n", start));
      const content = text.slice(start + header.length + 1, this.end(node)).trimEnd();
      // without content the header's line stays, and its newline ends what is put in
      const end = start + header.length + (content === "" ? 0 : 1 + content.length);
      const wide = node.type === "BLOCK_FOLDED" ? /^[ \t]/m : /^\s/;
      if (value !== "" && (/^[|>][+-]?\d/.test(header) || wide.test(value))) {
        // a block would need its indent written out
        return this.edit(start, end, quoted(value) + (/\s+#.*$/.exec(header)?.[0] ?? ""));
      }
      const indent = /^( *)\S/m.exec(content)?.[1]?.length ?? this.keyColumn(start) + 2;
      const body = node.type === "BLOCK_FOLDED" ? value.trimEnd().replace(/\n/g, "\n\n") : value.trimEnd();
      const lines = body.split("\n").map((line) => (line === "" ? "" : " ".repeat(indent) + line));
      return this.edit(start, end, `${header}\n${lines.join("\n")}`);
    }
    const spaced = start > 0 && /[:-]/.test(text[start - 1] ?? "") ? " " : "";
    if (bare) return this.edit(start, this.end(node), spaced + value);
    if (node.type === "QUOTE_SINGLE" && !value.includes("\n")) {
      return this.edit(start, this.end(node), `'${value.replaceAll("'", "''")}'`);
    }
    if (node.type === "QUOTE_DOUBLE") return this.edit(start, this.end(node), quoted(value));
    return this.edit(start, this.end(node), spaced + scalar(value, inFlow));
  }

  private inFlow(at: number): boolean {
    const within = (node: Node | undefined): boolean => {
      if (!(isMap(node) || isSeq(node)) || !node.range) return false;
      if (at < node.range[0] || at >= node.range[1]) return false;
      if (node.flow) return true;
      return node.items.some((item) => within((isPair(item) ? item.value : item) as Node | undefined));
    };
    return within(this.root());
  }
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : "";
}

function tableOf(path: Path): string {
  return String(path.findLast((step) => typeof step === "string") ?? "");
}

/** `key: value` as lines of a table that stands `indent` spaces in; without the last newline. */
function entry(key: string, value: Fresh, indent: number): string {
  const lead = " ".repeat(indent);
  if (Array.isArray(value) && value.some((item) => typeof item === "object")) {
    return `${lead}${key}:\n${block(value, indent + 2)}`;
  }
  if (typeof value === "string" && value.includes("\n")) {
    const lines = value.trimEnd().split("\n");
    const chomp = value.endsWith("\n") ? "" : "-";
    const body = lines.map((line) => (line === "" ? "" : `${lead}  ${line}`)).join("\n");
    if (!/^\s/.test(value)) return `${lead}${key}: |${chomp}\n${body}`;
  }
  const text = typeof value === "string" ? scalar(value, false) : flow(value);
  return `${lead}${key}: ${text}`;
}

/** Items of a list, each a line or several. */
function block(items: Fresh[], indent: number): string {
  const lead = " ".repeat(indent);
  return items
    .map((item) => {
      if (typeof item !== "object" || Array.isArray(item)) return `${lead}- ${typeof item === "string" ? scalar(item, false) : flow(item)}`;
      const lines = Object.entries(item).map(([key, value]) => entry(key, value, indent + 2));
      return `${lead}- ${lines.join("\n").trimStart()}`;
    })
    .join("\n");
}

function flow(value: Fresh): string {
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return scalar(value, true);
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  const entries = Object.entries(value).map(([key, inner]) => `${key}: ${flow(inner)}`);
  return `{ ${entries.join(", ")} }`;
}

/** A text as a scalar: plain where it can be. */
function scalar(value: string, inFlow: boolean): string {
  const plain =
    value !== "" &&
    !/^(~|null|Null|NULL)$/.test(value) &&
    !/^[\s\-?:,[\]{}#&*!|>'"%@`]/.test(value) &&
    !/[\s:]$/.test(value) &&
    !/: |\s#|[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(value) &&
    !(inFlow && /[,[\]{}]|:$/.test(value)) &&
    !/^(---|\.\.\.)/.test(value);
  return plain ? value : quoted(value);
}

function quoted(value: string): string {
  const escapes: Record<string, string> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r" };
  return `"${value.replace(/[\\"\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/g, (c) => escapes[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;
}

/** A text after edits of it, which do not overlap. */
export function apply(text: string, edits: Edit[]): string {
  return [...edits]
    .sort((a, b) => b.from - a.from)
    .reduce((out, { from, to, insert }) => out.slice(0, from) + insert + out.slice(to), text);
}

/** A text in which a list of the front matter holds these texts. */
export function setTexts(text: string, path: Path, wanted: string[]): string {
  let now = text;
  // each round puts one more item right
  for (let round = 0; round < 1000; round += 1) {
    const edits = FrontMatter.read(now).setTexts(path, wanted);
    if (edits.length === 0) return now;
    now = apply(now, edits);
  }
  return now;
}
