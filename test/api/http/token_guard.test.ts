import { randomUUID } from 'node:crypto';
import t from 'tap';
import { agentPath, expectSuccess, ownerPath, storedKeys } from '../../support/api_fixtures.ts';
import { ADMIN_TOKEN, OWNER_TOKEN, SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { type Operation, readOpenApi } from '../../support/openapi.ts';
import { sendPath } from '../../support/path_requests.ts';
import type { Components, JsonSchema } from '../../support/schema_arbitrary.ts';
import { makeWorld, type World } from '../../support/worlds.ts';

// Open to owners, and yet with a token of theirs: one that a worker can know of another installation's settings.
const app = await startTestApp(t, { config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } } });
const owner = app.owner.as(OWNER_TOKEN);
const { operations, components } = await readOpenApi(app.owner);
const fill = operations.find(({ operationId }) => operationId === 'getTask');
if (!fill) throw new Error('there is no getTask');
const world = await makeWorld(app, fill, 'operator');
const elsewhere = await makeWorld(app, fill);
const of = (from: World, name: string): string => from[name] ?? '';
const secret = (leaseToken: string): string => leaseToken.split('.')[1] ?? '';

const held: Readonly<Record<string, string>> = {
  'the execution token of the run': of(world, 'capability'),
  'the lease token of the run': of(world, 'runLease'),
  'the secret of the lease of a claim': secret(of(world, 'claimLease')),
  'the secret of the lease of a turn': secret(of(world, 'turnLease')),
  'an execution token of another organization': of(elsewhere, 'capability'),
  'the gateway capability': of(world, 'gatewayCapability'),
  'the service token': SERVICE_TOKEN,
  'an owner’s token': OWNER_TOKEN,
  'an administrator’s token': ADMIN_TOKEN,
};
const tokens = Object.values(held);

const around: readonly ((token: string) => string)[] = [
  (token) => token,
  (token) => `BUSINESS_RUNNER_TOKEN=${token}`,
  (token) => `{"authorization":"Bearer ${token}"}`,
  (token) => `curl -H 'Authorization: Bearer%20${token}' …`,
  (token) => `😀${token}…`,
];

type Place = readonly (string | number)[];

/** Every place of a text in a body by its schema, and one for each name that it leaves open. */
function placesOf(schema: JsonSchema, at: Place = []): Place[] {
  const { $ref: reference, items, properties = {}, additionalProperties, type } = schema;
  if (at.length > 7) return [];
  if (typeof reference === 'string') {
    return placesOf((components as Components)[reference.replace('#/components/schemas/', '')] ?? {}, at);
  }
  const inner = ['anyOf', 'oneOf', 'allOf'].flatMap((word) => (schema[word] ?? []) as JsonSchema[]);
  const named = Object.entries(properties as Record<string, JsonSchema>);
  return [
    ...(type === 'string' ? [at] : []),
    ...inner.flatMap((part) => placesOf(part, at)),
    ...(items === undefined ? [] : placesOf(items as JsonSchema, [...at, 0])),
    ...named.flatMap(([name, part]) => placesOf(part, [...at, name])),
    ...(typeof additionalProperties === 'object' ? [[...at, 'anything']] : []),
  ];
}

const nested = (place: Place, text: unknown): unknown =>
  place.toReversed().reduce<unknown>((value, key) => (key === 0 ? [value] : { [key]: value }), text);

const isGuarded = ({ method, path }: Operation) =>
  method !== 'GET' && /^\/internal\/(?:agent|runs|run-requests)\b/.test(path);
const guarded = operations.filter(isGuarded);

function pathOf({ path }: Operation): string {
  const values: World = { ...world, taskRef: of(world, 'readyId'), runRequestId: of(world, 'requestId') };
  return path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? 'a.txt');
}

t.test('whoever hands in a token at any place of any body is refused, and told where', async (t) => {
  t.ok(guarded.length > 20);
  let turn = 0;
  for (const operation of guarded.filter(({ body }) => body?.mediaType === 'application/json')) {
    const all = placesOf(operation.body?.schema ?? {}).map((place) => JSON.stringify(place));
    const places = [...new Set(all)].map((text): Place => JSON.parse(text));
    const fenced = /^\/internal\/(?:runs|run-requests)\/\{/.test(operation.path);
    for (const place of [...places, ['unknown', 'field', 0]]) {
      if (fenced && place.join('.') === 'leaseToken') continue;
      turn += 1;
      const token = tokens[turn % tokens.length] ?? '';
      const text = (around[turn % around.length] ?? String)(token);
      const lease = fenced ? { organizationId: of(world, 'organizationId'), leaseToken: of(world, 'runLease') } : {};
      const body = { ...lease, ...(nested(place, text) as object) };
      const reply = await app.service.send(operation.method, pathOf(operation), body);
      const what = `${operation.operationId} ${place.join('.')}`;
      const issues = [{ path: place.join('.'), code: 'token_found' }];
      if (place[0] === 'organizationId') t.equal(reply.status, 400, what);
      else t.match(reply, { status: 400, code: 'validation_failed', body: { error: { issues } } }, what);
      for (const one of tokens) if (JSON.stringify(reply.body).includes(one)) t.fail(`${what} repeats it`);
    }
  }
  t.ok(turn > 200, `${turn} places`);
});

t.test('names of members, paths, queries and keys are searched too', async (t) => {
  const status = agentPath({ organizationId: of(world, 'organizationId') }, '/tasks');
  for (const [name, token] of Object.entries(held)) {
    for (const body of [
      { [token]: 1 },
      { title: { [token]: ['x'] } },
      { spec: { [`x${token}`]: { [token]: token } } },
    ]) {
      const reply = await app.service.post(status, body);
      t.match(reply, { status: 400, body: { error: { issues: [{ code: 'token_found' }] } } }, name);
      t.notOk(JSON.stringify(reply.body).includes(token), `${name} is not repeated`);
    }
    const put = (path: string) =>
      app.service.put(`/internal/runs/${of(world, 'runId')}/outputs/${path}`, 'x', {
        headers: { 'x-organization-id': of(world, 'organizationId'), 'x-lease-token': of(world, 'runLease') },
      });
    const inPath = await put(`a/${encodeURIComponent(token)}.txt`);
    t.match(inPath, { status: 400, body: { error: { issues: [{ path: 'path', code: 'token_found' }] } } }, name);
    const key = await app.service.post(status, {}, { headers: { 'idempotency-key': `k-${token}` } });
    t.match(key, { status: 400, body: { error: { issues: [{ path: 'Idempotency-Key' }] } } }, name);
    const query = await app.service.post(status, {}, { query: { note: token } });
    t.match(query, { status: 400, body: { error: { issues: [{ path: 'note', code: 'token_found' }] } } }, name);
  }
});

t.test('a run’s token is found in capitals, and behind other hex digits', async (t) => {
  const path = agentPath({ organizationId: of(world, 'organizationId') }, '/tasks');
  for (const token of [
    of(elsewhere, 'capability'),
    of(elsewhere, 'gatewayCapability'),
    secret(of(world, 'claimLease')),
  ]) {
    for (const title of [token.toUpperCase(), `%3D${token}`, `${token}abc`, `x ${'0'.repeat(64)}${token}`]) {
      const reply = await app.service.post(path, { title });
      t.match(reply, { status: 400, body: { error: { issues: [{ path: 'title', code: 'token_found' }] } } });
    }
  }
});

t.test('bytes are searched as they pass by, and nothing of them stays', async (t) => {
  const org = { organizationId: of(world, 'organizationId') };
  const before = await storedKeys(app, org);
  const lease = { 'x-organization-id': org.organizationId, 'x-lease-token': of(world, 'runLease') };
  const own = ['the execution token of the run', 'the lease token of the run', 'the service token', 'an owner’s token'];
  const output = `/internal/runs/${of(world, 'runId')}/outputs/b.txt`;
  const input = agentPath(org, `/tasks/${of(world, 'readyId')}/inputs/b.txt`);
  for (const name of own) {
    const token = held[name] ?? '';
    for (const lead of [0, 10, 65_536 - 20, 200_000]) {
      const bytes = Buffer.concat([Buffer.alloc(lead, 'x'), Buffer.from(token), Buffer.alloc(lead, 'y')]);
      const stored = await app.service.put(output, bytes, { headers: lease });
      t.match(stored, { status: 400, body: { error: { issues: [{ code: 'token_found' }] } } }, `${name}, ${lead}`);
    }
    const client = name.startsWith('the lease') ? undefined : app.owner.as(of(world, 'capability'));
    const uploaded = await client?.put(input, `token: ${token}`);
    if (uploaded) t.match(uploaded, { status: 400, body: { error: { issues: [{ code: 'token_found' }] } } }, name);
  }
  t.same(await storedKeys(app, org), before);
});

t.test('a token that comes in pieces is no reply', async (t) => {
  const { organizationId } = { organizationId: of(world, 'organizationId') };
  const lease = { organizationId, leaseToken: of(world, 'turnLease') };
  let revision = 1;
  const append = async (text: string) => {
    const body = { ...lease, baseRevision: revision, append: text };
    const reply = await app.service.post<{ revision: number }>(
      `/internal/runs/${of(world, 'turnRunId')}/message`,
      body,
    );
    if (reply.status === 200) revision = reply.data.revision;
    return reply;
  };
  const refused = { status: 400, body: { error: { issues: [{ path: 'append', code: 'token_found' }] } } };
  const pieced = [
    secret(of(world, 'turnLease')),
    SERVICE_TOKEN,
    of(world, 'capability'),
    of(world, 'gatewayCapability'),
  ];
  for (const token of pieced) {
    for (const at of [1, 30, token.length - 8]) {
      expectSuccess(await append(`It is ${token.slice(0, at)}`));
      t.match(await append(token.slice(at)), refused, `after ${at}`);
      expectSuccess(await append('. '));
    }
  }
  // Of the call's own and of the settings', which a runtime knows, also the last letter.
  for (const token of pieced.slice(0, 2)) {
    for (const letter of token.slice(0, -1)) expectSuccess(await append(letter));
    t.match(await append(token.slice(-1)), refused, 'letter by letter');
    expectSuccess(await append(' '));
  }
});

t.test('ordinary texts are taken, hashes and ids among them', async (t) => {
  const hex = (length: number) => Array.from({ length }, (_, at) => ((at * 7 + length) % 16).toString(16)).join('');
  const texts = [
    'The order 0190f3c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f is paid.',
    `sha256:${hex(64)}`,
    `commit ${hex(40)}`,
    hex(128),
    hex(10_000),
    Buffer.from(hex(4_000), 'hex').toString('base64'),
    of(world, 'runId'),
    `${of(world, 'capability').slice(1)}`,
    secret(of(world, 'runLease')).slice(0, 63),
    SERVICE_TOKEN.slice(0, -1),
    'Bearer tokens are secrets',
    '',
  ];
  for (const objective of texts) {
    const reply = await app.service.post(agentPath({ organizationId: of(world, 'organizationId') }, '/tasks'), {
      ...{ title: 'Count', ownerProfileKey: 'growth', dedupeKey: randomUUID() },
      spec: { objective },
    });
    t.equal(reply.status, 201, `${objective.slice(0, 40)}: ${JSON.stringify(reply.body.error ?? '')}`);
  }
});

t.test('a gateway capability is held for as long as it opens anything', async (t) => {
  const path = agentPath({ organizationId: of(world, 'organizationId') }, '/tasks');
  const title = of(elsewhere, 'gatewayCapability');
  const write = () => app.service.post(path, { title, ownerProfileKey: 'growth' });
  t.match(await write(), { status: 400, body: { error: { issues: [{ code: 'token_found' }] } } });
  await app.database.owner.query(
    'update app.integration_gateway_capabilities set expires_at = now() where organization_id = $1',
    [of(elsewhere, 'organizationId')],
  );
  expectSuccess(await write(), 201);
});

/** Text columns of every table and view, whatever reads them. */
async function relationsWith(token: string): Promise<string[]> {
  const { rows } = await app.database.owner.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const { rowCount } = await app.database.owner.query(
      `select from ${name} x where strpos(lower(x::text), lower($1)) > 0 limit 1`,
      [token],
    );
    if (rowCount) found.push(name);
  }
  return found;
}

t.test('no token is anywhere where a viewer, an administrator or an analyst reads', async (t) => {
  const secrets = tokens.map((token) => (token.includes('.') ? secret(token) : token));
  // Whatever reads: REST, event streams, GraphQL and the views for analysts show what is stored.
  for (const token of secrets) t.same(await relationsWith(token), [], 'no table of any schema');
  const marker = `planted-${randomUUID()}`;
  const org = { organizationId: of(world, 'organizationId') };
  const path = agentPath(org, '/tasks');
  expectSuccess(await app.service.post(path, { title: marker, ownerProfileKey: 'growth' }), 201);
  t.not((await relationsWith(marker)).length, 0, 'which would be found');

  const reads = operations.filter(({ method, path }) => method === 'GET' && path.startsWith('/organizations/{'));
  t.ok(reads.length > 25);
  let shown = 0;
  for (const operation of reads.filter(({ path }) => !path.endsWith('/events'))) {
    const response = await sendPath(app, operation, world, undefined, OWNER_TOKEN);
    if (response.status === 200) shown += 1;
    const body = response.body.toString('latin1');
    for (const token of secrets) if (body.includes(token)) t.fail(`${operation.operationId} shows a token`);
  }
  t.ok(shown > 20, `${shown} of ${reads.length} show something`);
  const events = await owner.fetch(ownerPath(org, `/chats/${of(world, 'chatId')}/events`));
  const first = await events.body?.getReader().read();
  const text = Buffer.from(first?.value ?? []).toString();
  t.match(text, /chat\.snapshot/);
  for (const token of secrets) t.notOk(text.includes(token));
  const logged = JSON.stringify(app.logged.filter(({ msg }) => msg !== 'request'));
  for (const token of secrets) t.notOk(logged.includes(token), 'nor in the log of the process');
});
