import t from 'tap';
import { startTestApp } from '../../support/app.ts';

const app = await startTestApp(t);

t.test('the documentation page works with files of this host alone', async (t) => {
  const page = await app.owner.fetch('/docs');
  t.equal(page.status, 200);
  const html = await page.text();
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  t.ok(links.length >= 4);
  for (const link of links) {
    t.notMatch(link, /^(https?:)?\/\//);
    const file = await app.owner.fetch(new URL(link, `${app.url}/docs`).pathname);
    t.equal(file.status, 200, link);
    t.ok((await file.bytes()).length > 0);
  }
  t.match(page.headers.get('content-security-policy'), /script-src 'self';/);
  t.notMatch(html, /<script(?![^>]*src=)/, 'no script in the page: the policy would stop it');
  t.match(await app.owner.get('/docs/package.json'), { status: 400 });
  t.match(await app.owner.get('/docs/..%2fpackage.json'), { status: 400 });
});
