// The prompt page: values are rendered as they are typed, completed by the server, and examples are put into the form.

import { api } from "../api";
import { all, el, one, toast } from "../dom";
import { text } from "../text";

const form = one<HTMLFormElement>("#values");

let asked: AbortController | null = null;

/** Says that what is shown is not for the values in the form: nothing of it can be copied then. */
function outdate(): void {
  for (const part of all("[data-live-part]")) {
    part.setAttribute("data-stale", "");
    for (const button of all<HTMLButtonElement>("button[data-copy], button[data-copy-of]", part)) button.disabled = true;
  }
}

/** Why a page is none of a prompt, in its own words. */
function reason(page: Document): string {
  const said = one(".notice", page) ?? one("main h1", page);
  return said?.textContent.trim() || text("failed");
}

/** Puts the parts of another page of this prompt in place of this one's. */
async function load(address: string, body: URLSearchParams | null, keepForm: boolean): Promise<void> {
  asked?.abort();
  const mine = (asked = new AbortController());
  for (const part of all("[data-live-part]")) part.setAttribute("aria-busy", "true");
  const init: RequestInit = { headers: { Accept: "text/html", "X-Cuebook": "1" }, signal: mine.signal };
  if (body) {
    init.method = "POST";
    init.body = body;
  }
  let page: Document;
  let isGood = false;
  try {
    const response = await fetch(address, init);
    isGood = response.ok;
    page = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    if (!mine.signal.aborted) {
      outdate();
      toast(text("offline"), "bad");
    }
    return;
  } finally {
    if (!mine.signal.aborted) for (const part of all("[data-live-part]")) part.removeAttribute("aria-busy");
  }
  if (!isGood || !one("#rendered", page)) {
    outdate();
    toast(reason(page), "bad");
    return;
  }
  const open = all<HTMLDetailsElement>("details[open]").map((details) => details.querySelector("pre")?.id);
  for (const part of all("[data-live-part]")) {
    const next = one(`#${part.id}`, page);
    if (next) part.replaceWith(next);
  }
  for (const id of open) {
    const details = id ? one(`#${id}`)?.closest("details") : null;
    if (details) details.open = true;
  }
  const tabs = one(".examples", page);
  if (tabs) one(".examples")?.replaceWith(tabs);
  if (!keepForm) {
    for (const field of all<HTMLTextAreaElement>("#values textarea", page)) {
      const own = document.getElementById(field.id);
      if (own instanceof HTMLTextAreaElement) own.value = field.value;
    }
  }
}

function fields(of: HTMLFormElement): URLSearchParams {
  const out = new URLSearchParams();
  for (const [name, value] of new FormData(of)) if (typeof value === "string") out.append(name, value);
  return out;
}

if (form) {
  let timer = 0;
  const render = () => void load(form.action, fields(form), true);
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(render, 200);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    render();
  });
  for (const field of all<HTMLTextAreaElement>("textarea[data-argument]", form)) {
    // Enter is for the next field; Shift-Enter for a line end
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.defaultPrevented) return;
      event.preventDefault();
      form.requestSubmit();
    });
    if (field.hasAttribute("data-completes")) completes(form, field);
  }
}

document.addEventListener("click", (event) => {
  const tab = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[data-example]") : null;
  if (!tab || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.replaceState(null, "", tab.href);
  const name = tab.textContent;
  void load(tab.href, null, false).then(() => {
    // the tabs are new ones now
    all<HTMLAnchorElement>("a[data-example]").find((other) => other.textContent === name)?.focus();
  });
});

/** Offers the server's values below a field while it is typed into. */
function completes(within: HTMLFormElement, field: HTMLTextAreaElement): void {
  const list = el("div", { role: "listbox", class: "offers", id: `o.${field.name}`, hidden: true, "aria-label": field.name });
  const place = el("div", { class: "completing" });
  field.replaceWith(place);
  place.append(field, list);
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("aria-expanded", "false");
  let at = -1;
  // as they are; the list shows what hides in them
  let offered: string[] = [];
  let mine: AbortController | null = null;

  const close = () => {
    mine?.abort();
    list.hidden = true;
    at = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const choose = (index: number) => {
    const options = all("[role=option]", list);
    at = Math.max(-1, Math.min(index, options.length - 1));
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    const chosen = options[at];
    if (chosen) {
      field.setAttribute("aria-activedescendant", chosen.id);
      chosen.scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
  };
  const take = (value: string) => {
    field.value = value;
    close();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };
  const offer = async () => {
    mine?.abort();
    const asking = (mine = new AbortController());
    const context: Record<string, string> = {};
    for (const other of all<HTMLTextAreaElement>("textarea[data-argument]", within)) {
      const name = other.dataset["argument"];
      if (name && other !== field && other.value) context[name] = other.value;
    }
    let values: string[];
    try {
      const body = { argument: field.dataset["argument"], value: field.value, context };
      values = (await api<{ values: string[] }>(within.dataset["complete"] ?? "", { body, signal: asking.signal })).values;
    } catch {
      return; // completion is advice
    }
    if (asking.signal.aborted || document.activeElement !== field) return;
    offered = values.filter((value) => value !== field.value);
    list.replaceChildren(
      ...offered.map((value, i) => {
        const option = el("div", { role: "option", id: `${list.id}.${i}`, "aria-selected": "false" }, value);
        option.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          take(value);
        });
        return option;
      }),
    );
    list.hidden = offered.length === 0;
    field.setAttribute("aria-expanded", String(offered.length > 0));
    at = -1;
  };
  field.addEventListener("focus", () => void offer());
  field.addEventListener("input", () => void offer());
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || list.hidden) return;
    if (event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "Escape") close();
    else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) {
      take(offered[at] ?? "");
      if (event.key === "Tab") return;
    } else return;
    event.preventDefault();
  });
}
