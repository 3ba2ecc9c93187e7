//! The dialog before a change goes out: what it does, what for, and where it goes. A text leaves the editor only when the
//! server has said that it has it.

import type { EditorView } from "@codemirror/view";
import { ApiError, api } from "../api";
import { el } from "../dom";
import { open as stored } from "./bytes";
import type { Kind } from "./language";
import { t } from "./page";
import type { Problem } from "./problems";
import { difference } from "./view";

/** What a file holds afterwards; null removes it. */
export type Files = Record<string, string | null>;

/** What would be saved. */
export interface Change {
  base: string | null;
  files: Files;
  /** The file that is edited, where it is and where it will be. */
  from: string;
  path: string;
  kind: Kind;
  before: string;
  after: string;
}

/** What a check of the whole library says of a change. */
export interface Checked {
  problems: Problem[];
  errors: number;
  published: Array<{ name: string; kind: "added" | "changed" | "moved" }>;
  removed: string[];
  resources_changed: number;
}

/** What became of it. */
export type Outcome =
  | { kind: "published"; commit: string; lines: string[] }
  | { kind: "proposed"; number: number }
  | { kind: "conflict"; now: string; base: string | null; theirs: string | null }
  | { kind: "problems"; problems: Problem[] }
  | { kind: "nothing" };

/** Checks a change as if it were published. */
export function check(files: Files, signal?: AbortSignal): Promise<Checked> {
  return api<Checked>("/editor/check", { body: { files }, ...(signal ? { signal } : {}) });
}

/** Asks what the change is for and sends it. What was typed for the message is kept in `memory` while it does not work. */
export function publish(change: Change, may: { publish: boolean; propose: boolean }, memory: { message: string }): Promise<Outcome> {
  const dialog = el("dialog", { class: "ed-dialog", "aria-labelledby": "ed-publish-title" });
  const message = el("textarea", { id: "ed-message", rows: 3, required: true, placeholder: t("message_hint") });
  message.value = memory.message;
  message.addEventListener("input", () => {
    memory.message = message.value;
  });
  const effect = el("div", { class: "ed-effect", role: "status" }, el("p", { class: "ed-note" }, t("checking")));
  const refused = el("p", { class: "ed-refused", role: "alert" });
  const host = el("div", { class: "ed-host ed-diff" });
  const go = el("button", { type: "submit", class: "primary", value: "publish" }, t("publish"));
  const propose = el("button", { type: "submit", class: may.publish ? "" : "primary", value: "propose" }, t("propose"));
  const cancel = el("button", { type: "button" }, t("cancel"));
  const form = el("form", { method: "dialog" },
    el("h2", { id: "ed-publish-title" }, t(may.publish ? "publish_title" : "propose_title", { path: change.path })),
    el("label", { class: "ed-field" }, el("span", {}, t("message")), message),
    effect,
    host,
    refused,
    el("div", { class: "ed-actions" }, ...(may.publish ? [go] : []), ...(may.propose ? [propose] : []), cancel),
  );
  dialog.append(form);
  document.body.append(dialog);
  const shown: EditorView = difference(host, stored(change.before).text, stored(change.after).text, change.kind, t("difference"));
  const stop = new AbortController();
  check(change.files, stop.signal).then(
    (checked) => effect.replaceChildren(...told(checked)),
    (error: unknown) => effect.replaceChildren(el("p", { class: "ed-note" }, error instanceof ApiError && error.problem.status !== 409 ? error.message : "")),
  );
  return new Promise((settle) => {
    const end = (outcome: Outcome) => {
      stop.abort();
      shown.destroy();
      dialog.close();
      dialog.remove();
      settle(outcome);
    };
    const send = async (how: "publish" | "propose") => {
      refused.textContent = "";
      if (message.value.trim() === "") {
        refused.textContent = t("message_missing");
        message.focus();
        return;
      }
      for (const button of [go, propose]) button.disabled = true;
      form.setAttribute("aria-busy", "true");
      try {
        end(await sent(how, change, message.value.trim()));
      } catch (error) {
        const outcome = error instanceof ApiError ? refusal(error, change) : undefined;
        if (outcome) end(outcome);
        else refused.textContent = t("kept", { why: error instanceof Error ? error.message : String(error) });
      } finally {
        for (const button of [go, propose]) button.disabled = false;
        form.removeAttribute("aria-busy");
      }
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void send((event.submitter as HTMLButtonElement | null)?.value === "propose" || !may.publish ? "propose" : "publish");
    });
    message.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        void send(may.publish ? "publish" : "propose");
      }
    });
    cancel.addEventListener("click", () => end({ kind: "nothing" }));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      end({ kind: "nothing" });
    });
    dialog.showModal();
    message.focus();
    message.select();
  });
}

async function sent(how: "publish" | "propose", change: Change, message: string): Promise<Outcome> {
  const { base, files } = change;
  if (how === "publish") {
    const { commit, lines } = await api<{ commit: string; lines: string[] }>("/api/v1/changes", { body: { base, files, message } });
    if (typeof commit !== "string") throw new Error(t("no_answer"));
    return { kind: "published", commit, lines };
  }
  // a proposal is made of a commit of main
  if (base === null) throw new Error(t("propose_empty"));
  const [first = "", ...rest] = message.split("\n");
  // a tab is taken in a message, and not in a title
  const title = first.replace(/\s+/g, " ").trim();
  const body = rest.join("\n").trim();
  const { number } = await api<{ number: number }>("/api/v1/proposals", { body: { title, ...(body ? { message: body } : {}), base, files } });
  if (typeof number !== "number") throw new Error(t("no_answer"));
  return { kind: "proposed", number };
}

/** What a refusal leads to besides its line. */
function refusal(error: ApiError, change: Change): Outcome | undefined {
  const { status, now, conflicts, problems } = error.problem as unknown as { status: number; now?: string; conflicts?: Array<{ path: string; base: string | null; now: string | null }>; problems?: Problem[] };
  const conflict = conflicts?.find(({ path }) => path === change.path || path === change.from);
  if (status === 409 && conflict && now) return { kind: "conflict", now, base: conflict.base, theirs: conflict.now };
  if (status === 422 && problems && problems.some((problem) => problem.path === change.path)) return { kind: "problems", problems };
  return undefined;
}

/** What a check says, for people. */
export function told(checked: Checked): Node[] {
  const out: Node[] = [];
  if (checked.errors > 0) out.push(el("p", { class: "ed-bad" }, t("check_errors", { n: checked.errors })));
  // while it is refused nothing of it happens
  const effects = checked.errors > 0 ? [] : checked.published.map(({ name, kind }) => `${t(`effect_${kind}`)} /${name}`);
  if (checked.errors === 0) effects.push(...checked.removed.map((name) => `${t("effect_removed")} /${name}`));
  if (checked.errors === 0 && checked.resources_changed > 0) effects.push(t("effect_resources", { n: checked.resources_changed }));
  if (effects.length > 0) out.push(el("ul", { class: "ed-effects" }, ...effects.slice(0, 30).map((text) => el("li", {}, text))));
  else if (checked.errors === 0) out.push(el("p", { class: "ed-note" }, t("effect_none")));
  const list = checked.problems.slice(0, 20).map((problem) =>
    el("li", { class: `ed-${problem.severity}` }, el("code", {}, problem.line > 0 ? `${problem.path}:${problem.line}` : problem.path || "—"), " ", el("span", {}, problem.message)),
  );
  if (list.length > 0) out.push(el("ul", { class: "ed-found" }, ...list));
  return out;
}
