//! What the checker found, as marks under the text, with its fixes as actions.

import type { Action, Diagnostic } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

/** A finding as the server tells it: lines and columns from 1, columns in characters; 0 where the whole is meant. */
export interface Problem {
  severity: "error" | "warning";
  code: string;
  path: string;
  line: number;
  column: number;
  width: number;
  message: string;
  hint?: string;
  /** Texts to put in that mend it. */
  fix?: Insertion[];
}

/** A text to put in at a place. */
export interface Insertion {
  line: number;
  column: number;
  text: string;
}

/** The offset of a line and a column in characters; the nearest there is. */
export function offset(doc: Text, line: number, column: number): number {
  const found = doc.line(Math.min(Math.max(line, 1), doc.lines));
  let units = 0;
  let left = Math.max(column, 1) - 1;
  for (const c of found.text) {
    if (left === 0) break;
    units += c.length;
    left -= 1;
  }
  return found.from + units;
}

/** Where a finding stands in a text. */
export function range(doc: Text, problem: Problem): { from: number; to: number } {
  if (problem.line === 0) return { from: 0, to: Math.min(doc.length, doc.line(1).to) };
  const from = offset(doc, problem.line, problem.column);
  const to = offset(doc, problem.line, Math.max(problem.column, 1) + problem.width);
  return { from, to: Math.max(from, to) };
}

/** The changes that mend findings. */
export function changes(doc: Text, problems: Problem[]): Array<{ from: number; insert: string }> {
  const all = problems.flatMap((problem) => problem.fix ?? []);
  const seen = new Set<string>();
  return all
    .map(({ line, column, text }) => ({ from: offset(doc, line, column), insert: text }))
    .filter(({ from, insert }) => {
      const key = `${from} ${insert}`;
      return !seen.has(key) && seen.add(key);
    })
    .sort((a, b) => a.from - b.from);
}

/** Findings as marks of the editor; `wrap` and `all` name the actions. */
export function diagnostics(doc: Text, problems: Problem[], names: { wrap: string; all: string }): Diagnostic[] {
  const fixable = problems.filter((problem) => (problem.fix?.length ?? 0) > 0);
  const act = (name: string, which: Problem[]): Action => ({
    name,
    apply(view: EditorView) {
      // what was found stands in this text; a text that has changed since is checked again by itself
      if (view.state.doc.eq(doc)) view.dispatch({ changes: changes(doc, which), userEvent: "input.fix" });
    },
  });
  return problems.map((problem) => {
    const actions: Action[] = [];
    if (fixable.includes(problem)) {
      actions.push(act(names.wrap, [problem]));
      if (fixable.length > 1) actions.push(act(names.all, fixable));
    }
    return {
      ...range(doc, problem),
      severity: problem.severity,
      source: problem.code,
      message: problem.hint ? `${problem.message}\n${problem.hint}` : problem.message,
      actions,
    };
  });
}
