//! What can be written here: arguments, partials, resources, filters, tags, markers and the keys of the front matter.

import { type Completion, type CompletionContext, type CompletionResult, snippetCompletion } from "@codemirror/autocomplete";
import { FrontMatter } from "./front-matter";
import type { Kind } from "./language";

/** A word with what is said beside it. */
export interface Word {
  name: string;
  detail?: string;
}

/** What the library has that a text may name. */
export interface Words {
  partials: Word[];
  resources: Word[];
  families: Word[];
  values: Word[];
  filters: string[];
  tests: string[];
  prompts: Array<Word & { path: string; version?: string }>;
  labels: string[];
  /** Prompts that include the partial that is edited. */
  includers: Array<Word & { path: string }>;
}

/** Nothing is known yet. */
export const NO_WORDS: Words = { partials: [], resources: [], families: [], values: [], filters: [], tests: [], prompts: [], labels: [], includers: [] };

const TAGS: Completion[] = [
  snippetCompletion('include "${name.md}" %}', { label: "include", type: "keyword" }),
  snippetCompletion("if ${condition} %}${}{% endif %}", { label: "if", type: "keyword" }),
  snippetCompletion("for ${item} in ${list} %}${}{% endfor %}", { label: "for", type: "keyword" }),
  snippetCompletion("raw %}${}{% endraw %}", { label: "raw", type: "keyword" }),
  snippetCompletion("set ${name} = ${value} %}", { label: "set", type: "keyword" }),
  snippetCompletion("filter ${name} %}${}{% endfilter %}", { label: "filter", type: "keyword" }),
  ...["elif", "else", "endif", "endfor", "endraw", "endset", "endfilter", "break", "continue"].map((label) => ({ label, type: "keyword" })),
];

/** Keys by the table they stand in, with what a new one looks like. */
const KEYS: Record<string, Array<[string, string]>> = {
  "": [
    ["title", "title: ${}"],
    ["description", "description: ${}"],
    ["tags", "tags: [${}]"],
    ["arguments", "arguments:\n  - name: ${name}\n    description: ${}"],
    ["resources", 'resources:\n  - name: ${name}\n    uri: "${scheme}://${path}"'],
    ["examples", "examples:\n  - name: ${name}\n    arguments: { ${} }"],
  ],
  arguments: [
    ["name", "name: ${}"],
    ["description", "description: ${}"],
    ["required", "required: true"],
    ["values", "values: [${}]"],
    ["default", "default: ${}"],
  ],
  resources: [
    ["name", "name: ${}"],
    ["uri", 'uri: "${}"'],
    ["required", "required: false"],
    ["as", "as: ${}"],
  ],
  examples: [
    ["name", "name: ${}"],
    ["arguments", "arguments: { ${} }"],
    ["expect", 'expect: ["${}"]'],
  ],
  values: [
    ["list", "list: [${}]"],
    ["file", "file: ${}"],
    ["where", "where: ${}"],
    ["resource", 'resource: "${}"'],
    ["recent", "recent: true"],
  ],
};

/** Completes in the text of one file. */
export function completer(kind: Kind, words: () => Words): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    if (kind === "labels") return inLabels(context, words());
    if (kind !== "prompt" && kind !== "partial") return null;
    const text = context.state.doc.toString();
    const front = FrontMatter.read(text);
    if (kind === "prompt" && context.pos >= front.from && context.pos <= front.to && front.to > front.from) {
      return inFrontMatter(context, text, front, words());
    }
    return inBody(context, front, words());
  };
}

function inBody(context: CompletionContext, front: FrontMatter, words: Words): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  // a construct may begin lines before
  const before = context.state.sliceDoc(Math.max(0, context.pos - 2000), context.pos);
  const marker = /^\s*<!--\s*(\w*)\s*(:\s*(\S*))?$/.exec(line.text.slice(0, context.pos - line.from));
  if (marker) {
    if (marker[2] === undefined) return at(context, /\w*$/, [{ label: "role", apply: "role: ", type: "keyword" }, { label: "resource", apply: "resource: ", type: "keyword" }]);
    const rest = /-->/.test(line.text) ? "" : " -->";
    const names = marker[1] === "role" ? ["user", "assistant", "system"] : bindings(front);
    return at(context, /\S*$/, names.map((label) => ({ label, apply: label + rest, type: "constant" })));
  }
  const open = Math.max(before.lastIndexOf("{{"), before.lastIndexOf("{%"));
  if (open < 0) return null;
  const inside = before.slice(open + 2);
  if (/\}\}|%\}/.test(inside)) return null;
  const tag = before[open + 1] === "%";
  const include = /^-?\s*include\s+["']([^"']*)$/.exec(inside);
  if (tag && include) return at(context, /[^"']*$/, words.partials.map((word) => option(word, "file")));
  if (/(["'])[^"']*$/.test(inside.replace(/(["'])[^"']*\1/g, ""))) return null;
  if (tag && /^-?\s*\w*$/.test(inside)) {
    const result = at(context, /\w*$/, TAGS);
    return result && /^\s*-?%\}/.test(context.state.sliceDoc(context.pos, context.pos + 20)) ? { ...result, options: TAGS.map(({ label }) => ({ label, type: "keyword" })) } : result;
  }
  if (/\|\s*\w*$/.test(inside)) return at(context, /\w*$/, words.filters.map((label) => ({ label, type: "function" })));
  if (/\bis\s+(not\s+)?\w*$/.test(inside)) return at(context, /\w*$/, words.tests.map((label) => ({ label, type: "function" })));
  if (/\bresources\.\w+\.\w*$/.test(inside)) return at(context, /\w*$/, ["found", "uri", "text"].map((label) => ({ label, type: "property" })));
  if (/\bresources\.\w*$/.test(inside)) return at(context, /\w*$/, bindings(front).map((label) => ({ label, type: "property" })));
  if (/\.\w*$/.test(inside)) return null;
  const variables = named(front, "arguments").map(([label, detail]) => ({ label, ...(detail ? { detail } : {}), type: "variable" }));
  const resources = bindings(front).length > 0 ? [{ label: "resources", type: "variable" }] : [];
  return at(context, /\w*$/, [...variables, ...resources], /[{%|(=,\s]\s*\w*$/.test(inside) || inside === "");
}

function inFrontMatter(context: CompletionContext, text: string, front: FrontMatter, words: Words): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (/#[^"']*$/.test(before) && /(^|\s)#/.test(before.replace(/(["']).*?\1/g, ""))) return null;
  const value = /(?:^|[\s{,])(\w+):\s*(\[[^\]]*|["']?[^"',}\]]*)$/.exec(before);
  if (value) {
    const key = value[1] as string;
    const rest = (value[2] as string).replace(/^["']/, "");
    const from = context.pos - rest.length;
    const to = (options: Completion[]): CompletionResult | null => (options.length > 0 ? { from, options, validFor: /^[^"',}\]]*$/ } : null);
    const texts = (list: string[]) => to(list.map((label) => ({ label, type: "constant" })));
    switch (key) {
      case "required":
      case "recent":
        return texts(["true", "false"]);
      case "as":
        return texts(["resource", "text", "link", "image", "audio"]);
      case "file":
        return to(words.values.map((word) => option(word, "file")));
      case "where":
        return texts(named(front, "arguments").map(([name]) => name));
      case "uri":
      case "resource": {
        const quote = /["']/.test((value[2] as string)[0] ?? "");
        const names = [...words.families, ...words.resources].map((word) => {
          // a family's `{service}` is the argument of that name in a binding
          const name = key === "uri" ? word.name.replace(/\{(\w+)\}/g, "{{ $1 }}") : word.name;
          return { ...option({ ...word, name }, "file"), apply: quote ? name : `"${name}"` };
        });
        return to(names);
      }
      case "default": {
        const index = itemAt(text, context.pos, "arguments");
        return texts(index < 0 ? [] : [...front.texts(["arguments", index, "values"]), ...front.texts(["arguments", index, "values", "list"])]);
      }
      default:
        return null;
    }
  }
  const flow = /\{[^}]*$/.test(before);
  const table = flow ? (/(\w+):\s*\{[^}]*$/.exec(before)?.[1] ?? "") : tableAt(text, front.from, line.from, before);
  const found = /(?:^\s*(?:-\s+)?|[{,]\s*)(\w*)$/.exec(before);
  if (!found || (found[1] === "" && !context.explicit && !flow)) return null;
  if (flow && table === "arguments") {
    const names = named(front, "arguments").map(([label, detail]) => ({ label, apply: `${label}: `, ...(detail ? { detail } : {}), type: "property" }));
    return at(context, /\w*$/, names);
  }
  const keys = KEYS[table] ?? [];
  const options = keys.map(([label, form]) => snippetCompletion(form, { label, type: "property" }));
  return at(context, /\w*$/, options);
}

/** The table that a line of the front matter stands in: the last key above it that is less far in. */
function tableAt(text: string, from: number, lineFrom: number, before: string): string {
  const indent = before.length - before.trimStart().length;
  if (indent === 0 && !/^-/.test(before)) return "";
  const above = text.slice(from, lineFrom).split("\n").reverse();
  let least = /^\s*-/.test(before) ? indent + 1 : indent;
  for (const line of above) {
    const key = /^(\s*)(?:-\s+)?(\w+):\s*(?:#.*)?$/.exec(line);
    const lead = line.length - line.trimStart().length;
    if (line.trim() === "" || lead >= least) continue;
    if (key && key[2] && key[2] in KEYS) return key[2];
    least = Math.min(least, Math.max(lead, 1));
    if (lead === 0) return "";
  }
  return "";
}

function itemAt(text: string, position: number, key: string): number {
  const above = text.slice(0, position);
  const start = above.lastIndexOf(`\n${key}:`);
  return start < 0 ? -1 : (above.slice(start).match(/^\s*-\s/gm)?.length ?? 0) - 1;
}

function inLabels(context: CompletionContext, words: Words): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (/^\[\w*-?\w*$/.test(before)) return at(context, /[\w-]*$/, words.labels.map((label) => ({ label, type: "namespace" })));
  const entry = /^\s*([\w-]+)\s*=\s*"?(\w*)$/.exec(before);
  if (entry) {
    const version = words.prompts.find(({ name }) => name === entry[1])?.version;
    const quote = before.includes('"') ? "" : '"';
    return version ? at(context, /\w*$/, [{ label: version, apply: `${quote}${version}${quote}`, type: "constant" }]) : null;
  }
  if (/^[\w-]*$/.test(before)) return at(context, /[\w-]*$/, words.prompts.map((word) => ({ ...option(word, "variable"), apply: `${word.name} = "${word.version ?? "v1"}"` })));
  return null;
}

function at(context: CompletionContext, pattern: RegExp, options: Completion[], always = true): CompletionResult | null {
  const word = context.matchBefore(pattern);
  if (!word || options.length === 0) return null;
  if (word.from === word.to && !context.explicit && !always) return null;
  return { from: word.from, options, validFor: /^[\w./-]*$/ };
}

function option({ name, detail }: Word, type: string): Completion {
  return { label: name, type, ...(detail ? { detail } : {}) };
}

/** Names in a list of tables with what is said of them. */
export function named(front: FrontMatter, list: string): Array<[string, string | undefined]> {
  return Array.from({ length: front.count([list]) }, (_, i) => {
    const name = front.value([list, i, "name"]) ?? "";
    return [name, front.value([list, i, "description"])] as [string, string | undefined];
  }).filter(([name]) => name !== "");
}

function bindings(front: FrontMatter): string[] {
  return named(front, "resources").map(([name]) => name);
}
