//! The front matter as a form: each field is an edit of the text, which stays the one thing that is saved.

import { el } from "../dom";
import { type Edit, FrontMatter, type Path, apply, setTexts } from "./front-matter";
import { t } from "./page";

/** The form of a prompt's front matter. */
export class Form {
  private text = "";
  private own = false;
  private readonly body = el("div", { class: "ed-form" });

  constructor(
    host: HTMLElement,
    /** Makes edits of the text. */
    private readonly edit: (edits: Edit[]) => void,
  ) {
    host.append(this.body);
  }

  /** Shows a text's front matter; the fields stay where the edit came from one of them. */
  show(text: string): void {
    const before = this.text;
    this.text = text;
    if (this.own) return;
    if (before !== "" && front(before) === front(text)) return;
    this.draw();
  }

  /** Makes edits that come from a field; where `again`, the fields are others afterwards. */
  private change(edits: Edit[], again = false): void {
    if (edits.length === 0 && this.read().fault === undefined) return;
    // places in a text that cannot be read, or could not be any more, are not trusted
    if (FrontMatter.read(apply(this.text, edits)).fault !== undefined) {
      this.draw();
      return;
    }
    this.own = !again;
    this.edit(edits);
    this.own = false;
    if (again) this.draw();
  }

  private read(): FrontMatter {
    return FrontMatter.read(this.text);
  }

  private draw(): void {
    const read = this.read();
    if (read.fault !== undefined) {
      this.body.replaceChildren(el("p", { class: "ed-note" }, t("form_unreadable")));
      return;
    }
    const at = (document.activeElement as HTMLElement | null)?.id;
    this.body.replaceChildren(
      el("fieldset", {}, el("legend", {}, t("form_about")), this.line(["title"], t("form_title")), this.area(["description"], t("form_description")), this.list(["tags"], t("form_tags"), ",")),
      this.table("arguments", t("form_arguments"), { name: fresh("argument", names(read, "arguments")) }, (i) => this.argument(read, i)),
      this.table("resources", t("form_resources"), { name: fresh("resource", names(read, "resources")), uri: "runbook://" }, (i) => [
        this.line(["resources", i, "name"], t("form_name")),
        this.line(["resources", i, "uri"], t("form_uri")),
        this.choice(["resources", i, "as"], t("form_as"), ["", "resource", "text", "link", "image", "audio"]),
        this.check(["resources", i, "required"], t("form_required")),
      ]),
      this.table("examples", t("form_examples"), { name: t("example_n", { n: read.count(["examples"]) + 1 }), arguments: empty(read) }, (i) => [
        this.line(["examples", i, "name"], t("form_name")),
        ...names(read, "arguments").map((name) => this.line(["examples", i, "arguments", name], name)),
        this.list(["examples", i, "expect"], t("form_expect"), "\n"),
      ]),
    );
    if (at) document.getElementById(at)?.focus();
  }

  private argument(read: FrontMatter, i: number): HTMLElement[] {
    const path = ["arguments", i] as const;
    const values = [...path, "values"] as const;
    const sources = ["list", "file", "resource"];
    const table = read.kind(values) === "table";
    const now = read.kind(values) === "list" ? "list" : (sources.find((source) => read.kind([...values, source]) !== "none") ?? "");
    const source = this.select(`${id(values)}-source`, t("form_values"), ["", ...sources].map((value) => [value, t(`form_values_${value || "none"}`)] as const), now, (value) => {
      const gone = apply(this.text, this.read().remove(values));
      const first: Record<string, string[] | { [key: string]: string }> = { list: [t("form_value")], file: { file: "services.txt" }, resource: { resource: "runbook://{service}" } };
      const made = first[value];
      const next = made ? apply(gone, FrontMatter.read(gone).add(values, made)) : gone;
      this.change(minimal(this.text, next), true);
    });
    const more: HTMLElement[] = [];
    if (now === "list") more.push(this.list(table ? [...values, "list"] : values, t("form_values_list"), "\n"));
    if (now === "file") more.push(this.line([...values, "file"], t("form_values_file")), this.choice([...values, "where"], t("form_where"), ["", ...names(read, "arguments").filter((name) => name !== read.value([...path, "name"]))]));
    if (now === "resource") more.push(this.line([...values, "resource"], t("form_values_resource")));
    if (now !== "list" || table) more.push(this.check([...values, "recent"], t("form_recent")));
    return [
      this.line([...path, "name"], t("form_name")),
      this.area([...path, "description"], t("form_description")),
      this.check([...path, "required"], t("form_required")),
      source,
      ...more,
      this.line([...path, "default"], t("form_default")),
    ];
  }

  /** A list of tables, each a group of fields that can be moved and removed. */
  private table(key: string, label: string, made: Record<string, string | { [key: string]: string }>, fields: (i: number) => HTMLElement[]): HTMLElement {
    const many = this.read().count([key]);
    const button = (name: string, text: string, act: () => void, enabled = true) => {
      const out = el("button", { type: "button", class: "ed-small", id: name, disabled: !enabled }, text);
      out.addEventListener("click", act);
      return out;
    };
    const items = Array.from({ length: many }, (_, i) => {
      const name = this.read().value([key, i, "name"]) || String(i + 1);
      const tools = el("div", { class: "ed-tools" },
        button(`ed-${key}-${i}-up`, t("form_up"), () => this.change(this.read().swap([key], i - 1), true), i > 0),
        button(`ed-${key}-${i}-down`, t("form_down"), () => this.change(this.read().swap([key], i), true), i + 1 < many),
        button(`ed-${key}-${i}-remove`, t("form_remove"), () => this.change(this.read().remove([key, i]), true)),
      );
      return el("details", { open: many <= 4 || i === many - 1, class: "ed-item" }, el("summary", {}, name), ...fields(i), tools);
    });
    const add = button(`ed-${key}-add`, t(`form_add_${key}`), () => {
      this.change(this.read().append([key], made), true);
      document.getElementById(id([key, this.read().count([key]) - 1, "name"]))?.focus();
    });
    return el("fieldset", {}, el("legend", {}, label), ...items, add);
  }

  private line(path: Path, label: string): HTMLElement {
    const input = el("input", { id: id(path), value: this.read().value(path) ?? "", autocomplete: "off" });
    return this.field(path, label, input);
  }

  private area(path: Path, label: string): HTMLElement {
    const value = this.read().value(path) ?? "";
    const input = el("textarea", { id: id(path), rows: Math.min(6, Math.max(2, value.split("\n").length)) });
    input.value = value;
    return this.field(path, label, input);
  }

  private field(path: Path, label: string, input: HTMLInputElement | HTMLTextAreaElement): HTMLElement {
    input.addEventListener("input", () => {
      const read = this.read();
      // an empty text stays until the field is left, so that a comment beside it is not lost while someone types
      if (input.value === "" && read.value(path) === undefined) return;
      this.change(read.set(path, input.value));
    });
    input.addEventListener("change", () => {
      // the items behind one that is gone have other numbers
      if (input.value === "" && path.at(-1) !== "name") this.change(this.read().remove(path), typeof path.at(-1) === "number");
    });
    return el("label", { class: "ed-field" }, el("span", {}, label), input);
  }

  private check(path: Path, label: string): HTMLElement {
    const input = el("input", { type: "checkbox", id: id(path) });
    input.checked = this.read().value(path) === "true";
    input.addEventListener("change", () => {
      const read = this.read();
      this.change(input.checked || read.value(path) !== undefined ? read.set(path, input.checked) : []);
    });
    return el("label", { class: "ed-check" }, input, el("span", {}, label));
  }

  private choice(path: Path, label: string, options: string[]): HTMLElement {
    const now = this.read().value(path) ?? "";
    return this.select(id(path), label, options.map((value) => [value, value || t("form_default_choice")] as const), now, (value) => {
      this.change(value === "" ? this.read().remove(path) : this.read().set(path, value));
    });
  }

  private select(name: string, label: string, options: ReadonlyArray<readonly [string, string]>, now: string, act: (value: string) => void): HTMLElement {
    const input = el("select", { id: name }, ...options.map(([value, text]) => el("option", { value, selected: value === now }, text)));
    input.addEventListener("change", () => act(input.value));
    return el("label", { class: "ed-field" }, el("span", {}, label), input);
  }

  /** Several texts in one field, apart by commas or lines; where that would not give them back, a field for each. */
  private list(path: Path, label: string, between: "," | "\n"): HTMLElement {
    const read = this.read();
    const texts = read.texts(path);
    if (!separable(texts, between)) {
      const fields = texts.map((_, i) => {
        const field = this.area([...path, i], `${label} ${i + 1}`);
        // what is no text is edited in the text
        const input = field.querySelector("textarea");
        if (input) input.disabled = read.kind([...path, i]) !== "text";
        return field;
      });
      return el("div", {}, ...fields);
    }
    const joined = texts.join(between === "," ? ", " : "\n");
    const input = between === "," ? el("input", { id: id(path), value: joined, autocomplete: "off" }) : el("textarea", { id: id(path), rows: Math.min(6, joined.split("\n").length + 1) });
    input.value = joined;
    const kind = read.kind(path);
    // something else than a list is edited in the text
    input.disabled = kind === "table" || (kind === "text" && read.value(path) !== "");
    const wanted = () => separated(input.value, between);
    input.addEventListener("input", () => {
      if (wanted().length > 0) this.change(minimal(this.text, setTexts(this.text, path, wanted())));
    });
    input.addEventListener("change", () => this.change(minimal(this.text, setTexts(this.text, path, wanted()))));
    return el("label", { class: "ed-field" }, el("span", {}, label), input);
  }
}

/** The texts of a field that holds several. */
function separated(text: string, between: "," | "\n"): string[] {
  return text
    .split(between)
    .map((item) => (between === "," ? item.trim() : item))
    .filter((item) => item !== "");
}

/** Whether texts come back from one field as they are. */
export function separable(texts: string[], between: "," | "\n"): boolean {
  if (between === "," && texts.some((text) => /[\n\r]/.test(text))) return false;
  const back = separated(texts.join(between), between);
  return back.length === texts.length && back.every((text, i) => text === texts[i]);
}

function id(path: Path): string {
  return `ed-${path.join("-")}`;
}

function front(text: string): string {
  const read = FrontMatter.read(text);
  return text.slice(0, read.to);
}

function names(read: FrontMatter, list: string): string[] {
  return Array.from({ length: read.count([list]) }, (_, i) => read.value([list, i, "name"]) ?? "").filter((name) => name !== "");
}

function fresh(stem: string, taken: string[]): string {
  let n = 1;
  while (taken.includes(n === 1 ? stem : `${stem}${n}`)) n += 1;
  return n === 1 ? stem : `${stem}${n}`;
}

/** Values of a new example: what has to be given. */
function empty(read: FrontMatter): { [key: string]: string } {
  const needed = names(read, "arguments").filter((_, i) => read.value(["arguments", i, "required"]) === "true");
  return Object.fromEntries(needed.map((name) => [name, ""]));
}


/** The one edit that makes a text another. */
export function minimal(before: string, after: string): Edit[] {
  if (before === after) return [];
  let from = 0;
  while (from < before.length && from < after.length && before[from] === after[from]) from += 1;
  let end = 0;
  while (end < before.length - from && end < after.length - from && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return [{ from, to: before.length - end, insert: after.slice(from, after.length - end) }];
}
