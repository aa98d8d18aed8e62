import t from 'tap';
import { startTestApp } from '../../support/app.ts';
import { themeProblem } from '../../support/page_themes.ts';
import { freePort } from '../../support/radosgw.ts';

const app = await startTestApp(t);

t.test('the documentation page works with files of this host alone', async (t) => {
  const page = await app.owner.fetch('/docs');
  t.equal(page.status, 200);
  const html = await page.text();
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  t.same(links, ['docs/icon.svg', 'docs/reference.js', 'openapi.json', 'openapi.json', 'docs/start.js']);
  for (const link of links) {
    t.notMatch(link, /^(https?:)?\/\//);
    const file = await app.owner.fetch(new URL(link, `${app.url}/docs`).pathname);
    t.equal(file.status, 200, link);
    t.ok((await file.bytes()).length > 0);
  }
  const policy = page.headers.get('content-security-policy') ?? '';
  t.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; .*connect-src 'self';/);
  t.notMatch(policy, /https?:|\*/);
  t.notMatch(html, /<script(?![^>]*src=)/, 'no script in the page: the policy would stop it');
  t.match(await app.owner.get('/nowhere'), { status: 404, body: { message: /\/openapi\.json lists every call/ } });
  t.match(await app.owner.get('/docs/package.json'), { status: 400 });
  t.match(await app.owner.get('/docs/..%2fpackage.json'), { status: 400 });
});

t.test('the page shows how to begin before the script of the reference has run', async (t) => {
  const html = await (await app.owner.fetch('/docs')).text();
  const { info } = (await (await app.owner.fetch('/openapi.json')).json()) as { info: { description: string } };
  const [, beginning = ''] = /<div id="beginning">([\s\S]*?)<\/div>/.exec(html) ?? [];
  const text = beginning
    .replaceAll('</li>', '\n')
    .replace(/<[^>]+>/g, '')
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
  const squeeze = (words: string): string =>
    words
      .replace(/```(sh)?|[`*#]|^- /gm, '')
      .replace(/\s+/g, ' ')
      .trim();
  t.match(beginning, /<a href="openapi\.json">/, 'for those who have no script to list them');
  t.ok(squeeze(text).endsWith(squeeze(info.description)), 'all of it, as /openapi.json has it');
  t.match(beginning, /<h2>Getting started<\/h2>/);
  t.notMatch(text, /```|\*\*|^## /m, 'no Markdown is left');
  t.notMatch(html, /<script[^>]+reference\.js/, 'no script that parsing waits for');
});

t.test('the documentation is told to ask nobody else, and begins with how to begin', async (t) => {
  const start = await (await app.owner.fetch('/docs/start.js')).text();
  const quiet = { withDefaultFonts: false, telemetry: false, agent: { disabled: true }, mcp: { disabled: true } };
  const given = JSON.parse(/createApiReference\(reference, (\{.*\})\)/.exec(start)?.[1] ?? '{}');
  t.match(given, { url: 'openapi.json', ...quiet });
  const script = await (await app.owner.fetch('/docs/reference.js')).text();
  t.match(script, 'createApiReference');
  // Both are there unless they are taken away, the theme that of the system unless it is forced.
  for (const name of ['hideSearch', 'hideDarkModeToggle', 'forceDarkModeState', 'darkMode']) {
    t.match(script, new RegExp(`\\b${name}\\b`), `Scalar knows ${name}`);
    t.notOk(name in given, name);
  }
  const page = await (await app.owner.fetch('/docs')).text();
  t.equal(themeProblem(page), undefined, 'and what is there before the script has both themes');
  const { info } = (await (await app.owner.fetch('/openapi.json')).json()) as { info: { description: string } };
  t.match(info.description, /^[^#]*\n## Getting started\n/);
});

t.test('its commands reach the service at the port that was set', async (t) => {
  const port = await freePort();
  const moved = await startTestApp(t, { config: { port } });
  for (const path of ['/docs', '/openapi.json']) {
    const text = await (await moved.owner.fetch(path)).text();
    t.ok(text.includes(`API=http://127.0.0.1:${port} `), path);
    t.notOk(text.includes('127.0.0.1:3000'), path);
    t.ok((await (await app.owner.fetch(path)).text()).includes('API=http://127.0.0.1:3000 '), 'unless it was chosen');
  }
});
