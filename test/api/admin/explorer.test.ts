import t from 'tap';
import { explorerQueries } from '../../../api/admin/explorer_queries.ts';
import { adminClient } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
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

t.test('what the explorer advertises is hidden by the names that it has there', async (test) => {
  const script = await (await fetch(new URL('/internal/admin/assets/ruru.js', app.url))).text();
  for (const name of ['ruru-footer', 'graphiql-logo']) test.match(script, `className:"${name}"`);
});
