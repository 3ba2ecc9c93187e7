// Keyboard shortcuts: a table that the list of shortcuts is made of. Pages add theirs with shortcut().

import { all, el, one, typing } from "./dom";
import { text } from "./text";

interface Shortcut {
  keys: string[];
  says: string;
  run: (event: KeyboardEvent) => void;
}

const shortcuts: Shortcut[] = [];

/** Adds a shortcut of single keys, which does nothing while someone types. */
export function shortcut(keys: string[], says: string, run: (event: KeyboardEvent) => void): void {
  shortcuts.push({ keys, says, run });
}

/** Names a shortcut in the list that is handled elsewhere. */
export function mention(keys: string[], says: string): void {
  shortcuts.push({ keys, says, run: () => undefined });
}

/** Rows that j and k walk: links marked data-row. */
function walk(step: 1 | -1): void {
  const rows = all<HTMLElement>("[data-row]").filter((row) => row.offsetParent !== null);
  if (rows.length === 0) return;
  const at = rows.findIndex((row) => row === document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1);
  rows[next]?.focus();
  rows[next]?.scrollIntoView({ block: "nearest" });
}

export function showShortcuts(): void {
  const list = el("dl", { class: "keys" });
  for (const { keys, says } of shortcuts) {
    if (!says) continue;
    list.append(el("dt", {}, ...keys.map((key) => el("kbd", {}, key))), el("dd", {}, says));
  }
  modal(text("shortcuts"), list);
}

/** A dialog with a title; it goes when it is closed. */
export function modal(title: string, ...content: Node[]): HTMLDialogElement {
  const close = el("button", { type: "button", class: "quiet icon", "aria-label": text("close") }, "×");
  const heading = el("h2", { id: "modal-title" }, title);
  const dialog = el("dialog", { class: "modal", "aria-labelledby": "modal-title" });
  dialog.append(el("header", {}, heading, close), ...content);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function startKeys(): void {
  shortcut(["/"], text("key_search"), (event) => {
    const field = one<HTMLInputElement>("input[type=search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  shortcut(["j", "ArrowDown"], "", (event) => {
    if (event.key === "ArrowDown" && !document.activeElement?.matches("[data-row]")) return;
    event.preventDefault();
    walk(1);
  });
  shortcut(["k", "ArrowUp"], "", (event) => {
    if (event.key === "ArrowUp" && !document.activeElement?.matches("[data-row]")) return;
    event.preventDefault();
    walk(-1);
  });
  mention(["j", "↓"], text("key_next"));
  mention(["k", "↑"], text("key_previous"));
  mention(["Enter"], text("key_open"));
  mention(["Ctrl K"], text("key_palette"));
  shortcut(["?"], text("key_help"), showShortcuts);
  mention(["Esc"], text("key_close"));
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    // from the search field the arrows lead into the list
    if (event.key === "ArrowDown" && field instanceof HTMLInputElement && field.type === "search") {
      const row = one("[data-row]");
      if (row) {
        event.preventDefault();
        row.focus();
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event)) return;
    if (one("dialog[open]")) return;
    shortcuts.find(({ keys }) => keys.includes(event.key))?.run(event);
  });
}
