//! Two changes of one text: what both say stretch by stretch, and the text that comes of it. Nothing of either side is lost
//! unless someone says so.

import type { EditorView } from "@codemirror/view";
import { el } from "../dom";
import { NO_WORDS } from "./complete";
import type { Kind } from "./language";
import { type Hunk, merge3 } from "./lines";
import { type Choice, merged } from "./merged";
import { t } from "./page";
import { edit } from "./view";

/** What both sides made of a text. */
export interface Sides {
  base: string;
  mine: string;
  theirs: string;
}

function hunks({ base, mine, theirs }: Sides): Hunk[] {
  const [b, m, th] = [base, mine, theirs].map((text) => text.split("\n")) as [string[], string[], string[]];
  return merge3(b, m, th);
}

/** Shows both sides; gives the text that was made of them, or nothing where someone goes back. */
export function resolve(sides: Sides, kind: Kind, path: string): Promise<string | undefined> {
  const found = hunks(sides);
  const open = found.filter((hunk) => hunk.kind === "conflict");
  const choices: Choice[] = open.map(() => "both");
  const dialog = el("dialog", { class: "ed-dialog ed-merge", "aria-labelledby": "ed-merge-title" });
  const result = el("div", { class: "ed-host ed-result" });
  let view: EditorView | undefined;
  const put = () => {
    if (!view) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: merged(found, choices) } });
  };
  const parts = open.map((hunk, i) => {
    const column = (choice: Choice, lines: string[], label: string) => {
      const input = el("input", { type: "radio", name: `ed-hunk-${i}`, value: choice });
      input.addEventListener("change", () => {
        choices[i] = choice;
        put();
      });
      const text = lines.length > 0 ? el("pre", {}, lines.join("\n")) : el("p", { class: "ed-empty" }, t("merge_nothing"));
      return el("label", { class: `ed-side ed-side-${choice}` }, el("span", {}, input, label), text);
    };
    const both = el("input", { type: "radio", name: `ed-hunk-${i}`, value: "both", checked: true });
    both.addEventListener("change", () => {
      choices[i] = "both";
      put();
    });
    return el("fieldset", { class: "ed-hunk" },
      el("legend", {}, t("merge_place", { n: i + 1, of: open.length })),
      el("div", { class: "ed-sides" },
        column("mine", hunk.mine, t("merge_mine")),
        column("base", hunk.base, t("merge_base")),
        column("theirs", hunk.theirs, t("merge_theirs")),
      ),
      el("label", { class: "ed-both" }, both, t("merge_both")),
    );
  });
  const one = (kind: Hunk["kind"]) => found.filter((hunk) => hunk.kind === kind).length;
  const done = el("button", { type: "submit", class: "primary", value: "done" }, t("merge_done"));
  const back = el("button", { type: "button" }, t("merge_back"));
  const said = open.length === 0 ? t("merge_clean", { mine: one("mine"), theirs: one("theirs") }) : t("merge_open", { n: open.length });
  dialog.append(
    el("form", { method: "dialog" },
      el("h2", { id: "ed-merge-title" }, t("merge_title")),
      el("p", {}, t("merge_why", { path })),
      el("p", { class: "ed-note" }, said),
      ...parts,
      el("h3", {}, t("merge_result")),
      result,
      el("div", { class: "ed-actions" }, done, back),
    ),
  );
  document.body.append(dialog);
  view = edit(result, merged(found, choices), kind, () => NO_WORDS, t("merge_result"), []);
  return new Promise((settle) => {
    back.addEventListener("click", () => dialog.close(""));
    dialog.addEventListener("close", () => {
      const text = dialog.returnValue === "done" ? view?.state.doc.toString() : undefined;
      view?.destroy();
      dialog.remove();
      settle(text);
    });
    dialog.showModal();
  });
}
