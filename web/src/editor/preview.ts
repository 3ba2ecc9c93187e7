//! The rendered messages beside the text: for an example or for values typed in, with what they weigh and how they are rendered.

import { api } from "../api";
import { all, el } from "../dom";
import { named } from "./complete";
import { FrontMatter } from "./front-matter";
import { Loop } from "./loop";
import { t } from "./page";
import type { Problem } from "./problems";
import { estimate } from "./tokens";

/** A message as the server renders it. */
interface Message {
  role: string;
  content: { type: string; text?: string | null; uri?: string; mimeType?: string };
}

interface Answer {
  problems: Problem[];
  messages: Message[];
  lane?: { lane: string; reason?: { why: string; path: string; line: number; column: number } };
}

/** What is rendered. */
export interface Sight {
  /** The prompt's path, and its text. */
  path: string;
  text: string;
  /** Partials that are not saved either, by path. */
  files: Record<string, string>;
}

interface Question extends Sight {
  arguments: Record<string, string>;
}

/** The panel of the preview; it also finds out what is wrong with the text. */
export class Preview {
  private readonly tabs = el("div", { class: "ed-examples", role: "tablist", "aria-label": t("examples") });
  private readonly values = el("div", { class: "ed-values" });
  private readonly out = el("div", { class: "ed-messages", role: "region", "aria-label": t("preview"), tabindex: "0" });
  private readonly note = el("p", { class: "ed-note", role: "status" });
  private readonly loop: Loop<Question, Answer>;
  private sight: Sight | undefined;
  private shape = "";
  /** The example that is shown; -1 for values typed in. */
  private example = 0;
  private typed: Record<string, string> = {};

  constructor(
    host: HTMLElement,
    private readonly found: (problems: Problem[], question: Sight, newest: boolean) => void,
    private readonly go: (line: number, column: number) => void,
  ) {
    host.append(this.tabs, this.values, this.note, this.out);
    this.loop = new Loop<Question, Answer>(
      (question, signal) => api<Answer>("/api/v1/preview", { body: question, signal }),
      220,
      (answer, question, newest) => this.take(answer, question, newest),
      (error) => {
        this.note.textContent = error instanceof Error ? error.message : String(error);
        this.out.classList.add("ed-old");
      },
    );
  }

  /** Shows a text, a moment from now or now. */
  show(sight: Sight, now = false): void {
    this.sight = sight;
    this.arrange();
    this.loop.ask({ ...sight, arguments: this.arguments() }, now);
  }

  /** Ends what is asked. */
  stop(): void {
    this.loop.stop();
  }

  private arguments(): Record<string, string> {
    if (this.example < 0) return this.typed;
    const front = FrontMatter.read(this.sight?.text ?? "");
    return exampleArguments(front, this.example);
  }

  /** The tabs of the examples, made again only when they change. */
  private arrange(): void {
    const front = FrontMatter.read(this.sight?.text ?? "");
    if (front.fault !== undefined) return;
    const examples = Array.from({ length: front.count(["examples"]) }, (_, i) => front.value(["examples", i, "name"]) || t("example_n", { n: i + 1 }));
    const names = named(front, "arguments");
    if (this.example >= examples.length) this.example = examples.length - 1;
    const shape = JSON.stringify([examples, names, this.example]);
    if (shape === this.shape) return;
    this.shape = shape;
    const focused = this.tabs.contains(document.activeElement);
    this.tabs.replaceChildren(
      ...[...examples, t("typed_in")].map((label, i) => {
        const index = i < examples.length ? i : -1;
        const selected = index === this.example;
        const tab = el("button", { type: "button", role: "tab", "aria-selected": String(selected), tabindex: selected ? 0 : -1 }, label);
        tab.addEventListener("click", () => this.select(index, front));
        tab.addEventListener("keydown", (event) => {
          const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
          if (step === 0) return;
          const next = all<HTMLButtonElement>("button", this.tabs).at((i + step) % (examples.length + 1));
          next?.click();
          event.preventDefault();
        });
        return tab;
      }),
    );
    if (focused) all<HTMLButtonElement>("[aria-selected=true]", this.tabs)[0]?.focus();
    this.tabs.hidden = names.length === 0 && examples.length === 0;
    this.fields(front, names);
  }

  private select(index: number, front: FrontMatter): void {
    // what is typed begins with what was seen
    if (index < 0 && Object.keys(this.typed).length === 0 && this.example >= 0) this.typed = exampleArguments(front, this.example);
    this.example = index;
    if (this.sight) this.show(this.sight, true);
  }

  private fields(front: FrontMatter, names: Array<[string, string | undefined]>): void {
    if (this.example >= 0 || names.length === 0) {
      this.values.replaceChildren();
      return;
    }
    this.values.replaceChildren(
      ...names.map(([name, description], i) => {
        const list = el("datalist", { id: `ed-value-${i}` });
        const offered = [...front.texts(["arguments", i, "values"]), ...front.texts(["arguments", i, "values", "list"])];
        list.append(...offered.map((value) => el("option", { value })));
        const input = el("input", { list: list.id, value: this.typed[name] ?? "", placeholder: front.value(["arguments", i, "default"]) ?? "", title: description ?? "" });
        input.addEventListener("input", () => {
          this.typed = { ...this.typed, [name]: input.value };
          if (this.sight) this.loop.ask({ ...this.sight, arguments: this.typed });
        });
        return el("label", {}, el("span", {}, name), input, list);
      }),
    );
  }

  private take(answer: Answer, question: Question, newest: boolean): void {
    this.found(answer.problems, question, newest);
    const errors = answer.problems.filter((problem) => problem.severity === "error");
    if (answer.messages.length === 0 && errors.length > 0) {
      // the last that could be rendered stays in view
      this.out.classList.add("ed-old");
      this.note.textContent = errors[0]?.code === "arguments" ? errors[0].message : t("not_rendered", { n: errors.length });
      return;
    }
    this.out.classList.remove("ed-old");
    this.note.replaceChildren(...this.said(answer));
    this.out.replaceChildren(...answer.messages.map((message) => shown(message)));
    if (answer.messages.length === 0) this.out.append(el("p", { class: "ed-empty" }, t("renders_nothing")));
  }

  private said(answer: Answer): Node[] {
    const total = answer.messages.reduce((sum, message) => sum + estimate(message.content.text ?? ""), 0);
    const tokens = el("span", { title: t("tokens_how") }, t("tokens", { n: total.toLocaleString(document.documentElement.lang) }));
    const lane = answer.lane;
    if (!lane) return [tokens];
    const label = el("span", { class: `ed-lane ed-lane-${lane.lane}`, title: t(`lane_${lane.lane}_help`) }, t(`lane_${lane.lane}`));
    if (!lane.reason) return [tokens, label];
    const { why, line, column, path } = lane.reason;
    const place = el("button", { type: "button", class: "ed-link" }, `${path}:${line}:${column}`);
    place.addEventListener("click", () => this.go(line, column));
    return [tokens, label, el("span", { class: "ed-why" }, why), path === this.sight?.path ? place : el("span", {}, `${path}:${line}`)];
  }
}

function exampleArguments(front: FrontMatter, index: number): Record<string, string> {
  const path = ["examples", index, "arguments"] as const;
  return Object.fromEntries(front.keys(path).map((key) => [key, front.value([...path, key]) ?? ""]));
}

function shown({ role, content }: Message): HTMLElement {
  const weight = estimate(content.text ?? "");
  const head = el("header", {}, el("span", { class: `ed-role ed-role-${role}` }, t(`role_${role}`)));
  if (content.uri) head.append(el("code", {}, content.uri), el("span", { class: "ed-kind" }, content.type));
  if (weight > 0) head.append(el("span", { class: "ed-weight", title: t("tokens_how") }, t("tokens", { n: weight.toLocaleString(document.documentElement.lang) })));
  const text = el("pre", {}, content.text ?? "");
  if (!content.uri) return el("article", { class: "ed-message" }, head, text);
  if (content.text === null || content.text === undefined) return el("article", { class: "ed-message" }, head, el("p", { class: "ed-empty" }, content.mimeType ?? ""));
  const details = el("details", {}, el("summary", {}, t("embedded_text")), text);
  return el("article", { class: "ed-message" }, head, details);
}
