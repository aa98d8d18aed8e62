// An authorization of an MCP server over HTTP alone: two processes share one flow, and keys are rotated while its tokens are in use.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import t from 'tap';
import type { Integration } from '../../../../api/integrations/schema.ts';
import { openMcpServer } from '../../../api/integrations/mcp_server.ts';
import { KEYS } from '../../../engine/integrations/support.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../../support/api_fixtures.ts';
import { startApi } from '../../../support/api_process.ts';
import { OWNER_TOKEN } from '../../../support/app.ts';
import { openBrowser } from '../../../support/authorization_server.ts';
import { createTestDatabase } from '../../../support/database.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { createClient } from '../../../support/http.ts';
import { makeOrganization } from '../../../support/owner_api.ts';

const database = await createTestDatabase(t);
const CONSOLE = 'https://console.example';
/** Of a balancer, which the tests are. */
const PUBLIC_URL = 'http://127.0.0.1:1';
const NEW_KEY = `k2:${Buffer.alloc(32, 2).toString('base64')}`;
const settings = (keys: string) => ({
  DATABASE_URL: database.url,
  OWNER_AUTH: 'open',
  OWNER_TOKENS: OWNER_TOKEN,
  ENCRYPTION_KEYS: keys,
  ALLOW_PRIVATE_ADDRESSES: '1',
  FRONTEND_URL: CONSOLE,
  PUBLIC_URL,
});
type Api = Awaited<ReturnType<typeof startApi>>;
const ownerOf = ({ url }: Api) => createClient(url).as(OWNER_TOKEN);

/** The address of an authorization, at another process. */
function at({ url }: Api, address: string | URL): URL {
  const moved = new URL(address);
  moved.port = new URL(url).port;
  return moved;
}

t.test('two processes share a flow, its tokens and a step-up, and go on while the keys are rotated', async (test) => {
  const mcp = await openMcpServer(test);
  mcp.open([]);
  // Both have the new key already, as it has to be before the rotation.
  const both = `${KEYS},${NEW_KEY}`;
  const [one, other] = [await startApi(test, settings(both)), await startApi(test, settings(both))];
  const [first, second] = [ownerOf(one), ownerOf(other)];
  const org = { organizationId: (await makeOrganization(first)).id };
  const integrations = (rest: string) => ownerPath(org, `/integrations${rest}`);
  expectSuccess(await first.post(integrations(''), { key: 'help', provider: 'mcp' }), 201);
  const given = { settings: { kind: 'mcp', serverUrl: mcp.serverUrl } };
  expectSuccess(await second.put(integrations('/help/settings'), given));

  async function authorize(starts: Api, finishes: Api): Promise<string | null> {
    const path = integrations('/help/oauth/mcp/start');
    const body = { accessMode: 'read_only' };
    const started = await ownerOf(starts).post<{ authorizationUrl: string }>(path, body);
    const { authorizationUrl } = expectSuccess(started);
    const browser = openBrowser();
    const atCallback = (url: URL) => url.pathname.endsWith('/callback');
    // The page is one process's; the browser comes back to the other, which has the cookie's flow from the database alone.
    const { url } = await browser.go(at(starts, authorizationUrl), atCallback, { method: 'POST' });
    const cookie = [...(browser.cookies(starts.url) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
    const [a, b] = await Promise.all(
      [starts, finishes].map((api) => fetch(at(api, url), { redirect: 'manual', headers: { cookie } })),
    );
    const results = [a, b].map((response) =>
      new URL(response?.headers.get('location') ?? '').searchParams.get('result'),
    );
    test.equal(results[0], results[1], 'delivered to both at once');
    return results[1] ?? null;
  }
  const read = async () => expectSuccess(await second.get<Integration>(integrations('/help')));

  test.equal(await authorize(one, other), 'connected');
  const connected = await read();
  test.match(connected, { readiness: 'ready', connection: { kind: 'oauth2', grantedScopes: ['tools:read'] } });
  test.match(expectSuccess(await second.post(integrations('/help/discover'))), { items: [{ id: 'search' }] });

  mcp.wanted.scope = 'tools:read tools:write';
  const asksForMore = await first.post(integrations('/help/discover'));
  test.equal(refusalOf(asksForMore), '502 provider_failed insufficient_scope');
  test.equal(await authorize(other, one), 'connected');
  const stepped = await read();
  test.same(stepped.connection?.grantedScopes.toSorted(), ['tools:read', 'tools:write']);
  test.equal(stepped.connection?.revision, connected.connection?.revision, 'of the same server: no replacement');

  const rotate = async (): Promise<number | null> => {
    const script = path.resolve(import.meta.dirname, '../../../../scripts/keys.ts');
    const child = spawn(process.execPath, [script, 'rotate'], {
      env: bareEnvironment({ ...settings(`${NEW_KEY},${KEYS}`) }),
      stdio: 'ignore',
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code;
  };
  let isRotating = true;
  const uses = [first, second].map(async (owner) => {
    let times = 0;
    while (isRotating) {
      await database.owner.query('update app.integration_connections set token_expires_at = now()');
      expectSuccess(await owner.post(integrations('/help/discover')));
      times += 1;
    }
    return times;
  });
  test.equal(await rotate(), 0);
  isRotating = false;
  const times = await Promise.all(uses);
  test.ok(
    times.every((count) => count > 0),
    times.join(),
  );
  test.equal(await rotate(), 0, 'what was written by the old key meanwhile');
  const { rows } = await database.owner.query<{ key_id: string }>(
    'select distinct key_id from app.integration_secrets',
  );
  test.same(rows, [{ key_id: 'k2' }]);
  const without = await startApi(test, settings(NEW_KEY));
  expectSuccess(await ownerOf(without).post(integrations('/help/discover')), 200);
});

for (const [form, environment, server, registrations] of [
  ['one that the server knows', { MCP_CLIENT_ID: 'runner' }, { clients: ['runner'], registers: false }, 0],
  [
    'a metadata document',
    { MCP_CLIENT_METADATA_URL: 'https://runner.example/client.json' },
    {
      clients: ['https://runner.example/client.json'],
      metadata: { client_id_metadata_document_supported: true },
      registers: false,
    },
    0,
  ],
  ['a registration, once', { MCP_CLIENT_METADATA_URL: 'https://runner.example/client.json' }, {}, 1],
] as const) {
  t.test(`an MCP server knows this deployment by ${form}`, async (test) => {
    const mcp = await openMcpServer(test, server);
    const api = await startApi(test, { ...settings(KEYS), ...environment });
    mcp.open([`${PUBLIC_URL}/oauth/mcp/callback`]);
    const owner = ownerOf(api);
    const org = { organizationId: (await makeOrganization(owner)).id };
    const integrations = (rest: string) => ownerPath(org, `/integrations${rest}`);
    expectSuccess(await owner.post(integrations(''), { key: 'help', provider: 'mcp' }), 201);
    const given = { settings: { kind: 'mcp', serverUrl: mcp.serverUrl } };
    expectSuccess(await owner.put(integrations('/help/settings'), given));
    for (const time of ['first', 'again']) {
      const started = await owner.post<{ authorizationUrl: string }>(integrations('/help/oauth/mcp/start'), {});
      const { authorizationUrl } = expectSuccess(started);
      const browser = openBrowser();
      const atCallback = (url: URL) => url.pathname.endsWith('/callback');
      const { url: callback } = await browser.go(at(api, authorizationUrl), atCallback, { method: 'POST' });
      const { url } = await browser.go(at(api, callback), (one) => one.origin === CONSOLE);
      test.equal(url.searchParams.get('result'), 'connected', time);
    }
    test.equal(mcp.requests.filter((line) => line === 'POST /reg').length, registrations);
  });
}
