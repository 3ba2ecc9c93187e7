import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, newPage, ready, startServer } from "./harness.mjs";

const BAD = `<script>alert("ran")</script><img src=x onerror=alert("ran")>\u202Etxet\u200B`;
let server;

before(async () => {
  const quoted = JSON.stringify(BAD);
  server = await startServer({
    files: {
      "cuebook.toml": `title = '<svg onload=alert("ran")>'\n`,
      "prompts/a/hostile.md": `---\ntitle: ${quoted}\ndescription: ${quoted}\ntags: [${quoted}]\narguments:\n  - name: who\n    description: ${quoted}\n    values: [${quoted}, "javascript:alert('ran')"]\nexamples:\n  - name: ${quoted}\n    arguments: { who: ${quoted} }\n---\n${BAD} {{ who }}\n[x](javascript:alert("ran"))\n</pre></textarea><script>alert("ran")</script>\n`,
    },
  });
  server.git("config", "user.name", BAD);
  server.git("config", "user.email", "evil@example.com");
  server.git("-c", `user.name=${BAD}`, "commit", "--quiet", "--allow-empty", "-m", BAD);
  server.publish(`${BAD}`, { "prompts/a/hostile.md": "Now <b>this</b> \u202E {% raw %}{{ x }}{% endraw %}\n<script>alert('ran')</script>\n" });
});
after(async () => {
  await closeBrowser();
  await server.remove();
});

for (const path of ["/", "/?q=%3Cscript%3Ealert(1)%3C/script%3E", "/prompts/hostile", "/prompts/hostile?at=v1", "/prompts/hostile/versions", "/prompts/hostile/diff?from=v1&to=v2", "/prompts/%3Cscript%3Ealert(1)%3C%2Fscript%3E"]) {
  test(`nothing of an author runs: ${path}`, async () => {
    const page = await newPage();
    await page.goto(server.url + path);
    await ready(page);
    const html = await page.content();
    assert.ok(!/\u202E|\u200B/.test(html.replace(/value="[^"]*"|data-copy="[^"]*"|<textarea[^]*?<\/textarea>/g, "")), "hidden characters are shown");
    assert.equal(await page.locator('a[href^="javascript:"], img[src="x"], main script, main svg[onload]').count(), 0);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}

test("what is completed and copied stays text", async () => {
  const page = await newPage();
  await page.goto(`${server.url}/prompts/hostile?at=v1`);
  await ready(page);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("host");
  await page.waitForSelector("[role=option]");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});
