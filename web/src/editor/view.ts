//! The text field of the editor: CodeMirror in a shadow root, where the page's policy lets it bring its own style sheet.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, dropCursor, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { type Words, completer } from "./complete";
import { type Kind, colours, language } from "./language";
import { t } from "./page";

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--code-back)", fontSize: "var(--code-size, 13.5px)", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  ".cm-line": { padding: "0 14px 0 8px" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--code-back)", color: "var(--code-quiet)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--code-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection": {
    backgroundColor: "var(--code-selection) !important",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--code-match) !important", outline: "none" },
  ".cm-selectionMatch": { backgroundColor: "var(--code-match)" },
  ".cm-searchMatch": { backgroundColor: "var(--code-find)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    boxShadow: "var(--shadow)",
    overflow: "hidden",
    maxWidth: "min(38rem, 92vw)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 10px", lineHeight: "1.5" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.75", fontStyle: "normal", fontFamily: "var(--sans)" },
  ".cm-diagnostic": { padding: "8px 12px", fontFamily: "var(--sans)", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-diagnosticSource": { fontFamily: "var(--mono)", color: "var(--code-quiet)" },
  ".cm-diagnosticAction": {
    font: "600 13px var(--sans)",
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
    borderRadius: "6px",
    padding: "4px 10px",
    margin: "8px 8px 2px 0",
    cursor: "pointer",
    display: "block",
  },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1px", textUnderlineOffset: "4px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn) 1px", textUnderlineOffset: "4px" },
  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--raised)", borderColor: "var(--line)" },
  ".cm-panel.cm-search": { padding: "8px 10px", fontFamily: "var(--sans)" },
  ".cm-textfield": { backgroundColor: "var(--back)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px", padding: "4px 8px" },
  ".cm-button": { background: "none", backgroundColor: "var(--back)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px", padding: "4px 8px" },
  "&.cm-merge-b .cm-changedText, .cm-insertedLine .cm-changedText": { background: "var(--added-strong)" },
  "&.cm-merge-b .cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--added)" },
  ".cm-deletedChunk": { backgroundColor: "var(--removed)", paddingLeft: "8px" },
  ".cm-deletedChunk .cm-deletedText": { background: "var(--removed-strong)" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"⋯"' },
  ".cm-collapsedLines": { background: "var(--code-line)", color: "var(--code-quiet)", fontFamily: "var(--sans)" },
});

const base: Extension = [theme, syntaxHighlighting(colours), EditorView.lineWrapping, lineNumbers(), highlightSpecialChars()];

/** A place for an editor in an element. */
function root(host: HTMLElement): ShadowRoot {
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  shadow.replaceChildren();
  return shadow;
}

/** The editor of a file. */
export function edit(host: HTMLElement, text: string, kind: Kind, words: () => Words, label: string, more: Extension): EditorView {
  const parent = root(host);
  const known = language(kind);
  const extensions = [
    base,
    known ? [known] : [],
    history(),
    drawSelection(),
    dropCursor(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    search({ top: true }),
    lintGutter(),
    autocompletion({ override: [completer(kind, words)], icons: false, maxRenderedOptions: 60 }),
    keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
    EditorState.phrases.of(phrases()),
    more,
  ];
  return new EditorView({ state: EditorState.create({ doc: text, extensions }), parent, root: parent });
}

/** A text that is only read, as it differs from another. */
export function difference(host: HTMLElement, before: string, after: string, kind: Kind, label: string): EditorView {
  const parent = root(host);
  const known = language(kind);
  const extensions = [
    base,
    known ? [known] : [],
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    EditorState.phrases.of(phrases()),
    unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 2, minSize: 5 }, gutter: true, syntaxHighlightDeletions: true }),
  ];
  return new EditorView({ state: EditorState.create({ doc: after, extensions }), parent, root: parent });
}

/** What CodeMirror says, in the language of the page. */
function phrases(): Record<string, string> {
  const all = [
    "Find", "Replace", "next", "previous", "all", "match case", "by word", "regexp", "replace", "replace all", "close",
    "current match", "on line", "replaced $ matches", "replaced match on line $", "Go to line", "go", "Control character",
    "Completions", "Diagnostics", "No diagnostics", "$ unchanged lines",
  ];
  return Object.fromEntries(all.map((phrase) => [phrase, t(`cm_${phrase.toLowerCase().replace(/\W+/g, "_").replace(/^_|_$/g, "")}`)]));
}
