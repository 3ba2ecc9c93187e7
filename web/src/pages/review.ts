// A proposal: a comment is written where its line stands, without a reload; what is typed stays until it is sent.

import { all, el, one } from "../dom";
import { shortcut } from "../keys";
import { text } from "../text";

const csrf = one<HTMLMetaElement>('meta[name="csrf"]')?.content ?? "";

/** The form of a comment below a line; none where there is one already. */
function openForm(link: HTMLElement): void {
  const row = link.closest<HTMLElement>(".line");
  const place = link.closest<HTMLElement>("[data-path]");
  if (!row || !place) return;
  const there = row.nextElementSibling;
  if (there?.matches("form.new-comment")) {
    one<HTMLTextAreaElement>("textarea", there)?.focus();
    return;
  }
  const field = (name: string, value: string) => el("input", { type: "hidden", name, value });
  const words = el("textarea", { name: "message", rows: 3, "aria-label": link.getAttribute("aria-label") ?? "" });
  const form = el("form", { method: "post", action: location.pathname, class: "new-comment stack" });
  form.append(
    field("csrf", csrf),
    field("path", place.dataset["path"] ?? ""),
    field("side", link.dataset["side"] ?? "new"),
    field("line", link.dataset["line"] ?? "0"),
  );
  if (place.dataset["rendered"] !== undefined) {
    form.append(field("example", place.dataset["example"] ?? ""), field("rendered", place.dataset["rendered"]));
  }
  const send = el("button", { name: "do", value: "comment" }, text("comment"));
  const cancel = el("button", { type: "button", class: "quiet" }, text("close"));
  cancel.addEventListener("click", () => {
    form.remove();
    link.focus();
  });
  form.append(words, el("div", { class: "actions" }, send, cancel));
  row.after(form);
  words.focus();
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || event.metaKey || event.ctrlKey) return;
  const link = event.target.closest<HTMLElement>("a[data-at]");
  if (link) {
    event.preventDefault();
    openForm(link);
    return;
  }
  const take = event.target.closest<HTMLElement>("[data-take]");
  if (take) {
    const field = one<HTMLTextAreaElement>(`#${take.dataset["take"]}`);
    if (field) {
      field.value = take.dataset["text"] ?? "";
      field.focus();
    }
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target instanceof HTMLTextAreaElement) {
    const button = event.target.form?.querySelector<HTMLButtonElement>('button[value="comment"], button.primary');
    if (button) {
      event.preventDefault();
      event.target.form?.requestSubmit(button);
    }
  }
});

// what was typed and not sent comes back with the page
const box = one<HTMLTextAreaElement>("#message");
const key = `review:${location.pathname}`;
try {
  if (box && box.value === "") box.value = sessionStorage.getItem(key) ?? "";
  box?.addEventListener("input", () => sessionStorage.setItem(key, box.value));
  box?.form?.addEventListener("submit", () => sessionStorage.removeItem(key));
} catch {
  // storage is switched off: then a reload loses it
}

let leaving = false;
for (const form of all<HTMLFormElement>("form")) form.addEventListener("submit", () => (leaving = true));
window.addEventListener("beforeunload", (event) => {
  const typed = all<HTMLTextAreaElement>(".new-comment textarea").some((field) => field.value.trim() !== "");
  if (typed && !leaving) event.preventDefault();
});
document.addEventListener("submit", () => (leaving = true));

shortcut(["c"], text("key_comment"), (event) => {
  const link = document.activeElement?.closest<HTMLElement>("a[data-at]");
  event.preventDefault();
  if (link) openForm(link);
  else box?.focus();
});
