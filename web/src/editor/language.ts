//! How a library's files are coloured: front matter, Tera, markers, TOML, values. Knows nothing of what is right or wrong.

import { HighlightStyle, StreamLanguage, type StringStream } from "@codemirror/language";
import { tags } from "@lezer/highlight";

/** What kind of file is edited. */
export type Kind = "prompt" | "partial" | "resource" | "values" | "labels" | "library" | "other";

interface State {
  /** Where we are in the file. */
  part: "first" | "yaml" | "body";
  /** The construct that is open, and the quote that is open in it. */
  open: "" | "expression" | "tag" | "comment";
  quote: string;
  /** Between `{% raw %}` and `{% endraw %}`. */
  raw: boolean;
  /** The fence that is open, e.g. three backquotes. */
  fence: string;
  /** The tag's word has not come yet, or was `raw` or `endraw`. */
  word: "" | "first" | "raw" | "endraw";
  /** Whether the next name is a filter. */
  filter: boolean;
}

const TAG_WORDS = /^(set|set_global|endset|endset_global|include|for|endfor|if|elif|else|endif|filter|endfilter|break|continue|raw|endraw)\b/;
const OPERATORS = /^(and|or|not|in|is|if|else)\b/;

function template(stream: StringStream, state: State): string | null {
  if (state.open === "comment") {
    if (stream.match(/^.*?#\}/)) state.open = "";
    else stream.skipToEnd();
    return "comment";
  }
  if (state.quote) {
    const end = stream.string.indexOf(state.quote, stream.pos);
    if (end < 0) stream.skipToEnd();
    else {
      stream.pos = end + 1;
      state.quote = "";
    }
    return "string";
  }
  const close = state.open === "expression" ? /^-?\}\}/ : /^-?%\}/;
  if (stream.match(close)) {
    if (state.word === "raw") state.raw = true;
    if (state.word === "endraw") state.raw = false;
    state.open = "";
    state.word = "";
    return "bracket";
  }
  if (stream.eatSpace()) return null;
  const quote = stream.match(/^["'`]/) as RegExpMatchArray | null;
  if (quote) {
    state.quote = quote[0];
    return "string";
  }
  if (state.open === "tag" && state.word === "first") {
    const word = stream.match(TAG_WORDS) as RegExpMatchArray | null;
    if (word) {
      state.word = word[0] === "raw" ? "raw" : word[0] === "endraw" ? "endraw" : "";
      return "keyword";
    }
    state.word = "";
  }
  if (stream.match(/^\|/)) {
    state.filter = true;
    return "operator";
  }
  if (stream.match(/^\d[\d.]*/)) return "number";
  if (stream.match(/^(true|false|none)\b/i)) return "atom";
  if (!state.filter && stream.match(OPERATORS)) return "keyword";
  if (stream.match(/^[A-Za-z_]\w*/)) {
    const filter = state.filter;
    state.filter = false;
    if (filter) return "function";
    return /^\s*=(?!=)/.test(stream.string.slice(stream.pos)) ? "attribute" : "variable";
  }
  state.filter = false;
  if (stream.match(/^(==|!=|<=|>=|[-+*/%~<>=])/)) return "operator";
  stream.next();
  return null;
}

/** Opens a construct where one begins. */
function opens(stream: StringStream, state: State): boolean {
  if (state.raw) {
    if (!/^\{%-?\s*endraw\s*-?%\}/.test(stream.string.slice(stream.pos))) return false;
  }
  if (stream.match(/^\{\{-?/)) state.open = "expression";
  else if (stream.match(/^\{%-?/)) {
    state.open = "tag";
    state.word = "first";
  } else if (stream.match(/^\{#/)) {
    state.open = "comment";
  } else return false;
  return true;
}

const MARKER = /^\s*<!--\s*(role|resource)\s*:\s*.*?-->\s*$/i;

function body(stream: StringStream, state: State): string | null {
  if (state.open) return template(stream, state);
  if (stream.sol()) {
    const fence = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(stream.string);
    if (fence && !state.raw) {
      const mark = fence[1] as string;
      if (!state.fence) state.fence = mark;
      else if (mark[0] === state.fence[0] && mark.length >= state.fence.length && fence[2]?.trim() === "") state.fence = "";
    }
    if (!state.fence && MARKER.test(stream.string)) {
      stream.skipToEnd();
      return "processingInstruction";
    }
  }
  if (opens(stream, state)) return (state.open as string) === "comment" ? "comment" : "bracket";
  const heading = !state.fence && /^#{1,6}\s/.test(stream.string);
  // up to what may open a construct
  if (!stream.match(/^[^{`*]+/)) {
    const code = !state.fence && stream.match(/^`[^`{]+`/);
    if (code) return "monospace";
    const strong = !state.fence && stream.match(/^\*\*[^*{]+\*\*/);
    if (strong) return "strong";
    stream.next();
  }
  if (state.raw) return "meta";
  return heading ? "heading" : state.fence ? "monospace" : null;
}

function yaml(stream: StringStream, state: State): string | null {
  if (stream.sol() && /^---\s*$/.test(stream.string)) {
    stream.skipToEnd();
    state.part = "body";
    state.quote = "";
    return "meta";
  }
  if (state.quote) {
    while (!stream.eol()) {
      const c = stream.next();
      if (c === "\\" && state.quote === '"') stream.next();
      else if (c === state.quote) {
        state.quote = "";
        break;
      }
    }
    return "string";
  }
  const spaced = stream.sol() || stream.eatSpace();
  if (spaced && stream.match(/^#.*/)) return "comment";
  if (spaced && stream.pos > stream.start) return null;
  if (stream.match(/^-(?=\s|$)/)) return "punctuation";
  if (stream.match(/^[A-Za-z_][\w-]*(?=\s*:(\s|$))/)) return "propertyName";
  if (stream.match(/^[:,[\]{}](?=\s|$|[^:])/)) return "punctuation";
  // a quote in the middle of a plain text is a character of it
  const begins = /(^|[:\-,[{])\s*$/.test(stream.string.slice(0, stream.pos));
  const quote = begins && (stream.match(/^["']/) as RegExpMatchArray | null);
  if (quote) {
    state.quote = quote[0];
    return "string";
  }
  if (stream.match(/^(true|false)(?=\s*([,}\]#]|$))/)) return "atom";
  if (stream.match(/^[|>][-+]?\d?\s*$/)) return "operator";
  if (!stream.match(/^[^,[\]{}\s]+/)) stream.next();
  return null;
}

function prompt(first: State["part"]): StreamLanguage<State> {
  return StreamLanguage.define<State>({
    name: first === "first" ? "prompt" : "partial",
    startState: () => ({ part: first, open: "", quote: "", raw: false, fence: "", word: "", filter: false }),
    copyState: (state) => ({ ...state }),
    token(stream, state) {
      if (state.part === "first") {
        if (/^---\s*$/.test(stream.string)) {
          stream.skipToEnd();
          state.part = "yaml";
          return "meta";
        }
        state.part = "body";
      }
      return state.part === "yaml" ? yaml(stream, state) : body(stream, state);
    },
    blankLine() {},
    languageData: { commentTokens: { block: { open: "{#", close: "#}" } } },
    tokenTable: TABLE,
  });
}

const TABLE = {
  variable: tags.variableName,
  function: tags.function(tags.variableName),
  attribute: tags.attributeName,
  monospace: tags.monospace,
  strong: tags.strong,
};

const toml = StreamLanguage.define<{ quote: string }>({
  name: "toml",
  startState: () => ({ quote: "" }),
  token(stream, state) {
    if (state.quote) {
      const end = stream.string.indexOf(state.quote, stream.pos);
      if (end < 0) stream.skipToEnd();
      else {
        stream.pos = end + state.quote.length;
        state.quote = "";
      }
      return "string";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.sol() && stream.match(/^\[\[?[^\]]*\]\]?/)) return "heading";
    if (stream.match(/^[\w.-]+(?=\s*=)/) || stream.match(/^"[^"]*"(?=\s*=)/)) return "propertyName";
    const quote = stream.match(/^("""|'''|["'])/) as RegExpMatchArray | null;
    if (quote) {
      state.quote = quote[0];
      return "string";
    }
    if (stream.match(/^(true|false)\b/)) return "atom";
    if (stream.match(/^\d[\d_.]*/)) return "number";
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "#" } },
});

const values = StreamLanguage.define<{ column: number }>({
  name: "values",
  startState: () => ({ column: 0 }),
  token(stream, state) {
    if (stream.sol()) state.column = 0;
    if (stream.eat("\t")) {
      state.column += 1;
      return null;
    }
    stream.match(/^[^\t]+/);
    return state.column === 0 ? "string" : state.column === 1 ? "comment" : "keyword";
  },
});

/** The language of a kind of file; none for plain text. */
export function language(kind: Kind): StreamLanguage<unknown> | undefined {
  const all: Partial<Record<Kind, StreamLanguage<unknown>>> = {
    prompt: prompt("first") as StreamLanguage<unknown>,
    partial: prompt("body") as StreamLanguage<unknown>,
    labels: toml as StreamLanguage<unknown>,
    library: toml as StreamLanguage<unknown>,
    values: values as StreamLanguage<unknown>,
  };
  return all[kind];
}

/** The colours, which the page's style sheet gives for light and dark. */
export const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.attributeName, color: "var(--code-function)" },
  { tag: tags.propertyName, color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.atom, tags.bool], color: "var(--code-atom)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: tags.bracket, color: "var(--code-bracket)", fontWeight: "600" },
  { tag: tags.processingInstruction, color: "var(--code-marker)", fontWeight: "600", backgroundColor: "var(--code-marker-back)" },
  { tag: tags.heading, color: "var(--code-heading)", fontWeight: "650" },
  { tag: tags.strong, fontWeight: "650" },
  { tag: tags.monospace, color: "var(--code-mono)" },
  { tag: [tags.meta, tags.punctuation, tags.operator], color: "var(--code-quiet)" },
]);
