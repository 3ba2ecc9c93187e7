// Builds web/dist: every file of src/pages and css is an entry of its own, named by its content, and manifest.json says
// which is which. theme.ts stands apart: it runs before the page is drawn, so it is no module.
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const root = resolve(fileURLToPath(import.meta.url), "../..");
const dist = join(root, "dist");

async function entries(folder, ending) {
  const names = await readdir(join(root, folder));
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name)).sort();
}

const shared = {
  absWorkingDir: root,
  bundle: true,
  minify: true,
  metafile: true,
  write: true,
  charset: "utf8",
  legalComments: "none",
  target: "es2022",
  outdir: "dist",
  entryNames: "[name]-[hash]",
  chunkNames: "chunk-[hash]",
  logLevel: "warning",
};

async function build() {
  await rm(dist, { recursive: true, force: true });
  await mkdir(dist, { recursive: true });
  const pages = await entries("src/pages", ".ts");
  const styles = await entries("css", ".css");
  const built = await Promise.all([
    esbuild.build({ ...shared, entryPoints: pages, format: "esm", splitting: true }),
    esbuild.build({ ...shared, entryPoints: ["src/theme.ts"], format: "iife" }),
    esbuild.build({ ...shared, entryPoints: styles }),
  ]);
  const manifest = {};
  for (const { metafile } of built) {
    for (const [path, output] of Object.entries(metafile.outputs)) {
      if (!output.entryPoint) continue;
      const name = basename(output.entryPoint).replace(/\.ts$/, ".js");
      if (manifest[name]) throw new Error(`two entries are called ${name}`);
      manifest[name] = {
        file: relative("dist", path),
        // modules that it loads at once, for preloading
        imports: output.imports.filter((i) => i.kind === "import-statement").map((i) => relative("dist", i.path)),
      };
    }
  }
  const lines = Object.keys(manifest).sort().map((name) => `  ${JSON.stringify(name)}: ${JSON.stringify(manifest[name])}`);
  await writeFile(join(dist, "manifest.json"), `{\n${lines.join(",\n")}\n}\n`);
}

await build();
if (process.argv.includes("--watch")) {
  const { watch } = await import("node:fs");
  let timer;
  for (const folder of ["src", "css"]) {
    watch(join(root, folder), { recursive: true }, () => {
      clearTimeout(timer);
      timer = setTimeout(() => build().catch((error) => console.error(error.message)), 100);
    });
  }
  console.error("watching web/src and web/css");
}
