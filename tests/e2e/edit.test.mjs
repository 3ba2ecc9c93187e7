// The editor in a real browser against the real server: problems under the line, fixes, publishing, conflicts, failed saves.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { close as done, closeBrowser, newPage, openEditor, serious, startServer, textOf, theBrowser, typeAtEnd, until } from './harness.mjs';

const TRIAGE = '/edit/prompts/sre/incident-triage.md';
const WINDOWS = '\ufeff---\r\ndescription: From Windows\r\n---\r\nOne.\r\nTwo.';

let server;

before(async () => {
  server = await startServer();
});
after(async () => {
  await closeBrowser();
  await server?.remove();
});

/** A page of somebody's own browser, at an editor that is ready. */
const editor = async (path, options) => openEditor(await newPage(options), server.url + path);
const onMain = (path) => server.onMain(path);

/** Waits until the server has a draft of a path, or none. */
const kept = (path, wanted) => until(async () => {
  const drafts = await (await fetch(`${server.url}/editor/draft`)).json();
  return drafts.some((draft) => draft.path === path) === wanted;
}, `a draft of ${path}: ${wanted}`);

async function publish(page, message) {
  await page.keyboard.press('Control+s');
  await page.locator('dialog[open] #ed-message').fill(message);
  await page.locator('dialog[open] button[value=publish]').click();
}

const put = async (path, text) => server.api('/api/v1/changes', { base: await server.tip(), message: 'Test', files: { [path]: text } });

/** What an MCP client gets. */
const served = async (name, args = {}) => JSON.stringify(await server.call('prompts/get', { name, arguments: args }));

test('a problem is under its line as one types, a click mends it, and a publish serves the new text', async () => {
  const page = await editor(TRIAGE);
  await page.waitForSelector('.ed-message');
  await typeAtEnd(page, 'image: {{ .Values.image }}\n');
  await page.waitForSelector('#ed-host .cm-lintRange-error');
  const marked = await page.locator('#ed-host .cm-lintRange-error').first().textContent();
  assert.equal(marked, '{{ .Values.image }}');
  assert.match(await page.locator('#ed-problems').textContent(), /Helm template/);
  await page.locator('#ed-problems .ed-small').first().click();
  await page.waitForFunction(() => document.querySelector('#ed-count').dataset.state !== 'error');
  assert.match(await textOf(page), /image: \{% raw %\}\{\{ \.Values\.image \}\}\{% endraw %\}/);
  await page.waitForFunction(() => document.querySelector('.ed-messages').textContent.includes('image: {{ .Values.image }}'));
  await publish(page, 'Name the image');
  await page.waitForSelector('.ed-banner.good');
  assert.match(await page.locator('#ed-banner').textContent(), /published/i);
  assert.match(onMain('prompts/sre/incident-triage.md').toString(), /endraw %\}\n$/);
  assert.ok((await served('incident-triage', { ticketId: 'INC-1', alert: 'x', service: 'payments' })).includes('image: {{ .Values.image }}'));
  assert.equal(await page.evaluate(() => Object.keys(localStorage).some((key) => key.startsWith('cuebook-draft:'))), false);
  await kept('prompts/sre/incident-triage.md', false);
  await done(page);
});

test('V5: of two editors with one base the second sees both texts and loses neither', async () => {
  await put('prompts/sre/shared.md', '---\ndescription: Shared\n---\nFirst.\n\nMiddle.\n\nLast.\n');
  const [one, two] = [await editor('/edit/prompts/sre/shared.md'), await editor('/edit/prompts/sre/shared.md')];
  const replace = async (page, from, to) => {
    await page.locator('#ed-host .cm-line', { hasText: from }).click({ clickCount: 3 });
    await page.keyboard.insertText(to);
  };
  await replace(one, 'Last.', 'Last, by one.\n');
  await typeAtEnd(one, 'One more by one.\n');
  await publish(one, 'By one');
  await one.waitForSelector('.ed-banner.good');
  await replace(two, 'First.', 'First, by two.\n');
  await replace(two, 'Last.', 'Last, by two.\n');
  await publish(two, 'By two');
  const dialog = two.locator('dialog[open].ed-merge');
  await dialog.waitFor();
  const text = await dialog.textContent();
  assert.match(text, /Last, by one\./);
  assert.match(text, /Last, by two\./);
  // nothing is thrown away until somebody says so
  await dialog.locator('button[value=done]').click();
  await two.locator('dialog[open] button[value=publish]').waitFor();
  const merged = await textOf(two);
  for (const words of ['First, by two.', 'Last, by one.', 'Last, by two.', 'One more by one.']) assert.ok(merged.includes(words), `${words} in ${merged}`);
  await two.locator('dialog[open] button[value=publish]').click();
  await two.waitForSelector('.ed-banner.good');
  const main = onMain('prompts/sre/shared.md').toString();
  for (const words of ['First, by two.', 'Last, by one.', 'Last, by two.', 'One more by one.']) assert.ok(main.includes(words), main);
  await done(one);
  await done(two);
});

test('V7: a save that fails midway keeps the text in the editor and in a draft', async () => {
  await put('prompts/sre/fragile.md', '---\ndescription: Fragile\n---\nHello.\n');
  const page = await editor('/edit/prompts/sre/fragile.md');
  const cut = async (route) => route.abort('connectionreset');
  await page.route('**/api/v1/changes', cut);
  await typeAtEnd(page, 'Not to be lost.\n');
  await publish(page, 'Fails');
  const refused = page.locator('dialog[open] .ed-refused');
  await page.waitForFunction(() => document.querySelector('dialog[open] .ed-refused')?.textContent !== '');
  assert.match(await refused.textContent(), /still here/);
  assert.equal(await page.locator('dialog[open] #ed-message').inputValue(), 'Fails');
  await page.keyboard.press('Escape');
  assert.match(await textOf(page), /Not to be lost\./);
  await kept('prompts/sre/fragile.md', true);
  // another browser of the same person has it as well
  const other = await editor('/edit/prompts/sre/fragile.md');
  assert.match(await textOf(other), /Not to be lost\./);
  await done(other);
  await page.unroute('**/api/v1/changes', cut);
  await publish(page, 'Works');
  await page.waitForSelector('.ed-banner.good');
  assert.match(onMain('prompts/sre/fragile.md').toString(), /Not to be lost\.\n$/);
  await done(page);
});

test('a server that goes away in the middle of a save loses nothing', async () => {
  const own = await startServer();
  const page = await newPage();
  await page.goto(own.url + TRIAGE);
  await page.waitForSelector('html[data-editor=ready]');
  await typeAtEnd(page, 'Written before the fall.\n');
  await page.keyboard.press('Control+s');
  await page.locator('dialog[open] #ed-message').fill('Into the dark');
  await own.stop();
  await page.locator('dialog[open] button[value=publish]').click();
  await page.waitForFunction(() => document.querySelector('dialog[open] .ed-refused')?.textContent !== '');
  await page.keyboard.press('Escape');
  assert.match(await textOf(page), /Written before the fall\./);
  const kept = await page.evaluate(() => localStorage.getItem('cuebook-draft:prompts/sre/incident-triage.md'));
  assert.match(kept, /Written before the fall\./);
  await page.context().close();
  await own.remove();
});

test('a file with a mark and CRLF that is opened and saved is the same bytes, and a change keeps them', async () => {
  await put('prompts/sre/windows.md', WINDOWS);
  const page = await editor('/edit/prompts/sre/windows.md');
  assert.match(await page.locator('#ed-endings').textContent(), /CRLF · BOM/);
  await typeAtEnd(page, 'x');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Control+s');
  await page.waitForSelector('.toast');
  assert.match(await page.locator('.toast').first().textContent(), /Nothing to publish/);
  assert.deepEqual(onMain('prompts/sre/windows.md'), Buffer.from(WINDOWS));
  await typeAtEnd(page, '\nThree.');
  await publish(page, 'Three');
  await page.waitForSelector('.ed-banner.good');
  assert.deepEqual(onMain('prompts/sre/windows.md'), Buffer.from(`${WINDOWS}\r\nThree.`));
  await done(page);
});

test('the form touches its own lines', async () => {
  const text = '---\n# why\ntitle: "Old"   # kept\ndescription: About\narguments:\n  - name: topic # first\n    required: true\nexamples:\n  - name: a\n    arguments: { topic: x }\n---\n{{ topic }}\n';
  await put('prompts/sre/formed.md', text);
  const page = await editor('/edit/prompts/sre/formed.md');
  await page.locator('[data-pane=form]').click();
  await page.locator('#ed-title').fill('New: one');
  await page.locator('#ed-arguments-add').click();
  await page.locator('#ed-arguments-1-name').fill('team');
  const now = await textOf(page);
  assert.equal(now, text.replace('"Old"', '"New: one"').replace('    required: true\n', '    required: true\n  - name: team\n').trimEnd() + '\n');
  await page.waitForFunction(() => document.querySelector('#ed-problems').textContent.includes('`team`'));
  await done(page);
});

test('leaving with unsaved text warns, and the draft is there when one comes back', async () => {
  await put('prompts/sre/left.md', '---\ndescription: Left\n---\nHello.\n');
  // of its own: the pages of other tests take every question for a fault
  const context = await (await theBrowser()).newContext({ locale: 'en' });
  const page = await context.newPage();
  await page.goto(`${server.url}/edit/prompts/sre/left.md`);
  await page.waitForSelector('html[data-editor=ready]');
  await typeAtEnd(page, 'Half a thou');
  const asked = new Promise((resolve) => page.once('dialog', async (dialog) => {
    resolve(dialog.type());
    await dialog.accept();
  }));
  await page.reload();
  assert.equal(await asked, 'beforeunload');
  await page.waitForSelector('html[data-editor=ready]');
  assert.match(await textOf(page), /Half a thou/);
  await page.locator('.ed-banner button').click();
  assert.doesNotMatch(await textOf(page), /Half a thou/);
  await kept('prompts/sre/left.md', false);
  await context.close();
});

test('a new prompt from a starter, with the keyboard alone', async () => {
  const page = await newPage();
  await page.goto(`${server.url}/new`);
  await page.locator('[name=name]').focus();
  await page.keyboard.type('Bad Name');
  await page.waitForFunction(() => document.querySelector('#new-fault').textContent !== '');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('night-shift');
  await page.waitForFunction(() => document.querySelector('#new-path').textContent.includes('free'));
  await page.keyboard.press('Enter');
  await page.waitForSelector('html[data-editor=ready]');
  assert.match(page.url(), /\/edit\/prompts\/night-shift\.md$/);
  await page.waitForSelector('.ed-message');
  // the text has the focus; Tab leaves it
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'ed-host');
  await page.keyboard.press('Tab');
  assert.notEqual(await page.evaluate(() => document.activeElement?.id), 'ed-host');
  await page.keyboard.press('Control+s');
  await page.waitForSelector('dialog[open] .ed-effects');
  assert.match(await page.locator('dialog[open] .ed-effects').textContent(), /night-shift/);
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.ed-banner.good');
  assert.match(onMain('prompts/night-shift.md').toString(), /^---\ntitle: /);
  // and it moves
  await page.locator('#ed-rename').focus();
  await page.keyboard.press('Enter');
  await page.locator('#ed-rename-dialog input').fill('prompts/sre/late-shift.md');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#ed-path').textContent === 'prompts/sre/late-shift.md');
  await page.keyboard.press('Control+s');
  await page.waitForSelector('dialog[open] .ed-effects');
  await page.keyboard.press('Control+Enter');
  await page.waitForFunction(() => location.pathname === '/edit/prompts/sre/late-shift.md');
  assert.match(onMain('prompts/sre/late-shift.md').toString(), /^---\ntitle: /);
  assert.throws(() => onMain('prompts/night-shift.md'));
  await done(page);
});

test('completion knows arguments, partials and filters', async () => {
  const page = await editor(TRIAGE);
  await page.waitForFunction(() => performance.getEntriesByType('resource').some(({ name }) => name.includes('/editor/words')));
  const offered = async (text) => {
    await typeAtEnd(page, text);
    await page.keyboard.press('Control+Space');
    const list = page.locator('#ed-host .cm-tooltip-autocomplete');
    await list.waitFor();
    const all = await list.textContent();
    await page.keyboard.press('Escape');
    return all;
  };
  assert.match(await offered('\n{{ tick'), /ticketId/);
  assert.match(await offered(' }}\n{% include "sev'), /severity-rubric\.md/);
  assert.match(await offered('" %}\n{{ ticketId | untr'), /untrusted/);
  await done(page);
});

test('the editor weighs less than 300 KB', async () => {
  const page = await newPage();
  const client = await page.context().newCDPSession(page);
  await client.send('Network.enable');
  let bytes = 0;
  const scripts = new Set();
  client.on('Network.responseReceived', ({ requestId, type }) => type === 'Script' && scripts.add(requestId));
  client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (scripts.has(requestId)) bytes += encodedDataLength;
  });
  await page.goto(server.url + TRIAGE);
  await page.waitForSelector('html[data-editor=ready]');
  assert.ok(bytes > 50_000 && bytes < 300_000, `${bytes} bytes of scripts`);
  await done(page);
});

for (const [name, options] of [['light', {}], ['dark', { colorScheme: 'dark' }], ['phone in Korean', { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true, locale: 'ko-KR' }]]) {
  test(`nothing keeps anyone out of the editor: ${name}`, async () => {
    const page = await editor('/edit/prompts/code-review/code-review.md', options);
    await page.waitForSelector('.ed-message', { state: 'attached' });
    assert.deepEqual(await serious(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'it is wider than the screen');
    for (const pane of ['preview', 'form']) {
      await page.locator(`[data-pane=${pane}]`).click();
      assert.deepEqual(await serious(page), []);
    }
    if (name === 'phone in Korean') await page.locator('[data-pane=text]').click();
    await typeAtEnd(page, '{{ nobody }}\n');
    await page.waitForFunction(() => document.querySelector('#ed-problems li'));
    assert.deepEqual(await serious(page), []);
    await page.locator('#ed-publish').click();
    await page.waitForSelector('dialog[open] .ed-found');
    assert.deepEqual(await serious(page), []);
    await page.keyboard.press('Escape');
    // the next of these tests begins with what is published
    await page.locator('#ed-host .cm-content').click();
    await page.keyboard.press('Control+z');
    await kept('prompts/code-review/code-review.md', false);
    await page.goto(`${server.url}/new`);
    assert.deepEqual(await serious(page), []);
    await done(page);
  });
}

test('what an author has written is text, also where it is looked at closely', async () => {
  const hostile = '<img src=x onerror="document.title=1"></textarea><script>document.title=2</script>\u202e\u200b';
  await put('prompts/sre/hostile.md', `---\ntitle: '${hostile}'\ndescription: '${hostile}'\n---\n${hostile} {{ x }}`.replace(' {{ x }}', '') + '\n');
  const page = await editor('/edit/prompts/sre/hostile.md');
  await page.waitForSelector('.ed-message');
  assert.match(await page.locator('.ed-message pre').first().textContent(), /<img src=x/);
  await page.locator('[data-pane=form]').click();
  assert.match(await page.locator('#ed-title').inputValue(), /<script>/);
  await typeAtEnd(page, `{{ "${'<b>'}" | nothing }}`);
  await page.waitForFunction(() => document.querySelector('#ed-problems li'));
  assert.doesNotMatch(await page.title(), /^[12]$/);
  await done(page);
});
