import t from 'tap';
import { explorerQueries } from '../../../api/admin/explorer_queries.ts';
import { makeSession } from '../../../api/http/auth/admin_session.ts';
import { adminClient } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { ADMIN_TOKEN, startTestApp } from '../../support/app.ts';
import { themeProblem } from '../../support/page_themes.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);

t.test('a browser names the origin of the forms of the page, which they are refused without', async (test) => {
  const page = await fetch(new URL('/internal/admin', app.url));
  const html = await page.text();
  test.match(html, '<form method="post" action="/internal/admin/sign-in">');
  test.match(html, '<link rel="icon" href="/internal/admin/assets/icon.svg">');
  const icon = await fetch(new URL('/internal/admin/assets/icon.svg', app.url));
  test.match(icon.headers.get('content-type'), /^image\/svg\+xml/);
  // With no-referrer, which everything else here has, browsers send `Origin: null` with a form.
  test.equal(page.headers.get('referrer-policy'), 'same-origin');
  const origin = { origin: 'null', 'sec-fetch-site': 'same-origin' };
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const signIn = new URL('/internal/admin/sign-in', app.url);
  test.equal((await fetch(signIn, { method: 'POST', headers: { ...origin, ...form }, body: 'token=x' })).status, 403);
});

t.test('the explorer opens on queries that run', async (test) => {
  await createTenant(sqlOf(app));
  const started = await (await fetch(new URL('/internal/admin/assets/start.js', app.url))).text();
  for (const query of explorerQueries) {
    test.ok(started.includes(JSON.stringify(query)), 'it is a tab');
    const result = await adminClient(app).query<Record<string, { nodes: unknown[] }>>(query);
    for (const [name, { nodes }] of Object.entries(result)) test.ok(Array.isArray(nodes), name);
  }
});

/** A page of the administration, with or without a session. */
async function page(session?: string): Promise<string> {
  const headers = session === undefined ? {} : { cookie: `runner_admin_session=${session}` };
  return (await fetch(new URL('/internal/admin', app.url), { headers })).text();
}

t.test('what the explorer advertises is hidden by the names that it has there', async (test) => {
  const html = await page(makeSession(ADMIN_TOKEN));
  test.match(html, '<div id="ruru-root">', 'who has signed in has the explorer');
  const script = await (await fetch(new URL('/internal/admin/assets/ruru.js', app.url))).text();
  const [, hidden = ''] = /^ *(\S[^{}]*) \{ display: none; \}$/m.exec(html) ?? [];
  test.same(hidden.split(', '), ['.ruru-footer', '.graphiql-logo']);
  for (const name of hidden.split(', ')) test.match(script, `className:"${name.slice(1)}"`);
});

t.test('signing in and the explorer have the theme of the system, or the one that was chosen there', async (test) => {
  const html = await page(makeSession(ADMIN_TOKEN));
  test.equal(themeProblem(html), undefined);
  test.equal(themeProblem(await page()), undefined, 'who has not signed in has a form');
  const script = await (await fetch(new URL('/internal/admin/assets/ruru.js', app.url))).text();
  const css = await (await fetch(new URL('/internal/admin/assets/ruru.css', app.url))).text();
  for (const theme of ['light', 'dark']) {
    test.match(html, `body.graphiql-${theme} { color-scheme: ${theme}; }`);
    test.match(script, `"graphiql-${theme}"`, 'so Ruru names what was chosen');
  }
  test.match(css, /@media \(prefers-color-scheme: ?dark\) ?\{\s*body:not\(\.graphiql-light\)/);
  test.match(html, '<link rel="stylesheet" href="/internal/admin/assets/ruru.css">');
});
