import t from 'tap';
import { startTestApp } from '../../support/app.ts';

const app = await startTestApp(t);

t.test('a browser names the origin of the forms of the page, which they are refused without', async (test) => {
  const page = await fetch(new URL('/internal/admin', app.url));
  test.match(await page.text(), '<form method="post" action="/internal/admin/sign-in">');
  // With no-referrer, which everything else here has, browsers send `Origin: null` with a form.
  test.equal(page.headers.get('referrer-policy'), 'same-origin');
  const origin = { origin: 'null', 'sec-fetch-site': 'same-origin' };
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const signIn = new URL('/internal/admin/sign-in', app.url);
  test.equal((await fetch(signIn, { method: 'POST', headers: { ...origin, ...form }, body: 'token=x' })).status, 403);
});
