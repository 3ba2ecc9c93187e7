// The first view of the pages that people come for: under 100 KB, and usable within a second, with nothing kept by the browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, closeBrowser } from "./harness.mjs";
import { PAGES, show, startScene } from "./scene.mjs";

const KB = 1000;
let scene;

before(async () => {
  scene = await startScene();
});
after(async () => {
  await closeBrowser();
  await scene?.server.remove();
});

/** Opens a page; gives bytes by the file they were of, as they came over the wire, and how long it took to be usable. */
async function opened(row) {
  const page = await scene.server.page(row.who);
  const client = await page.context().newCDPSession(page);
  await client.send("Network.enable");
  const names = new Map();
  const bytes = {};
  client.on("Network.responseReceived", ({ requestId, response }) => names.set(requestId, new URL(response.url).pathname));
  client.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const name = names.get(requestId);
    if (name) bytes[name] = (bytes[name] ?? 0) + encodedDataLength;
  });
  const began = Date.now();
  await show({ ...scene, server: { ...scene.server, page: async () => page } }, row);
  const took = Date.now() - began;
  await close(page);
  return { bytes, took };
}

for (const row of PAGES.filter(({ name }) => ["library", "prompt", "editor", "proposal"].includes(name))) {
  test(`light and quick: ${row.name}`, async (t) => {
    const runs = [];
    for (let i = 0; i < 3; i++) runs.push(await opened(row));
    const { bytes } = runs[0];
    const sum = (is) => Object.entries(bytes).reduce((all, [name, size]) => (is(name) ? all + size : all), 0);
    // until its own script is there the editor is a form with the text in it: that is its first view
    const isEditor = (name) => /\/assets\/edit-.*\.js$/.test(name);
    const [first, script] = [sum((name) => !isEditor(name)), sum((name) => name.endsWith(".js"))];
    assert.ok(Object.keys(bytes).length >= 4 && script > 1 * KB, JSON.stringify(bytes));
    assert.ok(first < 100 * KB, `${first} bytes for the first view: ${JSON.stringify(bytes)}`);
    assert.ok(script < (row.name === "editor" ? 300 : 50) * KB, `${script} bytes of script`);
    const took = runs.map((run) => run.took).sort((a, b) => a - b)[1];
    t.diagnostic(`first view ${first} bytes, script ${script} bytes, usable after ${took} ms`);
    assert.ok(took < 1000, `usable after ${took} ms: ${runs.map((run) => run.took)}`);
  });
}
