import { randomUUID } from 'node:crypto';
import t from 'tap';
import { makeSession, SESSION_SECONDS, sessionOwner } from '../../../api/http/auth/admin_session.ts';
import { GRAPHQL_PATH } from '../../support/admin.ts';
import { refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { ADMIN_TOKEN, OWNER_TOKEN, SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
const admin = app.owner.as(ADMIN_TOKEN);

const QUERY = { query: '{ organizations { nodes { id } } }' };
const INTROSPECTION = { query: '{ __schema { queryType { name } } }' };
const { host } = new URL(app.url);

type Sent = Readonly<{ method?: string; headers?: Record<string, string>; body?: string }>;
const send = (path: string, { headers, ...init }: Sent = {}) =>
  fetch(new URL(path, app.url), { redirect: 'manual', ...init, headers: { ...headers } });

/** As a browser does it from a page of ours. */
const ours = { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const json = { 'content-type': 'application/json' };

async function session(): Promise<string> {
  const response = await send('/internal/admin/sign-in', {
    method: 'POST',
    headers: { ...ours, ...form },
    body: new URLSearchParams({ token: ADMIN_TOKEN }).toString(),
  });
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

t.test('without a token of an administrator nothing is served, not even what the schema is', async (test) => {
  for (const body of [QUERY, INTROSPECTION, { query: 'not graphql' }, 'no json']) {
    for (const client of [app.owner, app.service, app.owner.as(OWNER_TOKEN), app.owner.as(`tess:${ADMIN_TOKEN}`)]) {
      const reply = await client.post(GRAPHQL_PATH, body);
      test.equal(refusalOf(reply), '401 admin_unauthorized');
      test.equal(reply.headers.get('www-authenticate'), 'Bearer realm="business-runner"');
    }
  }
});

t.test('the token of an administrator opens nothing else', async (test) => {
  test.equal(refusalOf(await admin.post('/internal/run-requests/pull', { workerId: 'x' })), '401 agent_unauthorized');
});

t.test('a request is one operation, as JSON, by POST', async (test) => {
  test.equal(refusalOf(await admin.get(`${GRAPHQL_PATH}?query={__typename}`)), '405 method_not_allowed');
  test.equal(refusalOf(await admin.post(GRAPHQL_PATH, [QUERY])), '400 validation_failed invalid_type');
  test.equal(
    refusalOf(await admin.post(GRAPHQL_PATH, { ...QUERY, more: 1 })),
    '400 validation_failed unrecognized_keys',
  );
  test.equal(refusalOf(await admin.post(GRAPHQL_PATH, {})), '400 validation_failed invalid_type');
  const text = { headers: { 'content-type': 'text/plain' } };
  test.equal(
    refusalOf(await admin.send('POST', GRAPHQL_PATH, JSON.stringify(QUERY), text)),
    '415 unsupported_media_type',
  );
  const large = { query: `#${'x'.repeat(1_100_000)}` };
  test.equal(refusalOf(await admin.post(GRAPHQL_PATH, large)), '413 payload_too_large');
});

t.test('X-Organization-Id is a UUID, and one of an organization that is not there shows nothing', async (test) => {
  const ask = (organizationId: string) =>
    send(GRAPHQL_PATH, {
      method: 'POST',
      headers: { ...json, authorization: `Bearer ${ADMIN_TOKEN}`, 'x-organization-id': organizationId },
      body: JSON.stringify(QUERY),
    });
  for (const wrong of ['x', `${own.organizationId}x`, "' or true --"]) {
    const response = await ask(wrong);
    test.equal(response.status, 400, wrong);
    test.match(await response.json(), {
      error: { code: 'validation_failed', issues: [{ path: 'x-organization-id' }] },
    });
  }
  const one = { data: { organizations: { nodes: [{ id: own.organizationId }] } } };
  test.same(await (await ask(own.organizationId)).json(), one);
  test.same(await (await ask(own.organizationId.toUpperCase())).json(), one);
  test.same(await (await ask(randomUUID())).json(), { data: { organizations: { nodes: [] } } });
});

t.test('the page asks for a token, and takes it in a form alone', async (test) => {
  const page = await send('/internal/admin');
  const html = await page.text();
  test.equal(page.status, 200);
  test.match(html, '<form method="post" action="/internal/admin/sign-in">');
  test.match(html, 'type="password"');
  test.notMatch(html, /https?:\/\//, 'nothing from elsewhere');
  test.equal((await send(`/internal/admin?token=${ADMIN_TOKEN}`)).status, 400, 'never in a URL');

  const wrong = await send('/internal/admin/sign-in', {
    method: 'POST',
    headers: { ...ours, ...form },
    body: 'token=x',
  });
  test.equal(wrong.status, 401);
  test.equal(wrong.headers.get('set-cookie'), null);
  test.match(await wrong.text(), 'role="alert"');
});

t.test('signed in, the cookie is the browser’s alone, and does not hold the token', async (test) => {
  const response = await send('/internal/admin/sign-in', {
    method: 'POST',
    headers: { ...ours, ...form },
    body: new URLSearchParams({ token: ` ${ADMIN_TOKEN} ` }).toString(),
  });
  test.equal(response.status, 303);
  test.equal(response.headers.get('location'), '/internal/admin');
  const cookie = response.headers.get('set-cookie') ?? '';
  test.match(
    cookie,
    /^runner_admin_session=\d+\.[\w-]{16}\.[\w-]{43}; Path=\/internal\/admin; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
  test.notMatch(cookie, ADMIN_TOKEN);
  const secure = await send('/internal/admin/sign-out', {
    method: 'POST',
    headers: { ...ours, ...form, 'x-forwarded-proto': 'https' },
  });
  test.match(secure.headers.get('set-cookie'), /^runner_admin_session=; .*Max-Age=0; .*Secure$/);
});

t.test('a session ends with its time, with its token, and when it is touched', (test) => {
  const tokens = [{ name: 'tess', token: ADMIN_TOKEN }];
  const now = Date.now();
  const made = makeSession(ADMIN_TOKEN, now);
  test.equal(sessionOwner(tokens, made, now)?.name, 'tess');
  test.equal(sessionOwner(tokens, made, now + SESSION_SECONDS * 1000 - 2_000)?.name, 'tess');
  test.equal(sessionOwner(tokens, made, now + SESSION_SECONDS * 1000 + 1_000), undefined, 'twelve hours');
  test.equal(sessionOwner([{ name: 'tess', token: OWNER_TOKEN }], made, now), undefined, 'the token was replaced');
  const [until = '', nonce = '', signed = ''] = made.split('.');
  for (const touched of [
    `${Number(until) + 1}.${nonce}.${signed}`,
    `${until}.${'A'.repeat(16)}.${signed}`,
    `${until}.${nonce}.${'A'.repeat(43)}`,
    `${until}.${nonce}.`,
    ADMIN_TOKEN,
    '',
  ]) {
    test.equal(sessionOwner(tokens, touched, now), undefined, touched);
  }
  test.end();
});

t.test('the explorer asks with its cookie, and no other site can', async (test) => {
  const cookie = await session();
  const ask = (headers: Record<string, string>) =>
    send(GRAPHQL_PATH, { method: 'POST', headers: { ...json, cookie, ...headers }, body: JSON.stringify(QUERY) });
  const good = await ask(ours);
  test.same(await good.json(), { data: { organizations: { nodes: [{ id: own.organizationId }] } } });
  test.equal((await ask({ origin: `http://${host}` })).status, 200, 'an older browser says no more');
  const refused: Record<string, string>[] = [
    {},
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://${host}.evil.example` },
    { ...ours, 'sec-fetch-site': 'same-site' },
    { ...ours, 'sec-fetch-site': 'cross-site' },
  ];
  for (const headers of refused) test.equal((await ask(headers)).status, 401, JSON.stringify(headers));
  // What a form of another site could send at all.
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    test.equal((await ask({ ...ours, 'content-type': type })).status, 415, type);
  }
  test.equal((await ask({ ...ours, cookie: `${cookie}x` })).status, 401);
  for (const path of ['/internal/admin/sign-in', '/internal/admin/sign-out']) {
    const response = await send(path, {
      method: 'POST',
      headers: { ...form, origin: 'https://evil.example' },
      body: `token=${ADMIN_TOKEN}`,
    });
    test.equal(response.status, 403, path);
    test.equal(response.headers.get('set-cookie'), null);
  }
});

t.test('the explorer works without the internet, and its page allows nothing from elsewhere', async (test) => {
  const cookie = await session();
  const page = await send('/internal/admin', { headers: { cookie } });
  const html = await page.text();
  test.match(html, 'id="ruru-root"');
  test.notMatch(html, /https?:\/\//);
  test.notMatch(html, ADMIN_TOKEN);
  test.equal(page.headers.get('cache-control'), 'no-store');
  const policy = page.headers.get('content-security-policy') ?? '';
  test.match(policy, "default-src 'none'");
  test.match(policy, "script-src 'self';");
  test.notMatch(policy, /https?:|\*|unsafe-eval/);

  const named = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
  test.same(
    named,
    ['icon.svg', 'ruru.css', 'start.js'].map((file) => `/internal/admin/assets/${file}`),
  );
  const start = await (await send('/internal/admin/assets/start.js')).text();
  test.notMatch(start, /https?:\/\//);
  test.match(start, '"endpoint":"/internal/admin/graphql"');
  // What the pages load: each from here, nothing of it by another address.
  const files = ['ruru.js', 'ruru.css', 'editorWorker.js', 'jsonWorker.js', 'graphqlWorker.js'];
  for (const file of files) {
    const response = await send(`/internal/admin/assets/${file}`);
    test.equal(response.status, 200, file);
    test.match(response.headers.get('content-type'), file.endsWith('.css') ? 'text/css' : 'text/javascript');
    const text = await response.text();
    test.notMatch(text, /(?:import\s*\(|import\s+|from\s*|importScripts\(|@import\s*|url\()["']?https?:/, file);
    const etag = response.headers.get('etag') ?? '';
    const again = await send(`/internal/admin/assets/${file}`, { headers: { 'if-none-match': etag } });
    test.equal(again.status, 304);
  }
  for (const missing of ['nothing.js', 'ruru.js.map', '..%2F..%2Fpackage.json']) {
    test.ok([400, 404].includes((await send(`/internal/admin/assets/${missing}`)).status), missing);
  }
});

t.test('the document of the interface names both ways in', async (test) => {
  const document = (await (await send('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { security: Record<string, unknown>[] }>>;
    components: { securitySchemes: Record<string, { in?: string; name?: string }> };
  };
  test.same(document.paths['/internal/admin/graphql']?.['post']?.security, [{ adminToken: [] }, { adminSession: [] }]);
  const { adminSession } = document.components.securitySchemes;
  test.equal(adminSession?.in, 'cookie');
  test.equal((await session()).split('=')[0], adminSession?.name);
});

t.test('the token is in no line of the log', (test) => {
  const text = JSON.stringify(app.logged);
  test.notMatch(text, ADMIN_TOKEN);
  test.notMatch(text, SERVICE_TOKEN);
  test.end();
});
