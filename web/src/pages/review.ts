// A proposal: a comment is written where its line stands, without a reload; what is typed stays until it is sent.

import { all, el, one } from "../dom";
import { shortcut } from "../keys";
import { type Kept, SAY, isFile, isFilled, left, lineOf, placeIn, read, write } from "../review-kept";
import { text } from "../text";

const csrf = one<HTMLMetaElement>('meta[name="csrf"]')?.content ?? "";

const store = `review:${/^\/proposals\/\d+/.exec(location.pathname)?.[0] ?? location.pathname}`;
const stored = read(store);
let kept: Kept = stored.kept;
let isStored = true;

/** A field whose words are kept. */
type Field = HTMLTextAreaElement | HTMLInputElement;
const FIELDS = 'textarea, input[name="title"]';

/** The place of a line that a link stands at. */
function placeOf(link: HTMLElement): string | undefined {
  const place = link.closest<HTMLElement>("[data-path]");
  const at = [link.dataset["side"] ?? "new", link.dataset["line"] ?? "0"] as const;
  return place ? lineOf(place.dataset["path"] ?? "", ...at, place.dataset["example"], place.dataset["rendered"]) : undefined;
}

/** The place that the words of a field are for. */
function placeFor(field: Field): string | undefined {
  if (!field.form || !field.name) return undefined;
  const fields = new FormData(field.form);
  return placeIn(field, (name) => {
    const found = fields.get(name);
    return typeof found === "string" ? found : "";
  });
}

/** The form of a comment below a line; none where there is one already. */
function openForm(link: HTMLElement, focus = true): void {
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
  words.value = kept[placeOf(link) ?? ""] ?? "";
  row.after(form);
  if (focus) words.focus();
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
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    }
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target instanceof HTMLTextAreaElement) {
    const button = event.target.form?.querySelector<HTMLButtonElement>('button[value="comment"], button[value="edit"], button[value="rename"], button.primary');
    if (button) {
      event.preventDefault();
      event.target.form?.requestSubmit(button);
    }
  }
});

// what was typed and not sent comes back with the page, each at its place
const box = one<HTMLTextAreaElement>("#message");

function restore(): void {
  const refused = one('.notice.bad[role="alert"]') !== null;
  const { sent } = stored;
  kept = left(kept, sent, {
    refused,
    conflicts: location.pathname.endsWith("/conflicts"),
    head: one<HTMLInputElement>('input[name="head"]')?.value,
    words: all(".words, h1").map((words) => words.textContent ?? ""),
  });
  // the server gives back what was refused in the form for the whole, whatever place it was for
  const elsewhere = Object.entries(sent?.places ?? {}).filter(([place]) => place !== SAY && !isFile(place));
  const same = (text: string): boolean => text.trim() === box?.value.replace(/\r\n/g, "\n").trim();
  if (box && refused && elsewhere.some(([place, text]) => same(text) && place in kept)) box.value = kept[SAY] ?? "";
  const fields = new Map(all<Field>(FIELDS).map((field) => [placeFor(field), field]));
  const links = new Map<string | undefined, HTMLElement>();
  if (Object.keys(kept).some((place) => place.startsWith("line:"))) {
    for (const link of all("a[data-at]")) links.set(placeOf(link), link);
  }
  for (const [place, text] of Object.entries(kept)) {
    const field = fields.get(place);
    const link = links.get(place);
    if (field) {
      if (field.value === "" || isFilled(place)) field.value = text;
      const answer = field.closest("details");
      if (answer) answer.open = true;
    } else if (link) {
      openForm(link, false);
    } else if (box && !isFile(place)) {
      // its line or thread is not shown any more
      box.value = [box.value, text].filter((part) => part.trim() !== "").join("\n\n");
      kept = { ...kept, [SAY]: box.value };
      delete kept[place];
    }
  }
  isStored = write(store, kept);
}
restore();

document.addEventListener("input", ({ target }) => {
  if (!(target instanceof HTMLElement && target.matches(FIELDS))) return;
  const field = target as Field;
  const place = placeFor(field);
  if (place === undefined) return;
  kept = { ...kept, [place]: field.value };
  if (field.value.trim() === "" && !isFile(place)) delete kept[place];
  isStored = write(store, kept);
});

let leaving = false;
document.addEventListener("submit", (event) => {
  leaving = true;
  if (!(event.target instanceof HTMLFormElement)) return;
  const places: Kept = {};
  for (const field of all<Field>(FIELDS, event.target)) {
    const place = placeFor(field);
    if (place === undefined || (field.value.trim() === "" && !isFile(place))) continue;
    places[place] = field.value;
  }
  kept = { ...kept, ...places };
  const head = one<HTMLInputElement>('input[name="head"]')?.value ?? "";
  isStored = write(store, kept, { places, head });
});
window.addEventListener("beforeunload", (event) => {
  if (!isStored && !leaving && Object.keys(kept).length > 0) event.preventDefault();
});

shortcut(["c"], text("key_comment"), (event) => {
  const link = document.activeElement?.closest<HTMLElement>("a[data-at]");
  event.preventDefault();
  if (link) openForm(link);
  else box?.focus();
});
