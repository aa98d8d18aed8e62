import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { startTestApp } from '../../support/app.ts';
import { themeProblem } from '../../support/page_themes.ts';
import { until } from '../../support/wait.ts';

const app = await startTestApp(t);
await until('ready', async () => (await app.owner.get('/readyz')).status === 200);

const home = async (headers: Record<string, string> = {}) => {
  const response = await fetch(app.url, { headers: { accept: 'text/html', ...headers } });
  return { response, html: await response.text() };
};

t.test('the page at / says what runs, and each of its links leads somewhere on this host', async (test) => {
  const { response, html } = await home();
  test.equal(response.status, 200);
  test.match(response.headers.get('content-type'), /^text\/html/);
  test.match(html, /<dt>Database<\/dt><dd><span class="good">reachable<\/span>, at migration \d+<\/dd>/);
  test.match(html, /<dt>Files<\/dt><dd><span class="good">reachable<\/span>/);
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  test.same(links, ['docs/icon.svg', 'docs', 'internal/admin', 'readyz', 'healthz', 'metrics', 'openapi.json']);
  for (const link of links) test.equal((await fetch(new URL(link, `${app.url}/`))).status, 200, link);
  const command = new RegExp(`curl .*${app.url}/organizations/[0-9a-f-]{36} `);
  test.match(html, command, 'the curl of the page reaches the service that showed it');
  for (const start of ['npm run demo -- ', 'org create &quot;Acme&quot; ', 'agents/agent.sh ', '--wait ']) {
    test.ok(html.includes(`${start}--url ${app.url}`), `and so does that with ${start}`);
  }
});

t.test('the organization of its curl has agents: a task needs a title alone', async (test) => {
  await publishBuiltinCatalog(app.services.db);
  const { html } = await home();
  const [, shown = ''] = /<pre[^>]*>(curl [^<]*)<\/pre>/.exec(html) ?? [];
  const command = shown.replaceAll('&quot;', '"');
  const [, url = '', body = ''] = /^curl -H 'Content-Type: application\/json' (\S+) -d '([^']*)'$/.exec(command) ?? [];
  const { pathname } = new URL(url);
  test.equal((await app.owner.post(pathname, JSON.parse(body))).status, 201, command);
  const task = await app.owner.post(`${pathname}/tasks`, { title: 'hello' });
  test.match(task, { status: 201, data: { identifier: 'T-1', status: 'pending' } });
});

t.test('it needs no script, and its policy allows its own style alone', async (test) => {
  const { response, html } = await home();
  const policy = response.headers.get('content-security-policy') ?? '';
  const styles = [...html.matchAll(/<style>(.*?)<\/style>/gs)].map(([, style = '']) => style);
  test.equal(styles.length, 1);
  const digest = createHash('sha256')
    .update(styles[0] ?? '')
    .digest('base64');
  test.match(policy, `style-src 'sha256-${digest}'`);
  test.notMatch(policy, /unsafe|script-src/);
  test.notMatch(html, /<script| style=| on[a-z]+=/);
});

t.test('it is light or dark as the system is', async (test) => {
  test.equal(themeProblem((await home()).html), undefined);
});

t.test('it says why the service is not ready', async (test) => {
  await app.database.owner.query(`alter table app.schema_migrations rename to hidden_migrations`);
  const { html } = await home();
  await app.database.owner.query(`alter table app.hidden_migrations rename to schema_migrations`);
  test.match(html, '<dd><span class="bad">The database cannot be reached, or was never migrated.</span>');
});

t.test('clients that take no HTML get the 404 of any other path', async (test) => {
  const response = await fetch(app.url, { headers: { accept: 'application/json' } });
  test.match([response.status, await response.json()], [404, { error: { code: 'not_found' } }]);
});

t.test('a Host that is no address does not get into the commands', async (test) => {
  const { port } = new URL(app.url);
  const html = await new Promise<string>((resolve, reject) => {
    const asked = request({ port, headers: { host: '$(reboot)', accept: 'text/html' } }, (res) => resolve(text(res)));
    asked.once('error', reject).end();
  });
  test.notMatch(html, 'reboot');
});

t.test('pages that are asked for with a slash too many are found', async (test) => {
  for (const path of ['/docs/', '/internal/admin/']) {
    const response = await fetch(`${app.url}${path}`);
    test.match([response.status, response.url], [200, `${app.url}${path.slice(0, -1)}`]);
    const moved = await fetch(`${app.url}${path}`, { redirect: 'manual' });
    test.match(moved.headers.get('location'), /^\.\.\/\w+$/, 'also below a path of a proxy');
  }
});
