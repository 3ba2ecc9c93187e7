//! The editor of one file: the text, what is wrong with it, what comes of it, and where it is kept until it is published.

import { setDiagnostics } from "@codemirror/lint";
import { Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { api } from "../api";
import { all, el, one, toast } from "../dom";
import { type Stored, open, save } from "./bytes";
import { NO_WORDS, type Words } from "./complete";
import { Drafts } from "./drafts";
import { Form } from "./form";
import type { Edit } from "./front-matter";
import { Loop } from "./loop";
import { resolve } from "./merge";
import { type Draft, type PageData, t } from "./page";
import { Preview } from "./preview";
import { type Problem, changes, diagnostics, offset } from "./problems";
import { type Change, type Checked, type Files, check, publish, told } from "./publish";
import { edit } from "./view";

/** A file as the server gives it. */
interface FileAnswer {
  raw: string | null;
  commit: string | null;
}

/** Starts the editor in the page. */
export function start(data: PageData): void {
  const host = one("#ed-host");
  const app = one("#ed-app");
  if (!host || !app) return;
  for (const plain of all(".ed-plain")) plain.remove();
  app.hidden = false;
  new Editor(data, host).begin();
}

class Editor {
  private stored: Stored;
  private base: string | null;
  private path: string;
  private exists: boolean;
  /** The text that is published or was given up, which leaving does not lose. */
  private clean: string;
  /** Where it is published or proposed. */
  private cleanPath: string;
  private view!: EditorView;
  private preview: Preview | undefined;
  private form: Form | undefined;
  private checks: Loop<Files, Checked> | undefined;
  private readonly drafts: Drafts;
  private words: Words = NO_WORDS;
  private problems: Problem[] = [];
  private elsewhere: Problem[] = [];
  private includer: { path: string; text: string } | undefined;
  private readonly memory = { message: "" };
  private readonly saved = one("#ed-saved") as HTMLElement;

  constructor(
    private readonly data: PageData,
    private readonly host: HTMLElement,
  ) {
    this.stored = open(data.raw);
    this.base = data.base;
    this.path = data.path;
    this.exists = data.exists;
    this.clean = this.stored.text;
    this.cleanPath = data.path;
    this.drafts = new Drafts(
      data.path,
      data.readOnly === null,
      (where, error) => this.tell(where, error),
      () => one("#ed-banner")?.before(el("div", { class: "ed-banner", role: "status" }, el("span", {}, t("draft_elsewhere")))),
    );
    this.memory.message = t(data.exists ? "message_edit" : "message_new", { name: name(data.path) });
  }

  begin(): void {
    const { data } = this;
    const { draft, others } = data.readOnly === null ? this.drafts.find(data.draft, data.raw) : { draft: null, others: [] };
    let text = this.stored.text;
    if (draft) {
      text = open(draft.text).text;
      this.base = this.baseOf(draft);
      this.banner(draft.saved_at, others);
    }
    this.view = edit(this.host, text, data.kind, () => this.words, t("text_of", { path: data.path }), [
      EditorView.updateListener.of((update) => {
        if (update.docChanged) this.changed();
      }),
      EditorView.editable.of(data.readOnly === null),
      Prec.highest(
        keymap.of([
          { key: "Mod-s", preventDefault: true, run: () => (void this.publish(), true) },
          { key: "Mod-Enter", preventDefault: true, run: () => (this.look(true), true) },
        ]),
      ),
    ]);
    this.panels();
    this.listen();
    this.endings();
    void this.learn();
    this.form?.show(text);
    this.look(true);
    this.state();
    if (matchMedia("(pointer: fine)").matches) this.view.focus();
    document.documentElement.dataset["editor"] = "ready";
  }

  private get text(): string {
    return this.view.state.doc.toString();
  }

  /** What would be stored. */
  private get raw(): string {
    return save(this.stored, this.text);
  }

  private get unsaved(): boolean {
    return this.text !== this.clean || this.path !== this.cleanPath;
  }

  /** What the change does to which file. */
  private files(): Files {
    const files: Files = { ...(this.exists ? {} : this.data.comesWith), [this.path]: this.raw };
    if (this.exists && this.path !== this.data.path) files[this.data.path] = null;
    return files;
  }

  private panels(): void {
    const place = one("#ed-preview");
    if (place && (this.data.kind === "prompt" || this.data.kind === "partial")) {
      this.preview = new Preview(
        place,
        (problems, { text, path, files }, newest) => {
          const own = path === this.path ? text : files[this.path];
          if (newest && own === this.text) this.found(problems);
        },
        (line, column) => this.go(line, column),
      );
    } else if (place) {
      const out = el("div", { class: "ed-effect", role: "status" });
      place.append(out);
      this.checks = new Loop<Files, Checked>(
        (files, signal) => check(files, signal),
        600,
        (checked, _, newest) => {
          out.replaceChildren(...told({ ...checked, problems: [] }));
          if (newest) this.found(checked.problems);
        },
        (error) => out.replaceChildren(el("p", { class: "ed-note" }, error instanceof Error ? error.message : String(error))),
      );
    }
    const form = one("#ed-form");
    if (form && this.data.kind === "prompt" && this.data.readOnly === null) {
      this.form = new Form(form, (edits) => this.apply(edits));
    }
    for (const tab of all<HTMLButtonElement>("[data-pane]")) {
      const pane = tab.dataset["pane"] ?? "";
      if (pane === "form" && !this.form) tab.hidden = true;
      tab.addEventListener("click", () => this.pane(pane));
      tab.addEventListener("keydown", (event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (step === 0) return;
        const tabs = all<HTMLButtonElement>("[data-pane]").filter((other) => !other.hidden && other.offsetParent !== null);
        tabs.at((tabs.indexOf(tab) + step) % tabs.length)?.focus();
        event.preventDefault();
      });
    }
    this.pane(matchMedia("(max-width: 900px)").matches ? "text" : "preview");
  }

  /** Shows one pane; on a wide screen the text stays beside it. */
  private pane(wanted: string): void {
    const app = one("#ed-app");
    if (app) app.dataset["shown"] = wanted;
    for (const tab of all<HTMLButtonElement>("[data-pane]")) {
      const selected = tab.dataset["pane"] === wanted;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
    }
    if (wanted === "form") this.form?.show(this.text);
    if (wanted === "text") this.view.requestMeasure();
  }

  private listen(): void {
    one("#ed-publish")?.addEventListener("click", () => void this.publish());
    one("#ed-rename")?.addEventListener("click", () => void this.rename());
    one("#ed-delete")?.addEventListener("click", () => void this.remove());
    addEventListener("beforeunload", (event) => {
      if (this.unsaved) event.preventDefault();
    });
    addEventListener("storage", ({ key, newValue }) => this.drafts.stored(key, newValue));
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden" && this.unsaved) this.drafts.send();
    });
    addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.key.toLowerCase() === "s") {
        event.preventDefault();
        void this.publish();
      } else if (event.key === "Enter" && !this.host.contains(event.target as Node)) {
        event.preventDefault();
        this.look(true);
      }
    });
  }

  /** Learns what the library has that a text may name. */
  private async learn(): Promise<void> {
    try {
      this.words = await api<Words>(`/editor/words?${new URLSearchParams({ path: this.data.path })}`);
    } catch {
      // completion knows less then
      return;
    }
    if (this.data.kind === "partial") this.includers();
  }

  /** For a partial: which prompt it is seen in. */
  private includers(): void {
    const place = one("#ed-includers");
    if (!place) return;
    const { includers } = this.words;
    if (includers.length === 0) {
      place.replaceChildren(el("p", { class: "ed-note" }, t("included_nowhere")));
      return;
    }
    const select = el("select", { id: "ed-includer" }, ...includers.map(({ path, name }) => el("option", { value: path }, `/${name}`)));
    select.addEventListener("change", () => void this.include(select.value));
    place.replaceChildren(el("label", { class: "ed-field" }, el("span", {}, t("seen_in")), select));
    void this.include(includers[0]?.path ?? "");
  }

  private async include(path: string): Promise<void> {
    try {
      const { raw } = await api<FileAnswer>(`/editor/file?${new URLSearchParams({ path })}`);
      if (raw === null) return;
      this.includer = { path, text: open(raw).text };
      this.look(true);
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
  }

  private changed(): void {
    if (this.unsaved) this.drafts.keep(this.base, this.raw);
    else void this.drafts.forget();
    this.form?.show(this.text);
    this.look(false);
    this.state();
  }

  private apply(edits: Edit[]): void {
    this.view.dispatch({ changes: edits, userEvent: "input.form" });
  }

  private look(now: boolean): void {
    const { text } = this;
    if (this.data.kind === "prompt") this.preview?.show({ path: this.path, text, files: partialsOf(this.exists ? {} : this.data.comesWith) }, now);
    else if (this.data.kind === "partial") {
      if (this.includer) this.preview?.show({ ...this.includer, files: { [this.path]: text } }, now);
    } else if (this.unsaved) this.checks?.ask(this.files(), now);
    else this.found([]);
  }

  /** Shows what was found in the text as it is now. */
  private found(problems: Problem[]): void {
    // a mark that comes while a Hangul syllable is put together would break it off
    if (this.view.composing) {
      this.host.addEventListener("compositionend", () => this.found(problems), { once: true });
      return;
    }
    this.problems = problems.filter((problem) => problem.path === this.path);
    this.elsewhere = problems.filter((problem) => problem.path !== this.path);
    const { doc } = this.view.state;
    const marks = diagnostics(doc, this.problems, { wrap: t("wrap"), all: t("wrap_all") }).sort((a, b) => a.from - b.from || a.to - b.to);
    this.view.dispatch(setDiagnostics(this.view.state, marks));
    this.list();
  }

  private list(): void {
    const place = one("#ed-problems");
    if (!place) return;
    const all = [...this.problems, ...this.elsewhere];
    const errors = all.filter(({ severity }) => severity === "error").length;
    const summary = one("#ed-count");
    if (summary) {
      summary.textContent = all.length === 0 ? t("no_problems") : t("problems", { errors, warnings: all.length - errors });
      summary.dataset["state"] = errors > 0 ? "error" : all.length > 0 ? "warning" : "good";
    }
    const fixable = this.problems.filter((problem) => (problem.fix?.length ?? 0) > 0);
    const items = all.slice(0, 100).map((problem) => {
      const own = problem.path === this.path;
      const where = problem.line === 0 ? "" : `${problem.line}:${problem.column}`;
      const button = el("button", { type: "button", class: "ed-problem", disabled: !own }, el("span", { class: "ed-at" }, own ? where : `${problem.path}:${where}`), el("span", {}, problem.message), problem.hint ? el("span", { class: "ed-hint" }, problem.hint) : "");
      button.addEventListener("click", () => this.go(problem.line, problem.column));
      const item = el("li", { class: `ed-${problem.severity}` }, button);
      if (fixable.includes(problem)) item.append(this.fixer(t("wrap"), [problem]));
      return item;
    });
    place.replaceChildren(...(fixable.length > 1 ? [el("li", { class: "ed-fix-all" }, this.fixer(t("wrap_all_n", { n: fixable.length }), fixable))] : []), ...items);
  }

  private fixer(label: string, which: Problem[]): HTMLElement {
    const { doc } = this.view.state;
    const button = el("button", { type: "button", class: "ed-small" }, label);
    button.addEventListener("click", () => {
      if (!this.view.state.doc.eq(doc)) return;
      this.view.dispatch({ changes: changes(doc, which), userEvent: "input.fix" });
      this.look(true);
      this.view.focus();
    });
    return button;
  }

  private go(line: number, column: number): void {
    this.pane(matchMedia("(max-width: 900px)").matches ? "text" : (one("#ed-app")?.dataset["shown"] ?? "preview"));
    const at = line === 0 ? 0 : offset(this.view.state.doc, line, column);
    this.view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    this.view.focus();
  }

  private state(): void {
    const publish = one<HTMLButtonElement>("#ed-publish");
    if (publish) publish.disabled = this.data.readOnly !== null;
    one("#ed-app")?.toggleAttribute("data-unsaved", this.unsaved);
    if (!this.unsaved) this.saved.textContent = this.exists ? t("saved_as_published") : t("not_there_yet");
  }

  private tell(where: "browser" | "server" | "nowhere", error?: unknown): void {
    if (!this.unsaved) return;
    this.saved.textContent = t(`draft_${where}`);
    this.saved.title = error instanceof Error ? error.message : "";
  }

  private endings(): void {
    const { endings, bom } = this.stored;
    const place = one("#ed-endings");
    if (!place) return;
    const said = endings === "lf" || endings === "none" ? "" : endings === "mixed" ? t("endings_mixed") : endings.toUpperCase();
    place.textContent = [said, bom ? "BOM" : ""].filter((part) => part !== "").join(" · ");
    place.title = endings === "mixed" ? t("endings_mixed_help") : t("endings_help");
  }

  /** Says that a draft is shown, and offers to give it up, or to go on with another one. */
  private banner(at: number, others: Draft[]): void {
    const place = one("#ed-banner");
    if (!place) return;
    const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
    const when = format.format(at);
    const drop = el("button", { type: "button" }, t("draft_drop"));
    drop.addEventListener("click", () => {
      this.base = this.data.base;
      this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: this.stored.text } });
      void this.drafts.forget();
      const [next] = others;
      if (next) this.choose(next, others.slice(1));
      else place.replaceChildren();
    });
    const parts: Node[] = [el("span", {}, t("draft_shown", { when }))];
    if (this.base !== this.data.base) parts.push(el("span", {}, t("draft_older")));
    const more = others.map((other) => {
      const show = el("button", { type: "button" }, t("draft_other_show"));
      const rest = others.filter((one) => one !== other);
      show.addEventListener("click", () => this.choose(other, [{ base: this.base, text: this.raw, saved_at: at }, ...rest]));
      const give = el("button", { type: "button" }, t("draft_other_drop"));
      give.addEventListener("click", () => {
        this.drafts.aside(rest);
        // what is shown takes its place on the server too
        if (this.unsaved) this.drafts.keep(this.base, this.raw);
        this.banner(at, rest);
      });
      return el("div", { class: "ed-banner", role: "status" }, el("span", {}, t("draft_other", { when: format.format(other.saved_at) })), show, give);
    });
    place.replaceChildren(el("div", { class: "ed-banner", role: "status" }, ...parts, drop), ...more);
  }

  /** What a draft was begun from; main as it is, where that was an empty library and nobody has made the file since. */
  private baseOf(draft: Draft): string | null {
    return draft.base ?? (this.exists ? null : this.data.base);
  }

  /** Goes on with another draft; the others are still there to choose. */
  private choose(draft: Draft, others: Draft[]): void {
    this.drafts.aside(others);
    this.base = this.baseOf(draft);
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: open(draft.text).text } });
    this.banner(draft.saved_at, others);
  }

  private async publish(): Promise<void> {
    if (this.data.readOnly !== null || document.querySelector("dialog[open]")) return;
    const { raw } = this;
    if (this.exists && raw === this.stored.raw && this.path === this.data.path) {
      toast(t("nothing_to_publish"));
      return;
    }
    const change: Change = { base: this.base, files: this.files(), from: this.data.path, path: this.path, kind: this.data.kind, before: this.exists ? this.stored.raw : "", after: raw };
    await this.send(change, raw);
  }

  private async send(change: Change, raw: string): Promise<void> {
    const outcome = await publish(change, this.data.may, this.memory);
    switch (outcome.kind) {
      case "published":
        this.taken(raw, outcome.commit);
        this.after(outcome.lines);
        break;
      case "proposed": {
        this.clean = this.text;
        this.cleanPath = this.path;
        await this.drafts.forget();
        this.state();
        const place = one("#ed-banner");
        place?.replaceChildren(el("div", { class: "ed-banner good", role: "status" }, el("span", {}, t("proposed", { n: outcome.number })), el("a", { href: `/proposals/${outcome.number}` }, t("open_proposal"))));
        break;
      }
      case "conflict":
        await this.merge(outcome);
        break;
      case "problems":
        this.found(outcome.problems);
        toast(t("refused_problems"), "bad");
        break;
      case "nothing":
        this.view.focus();
    }
  }

  /** The server has this text. */
  private taken(raw: string, commit: string): void {
    const moved = this.path !== this.data.path;
    this.stored = open(raw);
    this.base = commit;
    this.exists = true;
    this.data.base = commit;
    // what was typed while it was sent is still to be published
    this.clean = this.stored.text;
    this.cleanPath = this.path;
    this.memory.message = t("message_edit", { name: name(this.path) });
    if (moved) {
      this.data.path = this.path;
      void this.drafts.move(this.path);
    }
    if (this.text === this.clean) void this.drafts.forget();
    else this.drafts.keep(this.base, this.raw);
    history.replaceState(null, "", `/edit/${this.path.split("/").map(encodeURIComponent).join("/")}`);
    this.state();
    this.look(true);
  }

  private after(lines: string[]): void {
    const place = one("#ed-banner");
    const link = this.data.kind === "prompt" ? [el("a", { href: `/prompts/${name(this.path)}` }, t("open_prompt"))] : [];
    place?.replaceChildren(el("div", { class: "ed-banner good", role: "status" }, el("span", {}, t("published")), ...lines.map((line) => el("code", {}, line)), ...link));
    this.view.focus();
  }

  /** Somebody else has published another text meanwhile. */
  private async merge({ now, base, theirs }: { now: string; base: string | null; theirs: string | null }): Promise<void> {
    // kept before anything is decided
    this.drafts.keep(this.base, this.raw);
    this.drafts.send();
    const mine = this.text;
    const text = await resolve({ base: open(base ?? "").text, mine, theirs: open(theirs ?? "").text }, this.data.kind, this.path);
    if (text === undefined) {
      toast(t("merge_left"));
      return;
    }
    this.base = now;
    this.data.base = now;
    this.exists = theirs !== null;
    this.stored = open(theirs ?? "");
    this.clean = this.stored.text;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
    if (this.unsaved) this.drafts.keep(this.base, this.raw);
    this.state();
    await this.publish();
  }

  private async rename(): Promise<void> {
    const dialog = one<HTMLDialogElement>("#ed-rename-dialog");
    const input = dialog && one<HTMLInputElement>("input", dialog);
    const said = dialog && one("[role=alert]", dialog);
    if (!dialog || !input || !said) return;
    input.value = this.path;
    said.textContent = "";
    const path = await new Promise<string | undefined>((settle) => {
      const form = one<HTMLFormElement>("form", dialog);
      const submit = async (event: SubmitEvent) => {
        event.preventDefault();
        if ((event.submitter as HTMLButtonElement | null)?.value === "cancel") return dialog.close();
        try {
          await api(`/editor/place?${new URLSearchParams({ path: input.value, from: this.data.path })}`);
          form?.removeEventListener("submit", submit);
          settle(input.value);
          dialog.close();
        } catch (error) {
          said.textContent = error instanceof Error ? error.message : String(error);
        }
      };
      form?.addEventListener("submit", submit);
      dialog.addEventListener("close", () => (form?.removeEventListener("submit", submit), settle(undefined)), { once: true });
      dialog.showModal();
      const stem = input.value.lastIndexOf("/") + 1;
      input.setSelectionRange(stem, input.value.replace(/\.\w+$/, "").length);
    });
    if (path === undefined || path === this.path) return;
    this.path = path;
    const shown = one("#ed-path");
    if (shown) shown.textContent = path;
    this.memory.message = t("message_move", { from: this.data.path, path });
    this.changed();
    toast(t("renamed"));
  }

  private async remove(): Promise<void> {
    if (!this.exists || this.data.readOnly !== null) return;
    const path = this.data.path;
    this.memory.message = t("message_delete", { name: name(path) });
    const change: Change = { base: this.base, files: { [path]: null }, from: path, path, kind: this.data.kind, before: this.stored.raw, after: "" };
    const outcome = await publish(change, this.data.may, this.memory);
    this.memory.message = t("message_edit", { name: name(path) });
    if (outcome.kind !== "published" && outcome.kind !== "proposed") {
      if (outcome.kind !== "nothing") toast(t("changed_meanwhile"), "bad");
      return;
    }
    this.clean = this.text;
    await this.drafts.forget();
    location.assign(outcome.kind === "proposed" ? `/proposals/${outcome.number}` : "/");
  }
}

/** The name of a file without its ending. */
function name(path: string): string {
  return (path.split("/").at(-1) ?? path).replace(/\.\w+$/, "");
}

function partialsOf(files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).filter(([path]) => path.startsWith("partials/")));
}
