// Texts of the page's language, which the server puts into the page: the keys below [js] of web/text/*.toml.

const table: Record<string, string> = (() => {
  const content = document.querySelector<HTMLMetaElement>('meta[name="texts"]')?.content;
  try {
    return content ? (JSON.parse(content) as Record<string, string>) : {};
  } catch {
    return {};
  }
})();

/** The text of a key with its `{name}` replaced, each once. */
export function text(key: string, values: Record<string, string | number> = {}): string {
  return (table[key] ?? key).replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** The language of the page: `en` or `ko`. */
export const lang = document.documentElement.lang;
