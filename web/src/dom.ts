// A few ways to the page's elements. Text is always text here: nothing is parsed as HTML, and nothing in it hides.

import { visible } from "./visible";

// attributes that are read or said aloud
const SAID = new Set(["title", "aria-label", "placeholder"]);

type Attributes = Record<string, string | number | boolean | undefined>;

/** A new element. `true` gives an attribute without a value, `false` and undefined none. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, SAID.has(name) ? visible(String(value)) : String(value));
  }
  element.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

export function one<E extends Element = HTMLElement>(selector: string, within: ParentNode = document): E | null {
  return within.querySelector<E>(selector);
}

export function all<E extends Element = HTMLElement>(selector: string, within: ParentNode = document): E[] {
  return [...within.querySelectorAll<E>(selector)];
}

/** Whether someone is typing, so that single letters are not shortcuts. */
export function typing(event: KeyboardEvent): boolean {
  const target = event.target;
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input, textarea, select, [role=textbox]"))
  );
}

/** Says something for a moment, also to screen readers. */
export function toast(message: string, kind: "plain" | "bad" = "plain"): void {
  const place = one(".toasts");
  if (!place) return;
  const note = el("p", { class: kind === "bad" ? "toast bad" : "toast" }, message);
  place.append(note);
  setTimeout(() => note.remove(), kind === "bad" ? 9000 : 3000);
}
