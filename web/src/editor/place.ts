//! Where a new file of a kind goes; the server says the same in `new_path`.

/** The path of a new file. */
export function newPath(kind: string, folder: string, name: string): string {
  const inner = folder.trim().replace(/^\/+|\/+$/g, "");
  const file = name.trim();
  const within = (top: string, leaf: string) => (inner === "" ? `${top}/${leaf}` : `${top}/${inner}/${leaf}`);
  switch (kind) {
    case "partial":
      return within("partials", `${file.replace(/(\.md)+$/, "")}.md`);
    case "values":
      return within("values", `${file.replace(/(\.txt)+$/, "")}.txt`);
    case "resource":
      return within("resources", file.includes(".") ? file : `${file}.md`);
    default:
      return within("prompts", `${file.replace(/(\.md)+$/, "")}.md`);
  }
}
