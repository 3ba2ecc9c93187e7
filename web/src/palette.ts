// The command palette: prompts by the server's own search, pages and actions by name.

import { api } from "./api";
import { all, el, one } from "./dom";
import { showShortcuts } from "./keys";
import { lang, text } from "./text";
import { switchTheme } from "./look";

interface Hit {
  kind: string;
  name: string;
  title?: string;
  folder?: string;
}

interface Entry {
  label: string;
  hint: string;
  run: () => void;
}

const go = (path: string) => () => location.assign(path);

function switchLanguage(): void {
  const other = lang === "ko" ? "en" : "ko";
  one<HTMLButtonElement>(`.languages button[value="${other}"]`)?.click();
}

function fixed(): Entry[] {
  return [
    { label: text("go_library"), hint: "/", run: go("/") },
    { label: text("go_proposals"), hint: "/proposals", run: go("/proposals") },
    { label: text("go_activity"), hint: "/activity", run: go("/activity") },
    { label: text("go_connect"), hint: "/connect", run: go("/connect") },
    ...(document.body.hasAttribute("data-may-propose")
      ? [
          { label: text("go_new"), hint: "/new", run: go("/new") },
          { label: text("go_there"), hint: "/new#there", run: go("/new#there") },
        ]
      : []),
    { label: text("do_theme"), hint: "", run: switchTheme },
    { label: text("do_language"), hint: "", run: switchLanguage },
    { label: text("do_shortcuts"), hint: "?", run: showShortcuts },
  ];
}

export function openPalette(): void {
  if (one("dialog.palette")) return;
  const field = el("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-autocomplete": "list",
    "aria-label": text("palette"),
    placeholder: text("palette"),
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = el("div", { id: "palette-list", role: "listbox", "aria-label": text("palette") });
  const dialog = el("dialog", { class: "palette", "aria-label": text("palette") }, field, list);
  document.body.append(dialog);

  let entries: Entry[] = [];
  let at = 0;
  let asked: AbortController | null = null;

  const choose = (index: number) => {
    at = Math.max(0, Math.min(index, entries.length - 1));
    all("[role=option]", list).forEach((option, i) => {
      const chosen = i === at;
      option.setAttribute("aria-selected", String(chosen));
      if (chosen) {
        option.scrollIntoView({ block: "nearest" });
        field.setAttribute("aria-activedescendant", option.id);
      }
    });
  };
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    dialog.close();
    entry.run();
  };
  const draw = (groups: [string, Entry[]][]) => {
    list.replaceChildren();
    entries = [];
    for (const [name, group] of groups) {
      if (group.length === 0) continue;
      const heading = el("div", { class: "palette-group", role: "presentation" }, name);
      list.append(heading);
      for (const entry of group) {
        const number = entries.push(entry) - 1;
        const option = el(
          "div",
          { role: "option", id: `palette-${number}`, "aria-selected": "false" },
          el("span", {}, entry.label),
          el("span", { class: "hint" }, entry.hint),
        );
        option.addEventListener("click", () => run(entry));
        option.addEventListener("pointermove", () => {
          if (at !== number) choose(number);
        });
        list.append(option);
      }
    }
    if (entries.length === 0) list.append(el("p", { class: "hint" }, text("palette_empty")));
    choose(0);
  };
  const search = async () => {
    const typed = field.value.trim();
    const wanted = typed.toLowerCase();
    const pages = fixed().filter((entry) => `${entry.label} ${entry.hint}`.toLowerCase().includes(wanted));
    asked?.abort();
    const mine = (asked = new AbortController());
    let hits: Hit[] = [];
    try {
      const answer = await api<{ hits: Hit[] }>(`/api/v1/search?kind=prompt&limit=12&q=${encodeURIComponent(typed)}`, {
        signal: mine.signal,
      });
      hits = answer.hits;
    } catch {
      if (mine.signal.aborted) return;
    }
    const prompts = hits.map((hit) => ({
      label: hit.title ?? hit.name,
      hint: `/${hit.name}`,
      run: go(`/prompts/${encodeURIComponent(hit.name)}`),
    }));
    draw([
      [text("palette_prompts"), prompts],
      [text("palette_pages"), pages],
    ]);
  };
  field.addEventListener("input", () => void search());
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "Enter") run(entries[at]);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    asked?.abort();
    dialog.remove();
  });
  dialog.showModal();
  void search();
}
