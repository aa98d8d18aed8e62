import { randomBytes, randomUUID } from 'node:crypto';
import t from 'tap';
import type { z } from 'zod';
import { adminEndpoints } from '../../../api/admin/endpoints.ts';
import { apiEndpoints } from '../../../api/app.ts';
import { takesIdempotencyKey } from '../../../api/http/declared_errors.ts';
import { type Endpoint, isStream, pathParameters, type Shape } from '../../../api/http/endpoint.ts';
import type { StreamBody } from '../../../api/http/stream_body.ts';
import { createProposer } from '../../support/action_fixtures.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { ADMIN_TOKEN, OWNER_TOKEN, SERVICE_TOKEN, startTestApp, type TestApp } from '../../support/app.ts';
import { createTestDatabase } from '../../support/database.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { resolveGateway } from '../../support/integration_fixtures.ts';
import { startIssuer } from '../../support/jwt.ts';
import { rawConnection, statusesOf } from '../../support/raw_connection.ts';

const database = await createTestDatabase(t);
const app = await startTestApp(t, { database, config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } } });
const org = await createTestOrganization(sqlOf(app));

const endpoints = [...apiEndpoints(), ...adminEndpoints()];
const writing = endpoints.filter(({ method }) => method !== 'get');
const gateway = randomBytes(32).toString('hex');
const { org: acting, integration, run } = await createProposer(sqlOf(app));
await resolveGateway(sqlOf(app), acting, integration.id, { token: gateway, runId: run.runId });
const tokens: Readonly<Record<string, string>> = {
  ...{ owner: OWNER_TOKEN, agent: SERVICE_TOKEN, worker: SERVICE_TOKEN, admin: ADMIN_TOKEN, gateway },
};

type Change = Readonly<{
  app?: TestApp;
  method?: string;
  params?: Readonly<Record<string, string>>;
  query?: string;
  headers?: Readonly<Record<string, string>>;
  /** Lines beside those of the request. */
  more?: readonly string[];
}>;

/** A value that the schema takes. */
function taken(schema: z.ZodType, name: string): string {
  const likely = [randomUUID(), 'a.txt', 'organization', 'file', '1', 'text/plain', 'a', 'git-upload-pack'];
  const value = likely.find((one) => schema.safeParse(one).success);
  if (value === undefined) throw new Error(`no value for ${name} is known here`);
  return value;
}

function paramsOf({ params }: Endpoint): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params.shape as Shape).map(([name, schema]) => [
      name,
      name === 'organizationId' ? org.organizationId : taken(schema, name),
    ]),
  );
}

function queryOf({ query }: Endpoint): string {
  const required = Object.entries(query.shape as Shape).filter(([, schema]) => !schema.safeParse(undefined).success);
  return new URLSearchParams(
    required.map(([name, schema]): [string, string] => [name, taken(schema, name)]),
  ).toString();
}

/** The statuses that come for a request whose body waits until the server asks for it: `100` first where it does. */
async function statuses(endpoint: Endpoint, change: Change = {}): Promise<number[]> {
  const { url } = change.app ?? app;
  const params = { ...paramsOf(endpoint), ...change.params };
  const path = endpoint.path.replace(/\{(\w+)\*?\}/g, (_, name: string) => params[name] ?? '');
  const body = isStream<StreamBody>(endpoint.body) ? endpoint.body : undefined;
  const headers = {
    host: new URL(url).host,
    authorization: `Bearer ${tokens[endpoint.audience]}`,
    'content-type': body?.mediaTypes[0] ?? 'application/json',
    'content-length': '1000',
    'x-organization-id': org.organizationId,
    'x-lease-token': '1.x',
    expect: '100-continue',
    ...change.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]));
  const client = rawConnection(url);
  const method = (change.method ?? endpoint.method).toUpperCase();
  const query = [queryOf(endpoint), change.query].filter(Boolean).join('&');
  client.send([`${method} ${path}?${query} HTTP/1.1`, ...lines, ...(change.more ?? []), '', ''].join('\r\n'));
  await client.receives(/^HTTP\/1\.1 (?:100 |[\s\S]*\}$)/);
  client.socket.destroy();
  return statusesOf(client.received());
}

t.test('what the headers decide is decided before a body is asked for', async (t) => {
  t.ok(writing.length > 50);
  for (const endpoint of writing) {
    const { operationId } = endpoint;
    const stream = isStream<StreamBody>(endpoint.body) ? endpoint.body : undefined;
    t.same(await statuses(endpoint, { headers: { authorization: '' } }), [401], `${operationId}: no token`);
    const stranger = { authorization: `Bearer ${'x'.repeat(40)}` };
    t.same(await statuses(endpoint, { headers: stranger }), [401], `${operationId}: an unknown token`);
    for (const name of pathParameters(endpoint.path)) {
      if (endpoint.params.shape[name]?.safeParse('no-id').success !== false) continue;
      // An agent's token is looked for in the organization that the path names.
      const expected = await statuses(endpoint, { params: { [name]: 'no-id' } });
      t.same(expected, [400], `${operationId}: ${name} is no id`);
    }
    t.same(await statuses(endpoint, { query: 'unknown=1' }), [400], `${operationId}: an unknown parameter`);
    t.same(await statuses(endpoint, { headers: { 'content-type': 'text/plain' } }), [415], `${operationId}: its type`);
    const encoded = { more: ['content-encoding: compress'] };
    t.same(await statuses(endpoint, encoded), [415], `${operationId}: compressed`);
    const tooLong = { 'content-length': String((stream?.maxBytes ?? 1024 * 1024) + 1) };
    t.same(await statuses(endpoint, { headers: tooLong }), [413], `${operationId}: its length`);
    const doubled = { more: [`Authorization: Bearer ${tokens[endpoint.audience]}`] };
    t.same(await statuses(endpoint, doubled), [400], `${operationId}: two tokens`);
    if (takesIdempotencyKey(endpoint)) {
      const key = { 'idempotency-key': 'x'.repeat(201) };
      t.same(await statuses(endpoint, { headers: key }), [400], `${operationId}: its key`);
    }
  }
});

t.test('so are path and method', async (t) => {
  const byPath = Map.groupBy(endpoints, ({ path }) => path);
  for (const [path, [first, ...others]] of byPath) {
    if (!first) continue;
    const known = [first, ...others].map(({ method }) => method);
    const method = ['put', 'patch', 'post', 'delete'].find((one) => !known.some((other) => other === one));
    if (method) t.same(await statuses(first, { method }), [405], `${method} ${path}`);
  }
  for (const endpoint of writing.filter((one) => !one.path.endsWith('*}'))) {
    t.same(await statuses({ ...endpoint, path: `${endpoint.path}/` }), [404], `${endpoint.operationId}, with a slash`);
  }
});

t.test('so are Host and Origin, where they count', async (t) => {
  const open = await startTestApp(t, { database });
  for (const endpoint of writing.filter(({ audience }) => audience === 'owner')) {
    const { operationId } = endpoint;
    for (const headers of [{ host: 'rebound.example' }, { origin: 'http://elsewhere.example' }]) {
      t.same(await statuses(endpoint, { app: open, headers }), [403], `${operationId}: ${JSON.stringify(headers)}`);
    }
  }
});

t.test('so is who is a member, and who only reads', async (t) => {
  const issuer = await startIssuer(t);
  const members = await startTestApp(t, { database, config: { ownerAuth: issuer.ownerAuth } });
  await database.owner.query(
    `insert into app.organization_members (organization_id, subject, role) values ($1, 'viewer', 'viewer')`,
    [org.organizationId],
  );
  const bearer = async (subject: string) => ({ authorization: `Bearer ${await issuer.token(subject)}` });
  const [viewer, stranger] = [await bearer('viewer'), await bearer('stranger')];
  const ofOrganization = writing.filter(
    ({ audience, path, membership }) =>
      audience === 'owner' && path.includes('{organizationId}') && membership !== 'none',
  );
  t.ok(ofOrganization.length > 20);
  for (const endpoint of ofOrganization) {
    t.same(await statuses(endpoint, { app: members, headers: viewer }), [403], `${endpoint.operationId}: a viewer`);
    t.same(await statuses(endpoint, { app: members, headers: stranger }), [404], `${endpoint.operationId}: a stranger`);
  }
});

t.test('a body that nothing speaks against is asked for', async (t) => {
  const json = writing.filter((one) => !isStream(one.body));
  for (const endpoint of json) t.same(await statuses(endpoint), [100], endpoint.operationId);
});
