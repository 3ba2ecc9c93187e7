// How things look on this machine: the theme, times in the reader's zone.

import { all, one, toast } from "./dom";
import { lang, text } from "./text";

/** System, then the other one of it, then back: what is chosen is kept on this machine. */
export function switchTheme(): void {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const shown = root.dataset["theme"] ?? (dark ? "dark" : "light");
  const next = shown === "dark" ? "light" : "dark";
  const isSystem = next === (dark ? "dark" : "light");
  if (isSystem) delete root.dataset["theme"];
  else root.dataset["theme"] = next;
  try {
    if (isSystem) localStorage.removeItem("cuebook-theme");
    else localStorage.setItem("cuebook-theme", next);
  } catch {
    // storage is switched off: it holds until the page is left
  }
  toast(text(isSystem ? "theme_system" : next === "dark" ? "theme_dark" : "theme_light"));
}

function ago(seconds: number): string | null {
  if (seconds < 60) return text("just_now");
  if (seconds < 3600) return text("minutes", { n: Math.floor(seconds / 60) });
  if (seconds < 86_400) return text("hours", { n: Math.floor(seconds / 3600) });
  if (seconds < 30 * 86_400) return text("days", { n: Math.floor(seconds / 86_400) });
  return null;
}

/** Times as people say them, with the whole time as a title. The width is kept by the style sheet. */
export function sayTimes(within: ParentNode = document): void {
  const full = new Intl.DateTimeFormat(lang, { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" });
  const day = new Intl.DateTimeFormat(lang, { dateStyle: "medium" });
  for (const time of all<HTMLTimeElement>("time[datetime]", within)) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = full.format(at);
    time.textContent = ago((Date.now() - at.getTime()) / 1000) ?? day.format(at);
  }
}

/** Buttons with data-copy copy their text, or that of the element they name by data-copy-of. */
export function startCopying(): void {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-copy], [data-copy-of]") : null;
    if (!button) return;
    const of = button.dataset["copyOf"];
    const content = of ? one(`#${of}`)?.textContent ?? "" : button.dataset["copy"] ?? "";
    void copy(content.replace(/\n$/, ""));
  });
}

export async function copy(content: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(content);
    toast(text("copied"));
  } catch {
    // no secure context: plain http on another machine
    const field = document.createElement("textarea");
    field.value = content;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    toast(text(done ? "copied" : "copy_failed"), done ? "plain" : "bad");
  }
}
