// Search as you type: the same page is asked for with another query, and its list put in place of this one. What is in
// the address bar is what is shown.

import { one, toast } from "../dom";
import { sayTimes } from "../look";
import { text } from "../text";

const form = one<HTMLFormElement>("form[data-live]");
const field = form?.querySelector<HTMLInputElement>("input[type=search]");

if (form && field) {
  let asked: AbortController | null = null;
  let shown = location.search;

  const load = async (search: string, push: boolean) => {
    asked?.abort();
    const mine = (asked = new AbortController());
    let page: Document;
    try {
      const response = await fetch(`/${search}`, { headers: { Accept: "text/html" }, signal: mine.signal });
      page = new DOMParser().parseFromString(await response.text(), "text/html");
    } catch {
      if (!mine.signal.aborted) toast(text("offline"), "bad");
      return;
    }
    for (const selector of ["#results", "#count", ".filters"]) {
      const [now, next] = [one(selector), one(selector, page)];
      if (now && next) now.replaceWith(next);
    }
    sayTimes();
    if (push && search !== shown) history.replaceState(null, "", `/${search}`);
    shown = search;
  };
  const wanted = () => {
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (typeof value === "string" && value) fields.append(name, value);
    const search = fields.toString();
    return search ? `?${search}` : "";
  };
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void load(wanted(), true), 60);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    void load(wanted(), true).then(() => one("[data-row]")?.focus());
  });
  window.addEventListener("popstate", () => {
    const query = new URLSearchParams(location.search).get("q") ?? "";
    field.value = query;
    void load(location.search, false);
  });
}

export {};
