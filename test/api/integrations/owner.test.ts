import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Integration } from '../../../api/integrations/schema.ts';
import { expectSuccess, type Fields, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { authorizationEpoch, createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import {
  account,
  connect,
  createConnected,
  createIntegration,
  READ,
  tool,
  WRITE,
} from '../../support/integration_fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { startIssuer } from '../../support/jwt.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql);
const elsewhere = await createTestOrganization(sql);

type At = Pick<TestOrganization, 'organizationId'>;
const at = (where: At, rest = '') => ownerPath(where, `/integrations${rest}`);
const create = (fields: Fields = {}, where: At = org, client = app.owner) =>
  client.post<Integration>(at(where), { key: `k-${randomUUID().slice(0, 8)}`, provider: 'stripe', ...fields });

/** Each call about one integration. */
const calls = (ref: string, where: At = org, client = app.owner) => ({
  get: () => client.get<Integration>(at(where, `/${ref}`)),
  update: (patch: Fields = { name: 'Renamed' }) => client.patch<Integration>(at(where, `/${ref}`), patch),
  status: (status = 'disabled') => client.patch<Integration>(at(where, `/${ref}/status`), { status }),
  tools: (body: Fields = { accessMode: 'read_only' }) => client.put<Integration>(at(where, `/${ref}/tools`), body),
  map: (body: Fields = { role: 'primary' }) =>
    client.post<{ repairId: string; status: string }>(at(where, `/${ref}/context-mapping`), body),
  delete: () => client.delete<Integration>(at(where, `/${ref}`)),
});

const epoch = () => authorizationEpoch(sql, org.organizationId);

t.test('an owner makes, reads, changes, disables, enables and deletes an integration', async (t) => {
  const made = expectSuccess(await create({ key: 'payments', departments: ['growth'] }), 201);
  t.match(made, {
    organizationId: org.organizationId,
    key: 'payments',
    provider: 'stripe',
    name: 'Stripe',
    status: 'enabled',
    readiness: 'not_connected',
    accessMode: 'read_only',
    services: [],
    departments: ['growth'],
    settings: null,
    connection: null,
    contextMapping: null,
    discovery: null,
  });
  t.ok(made.tools.length > 3 && made.tools.every(({ enabled, available }) => !enabled && !available));
  for (const ref of ['payments', made.id, made.id.toUpperCase()]) {
    t.same(expectSuccess(await calls(ref).get()), made, ref);
  }
  t.match(expectSuccess(await calls('payments').update({ name: 'Money', departments: [] })), {
    name: 'Money',
    departments: [],
  });
  const disabled = expectSuccess(await calls('payments').status());
  t.match(disabled, { status: 'disabled' });
  t.same(expectSuccess(await calls('payments').status()), disabled, 'a repeat');
  t.match(expectSuccess(await calls('payments').status('enabled')), { status: 'enabled' });
  t.match(expectSuccess(await calls('payments').delete()), { id: made.id, name: 'Money' });
  for (const [name, call] of Object.entries(calls(made.id))) {
    t.equal(refusalOf(await call()), '404 integration_not_found', name);
  }
});

t.test('each provider has integrations, and its own name is a key of no other', async (t) => {
  const { rows } = await app.database.owner.query('select count(*)::int as n from app.integrations');
  const providers = ['github', 'google-analytics', 'google-workspace', 'lemon-squeezy', 'mcp'];
  for (const provider of [...providers, 'mongodb', 'stripe', 'upstash-redis', 'x-ads']) {
    const made = expectSuccess(await create({ key: provider, provider }), 201);
    t.match(made, { key: provider, provider, readiness: 'not_connected' });
    const other = await create({ key: provider, provider: provider === 'mcp' ? 'stripe' : 'mcp' });
    t.match(refusalOf(other), /^400 validation_failed/);
    t.same(issuePaths(other), ['key'], provider);
    expectSuccess(await calls(provider).delete());
  }
  const { rows: after } = await app.database.owner.query('select count(*)::int as n from app.integrations');
  t.same(after, rows);
});

t.test('what is no integration is 400, and says where', async (t) => {
  const { id } = expectSuccess(await create({ key: 'wrong' }), 201);
  for (const [fields, path] of [
    [{ key: 'No Key' }, 'key'],
    [{ key: randomUUID() }, 'key'],
    [{ key: 'a'.repeat(64) }, 'key'],
    [{ key: 'a--b' }, 'key'],
    [{ provider: 'sap' }, 'provider'],
    [{ provider: 'ecb-rates' }, 'provider'],
    [{ name: ' ' }, 'name'],
    [{ departments: ['sales'] }, 'departments.0'],
    [{ departments: ['growth', 'growth'] }, 'departments.1'],
    [{ accessMode: 'write' }, 'accessMode'],
    [{ settings: {} }, 'settings'],
  ] as const) {
    const reply = await create(fields);
    t.match(refusalOf(reply), /^400 validation_failed/, JSON.stringify(fields));
    t.ok(
      issuePaths(reply).some((one) => path.startsWith(one) || one.startsWith(path)),
      JSON.stringify(fields),
    );
  }
  const { update, status, tools, map } = calls(id);
  for (const reply of [
    await update({ key: 'other' }),
    await update({ name: null }),
    await status('paused'),
    await tools({}),
    await tools({ tools: [] }),
    await tools({ effects: {} }),
    await tools({ accessMode: 'all' }),
    await map({}),
    await map({ departments: [], workflowKeys: [] }),
    await map({ role: 'other' }),
    await map({ workflowKeys: ['No Key'] }),
  ]) {
    t.match(refusalOf(reply), /^400 validation_failed/, JSON.stringify(reply.body));
  }
  t.match(refusalOf(await app.owner.get(at(org, '/No%20Key'))), /^400 validation_failed/);
  expectSuccess(await calls(id).delete());
});

t.test('a key is of one integration, also for two at once and for a repeat', async (t) => {
  const all = await Promise.all(Array.from({ length: 6 }, () => create({ key: 'shop' })));
  t.same(all.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409]);
  t.same([...new Set(all.filter(({ status }) => status !== 201).map(refusalOf))], ['409 integration_conflict in_use']);
  const send = (body: Fields) => app.owner.post<Integration>(at(org), body, { headers: { 'idempotency-key': 'once' } });
  const first = expectSuccess(await send({ key: 'again', provider: 'stripe' }), 201);
  t.same(expectSuccess(await send({ key: 'again', provider: 'stripe' }), 201), first);
  t.match(refusalOf(await send({ key: 'other', provider: 'stripe' })), /^409 idempotency_key_reused/);
  const ends = await Promise.all(Array.from({ length: 4 }, () => calls('shop').delete()));
  t.same(ends.map(({ status }) => status).sort(), [200, 404, 404, 404]);
  expectSuccess(await calls('again').delete());
});

t.test('tools are chosen by mode or by list', async (t) => {
  const { id } = await createIntegration(sql, org, { key: 'tools', provider: 'mcp', tools: [READ, WRITE] });
  await connect(sql.api, org, id, account('acme'));
  const { tools } = calls(id);
  const enabled = ({ data }: { data: Integration }) => data.tools.filter((one) => one.enabled).map(({ key }) => key);
  t.same(enabled(await tools({ accessMode: 'read_only' })), [READ.key]);
  const all = await tools({ accessMode: 'full' });
  t.same(enabled(all), [READ.key, WRITE.key]);
  t.match(all.data, { accessMode: 'full' });
  t.same(enabled(await tools({ accessMode: 'full', tools: [WRITE.key] })), [WRITE.key], 'the list wins');
  const before = await epoch();
  t.same(enabled(await tools({ accessMode: 'full', tools: [WRITE.key] })), [WRITE.key], 'a repeat');
  t.equal(await epoch(), before);
  t.equal(refusalOf(await tools({ tools: [WRITE.key] })), '400 validation_failed read_only', 'the default mode');
  t.equal(refusalOf(await tools({ tools: ['nothing'] })), '400 validation_failed unknown_tool');
  t.equal(refusalOf(await tools({ tools: [] })), '400 validation_failed too_small', 'none is a disabled integration');
  const reads = await tools({ tools: [WRITE.key], effects: { [WRITE.key]: 'read' } });
  t.match(reads.data, { accessMode: 'read_only', tools: [{}, { key: WRITE.key, effect: 'read', enabled: true }] });
  t.equal(await epoch(), before + 1);
  expectSuccess(await calls(id).delete());
});

t.test('a tool that changed after its owner read it is not enabled unseen', async (t) => {
  const { id } = await createIntegration(sql, org, { key: 'unseen', provider: 'mcp', tools: [READ, WRITE] });
  await connect(sql.api, org, id, account('acme'));
  const { get, tools } = calls(id);
  const read = expectSuccess(await get()).tools;
  const digests = Object.fromEntries(read.map(({ key, digest }) => [key, digest]));
  const later = tool('items.find');
  const offer = (...offered: ReturnType<typeof tool>[]) =>
    transition(sql.api, 'integration_discovery_record', {
      organizationId: org.organizationId,
      integrationRef: id,
      connectionRevision: 1,
      discovery: { status: 'ok' },
      tools: offered,
    });
  await offer(tool(READ.key, { digest: later.digest }), WRITE, later);
  const before = expectSuccess(await get());
  const refused = await tools({ accessMode: 'full', tools: [READ.key, WRITE.key], digests });
  t.equal(refusalOf(refused), '409 integration_conflict tool_changed');
  t.same(issuePaths(refused), [`digests.${READ.key}`]);
  t.same(issuePaths(await tools({ accessMode: 'full', digests })), [`digests.${later.key}`, `digests.${READ.key}`]);
  t.same(expectSuccess(await get()), before, 'nothing has changed');
  const unchanged = expectSuccess(await tools({ accessMode: 'full', tools: [WRITE.key], digests }));
  t.same(
    unchanged.tools.filter(({ enabled }) => enabled).map(({ key }) => key),
    [WRITE.key],
    'one that it leaves off may have changed',
  );
  expectSuccess(await tools({ tools: [READ.key] }), 200);
  expectSuccess(await tools({ tools: [READ.key], digests: { [READ.key]: later.digest } }), 200);
  t.equal(
    refusalOf(await tools({ tools: [READ.key], digests: { [READ.key]: 'x' } })),
    '400 validation_failed invalid_format',
  );
  expectSuccess(await calls(id).delete());
});

t.test('what a tool of a known provider does is not for its owner to say', async (t) => {
  const { id, tools } = expectSuccess(await create({ provider: 'stripe' }), 201);
  const writes = tools.find(({ effect }) => effect === 'write');
  const reply = await calls(id).tools({ tools: [writes?.key], effects: { [writes?.key ?? '']: 'read' } });
  t.equal(refusalOf(reply), '400 validation_failed effect_known');
  t.same(issuePaths(reply), [`effects.${writes?.key}`]);
  t.equal(expectSuccess(await calls(id).get()).tools.find(({ key }) => key === writes?.key)?.enabled, false);
  expectSuccess(await calls(id).delete());
});

t.test('what it means to the organization waits for the next health report', async (t) => {
  const { id } = expectSuccess(await create({ key: 'meaning' }), 201);
  const mapping = { departments: ['growth'], businessFunctions: ['Sales'], workflowKeys: ['weekly-report'] };
  const first = expectSuccess(await calls(id).map(mapping));
  t.match(first, { status: 'queued' });
  t.match(expectSuccess(await calls(id).get()), { contextMapping: mapping, readiness: 'not_connected' });
  const second = expectSuccess(await calls(id).map({ taskPatterns: ['report *'], role: 'secondary' }));
  t.same(second, first, 'the last word counts');
  t.same(expectSuccess(await calls(id).get()).contextMapping, { taskPatterns: ['report *'], role: 'secondary' });
  const both = await Promise.all([calls(id).map({ role: 'primary' }), calls(id).map({ role: 'secondary' })]);
  t.same(
    both.map(({ status }) => status),
    [200, 200],
  );
  expectSuccess(await calls(id).delete());
});

t.test('a list goes by keys, in both directions, twenty at a time', async (t) => {
  const list = await createTestOrganization(sql);
  const keys = Array.from({ length: 25 }, (_, index) => `i-${String(index).padStart(2, '0')}`);
  for (const key of keys.toReversed()) await createIntegration(sql, list, { key });
  const page = (query: Readonly<Record<string, string | number>> = {}) =>
    app.owner.get<Integration[]>(at(list), { query });
  const first = await page();
  t.same(
    first.data.map(({ key }) => key),
    keys.slice(0, 20),
  );
  t.match(first.body.pagination, { limit: 20, hasNextPage: true, hasPreviousPage: false, previousCursor: null });
  const second = await page({ cursor: first.body.pagination.nextCursor ?? '' });
  t.same(
    second.data.map(({ key }) => key),
    keys.slice(20),
  );
  t.match(second.body.pagination, { hasNextPage: false, hasPreviousPage: true });
  const back = await page({ cursor: second.body.pagination.previousCursor ?? '' });
  t.same(back.data, first.data);
  t.match(back.body.pagination, { hasNextPage: true, hasPreviousPage: false });
  const small = await page({ limit: 3, cursor: second.body.pagination.previousCursor ?? '' });
  t.same(
    small.data.map(({ key }) => key),
    keys.slice(17, 20),
    'those right before it',
  );
  t.same((await page({ limit: 200 })).data.length, 25);
  for (const limit of [0, 201]) t.match(refusalOf(await page({ limit })), /^400/);
  const foreign = await app.owner.get(at(org), { query: { cursor: first.body.pagination.nextCursor ?? '' } });
  t.equal(refusalOf(foreign), '400 validation_failed invalid_cursor');
  t.same((await app.owner.get<Integration[]>(at(elsewhere))).data, []);
  t.equal(refusalOf(await app.owner.get(at({ organizationId: randomUUID() }))), '404 organization_not_found');
});

t.test('a page ends early where its integrations are large, for owners and for agents', async (t) => {
  const list = await createTestOrganization(sql);
  const keys = ['a', 'b', 'c', 'd', 'e'];
  for (const key of keys) await createConnected(sql, list, { key });
  // 2 MB each.
  await sql.owner.query(
    `insert into app.integration_tools (organization_id, integration_id, key, place, title, effect, risk, input_schema, digest, enabled)
     select i.organization_id, i.id, 'large.' || n, n, 'Tool', 'read', 'low', jsonb_build_object('x', repeat('x', 100000)),
       repeat('0', 64), true
     from app.integrations i, generate_series(1, 20) n where i.organization_id = $1`,
    [list.organizationId],
  );
  const authorizationEpochNow = await authorizationEpoch(sql, list.organizationId);
  type Query = Readonly<Record<string, string | number>>;
  const asOwner = (query: Query) => app.owner.get<Integration[]>(at(list), { query });
  const asAgent = (query: Query) =>
    app.service.get<Integration[]>(`/internal/agent${at(list)}`, {
      query: { ...query, authorizationEpoch: authorizationEpochNow },
    });
  for (const page of [asOwner, asAgent]) {
    const first = await page({ limit: 200 });
    const second = await page({ limit: 200, cursor: first.body.pagination.nextCursor ?? '' });
    const back = await page({ limit: 200, cursor: second.body.pagination.previousCursor ?? '' });
    t.same(
      [first, second, back].map(({ data }) => data.map(({ key }) => key)),
      [keys.slice(0, 3), keys.slice(3), keys.slice(0, 3)],
    );
    t.match(first.body.pagination, { limit: 200, hasNextPage: true, hasPreviousPage: false });
    t.match(second.body.pagination, { hasNextPage: false, hasPreviousPage: true });
    t.match(back.body.pagination, { hasNextPage: true, hasPreviousPage: false });
  }
});

t.test('an integration of another organization is not there, and nothing of it is told', async (t) => {
  const { id, key } = expectSuccess(await create({ key: 'hidden' }), 201);
  const before = expectSuccess(await calls(id).get());
  for (const ref of [id, key]) {
    for (const [name, call] of Object.entries(calls(ref, elsewhere))) {
      t.equal(refusalOf(await call()), '404 integration_not_found', name);
    }
  }
  const nowhere = { organizationId: randomUUID() };
  t.equal(refusalOf(await create({}, nowhere)), '404 organization_not_found');
  for (const [name, call] of Object.entries(calls(id, nowhere))) {
    t.equal(refusalOf(await call()), '404 organization_not_found', name);
  }
  t.same(expectSuccess(await calls(id).get()), before);
  expectSuccess(await calls(id).delete());
});

t.test('a viewer reads integrations and changes none', async (t) => {
  const issuer = await startIssuer(t);
  const members = await startTestApp(t, { database: app.database, config: { ownerAuth: issuer.ownerAuth } });
  const { organizationId } = org;
  await transition(sql.api, 'organization_member_put', { organizationId, subject: 'anna', role: 'owner' });
  await transition(sql.api, 'organization_member_put', { organizationId, subject: 'vic', role: 'viewer' });
  const [anna, vic] = [members.owner.as(await issuer.token('anna')), members.owner.as(await issuer.token('vic'))];
  const { id } = expectSuccess(await create({ key: 'seen' }, org, anna), 201);
  t.match(expectSuccess(await vic.get<Integration[]>(at(org))), [{ id }]);
  const { get, ...writes } = calls(id, org, vic);
  t.match(expectSuccess(await get()), { id });
  t.equal(refusalOf(await create({}, org, vic)), '403 forbidden');
  for (const [name, call] of Object.entries(writes)) t.equal(refusalOf(await call()), '403 forbidden', name);
  const mallory = members.owner.as(await issuer.token('mallory'));
  for (const [name, call] of Object.entries(calls(id, org, mallory))) {
    t.equal(refusalOf(await call()), '404 organization_not_found', name);
  }
  expectSuccess(await calls(id, org, anna).delete());
});

t.test('tools that the provider has no more, or that need other scopes, are shown as such', async (t) => {
  const scoped = tool('scoped.read', { requiredScopes: ['other'] });
  const { id } = await createIntegration(sql, org, { key: 'reasons', provider: 'mcp', tools: [READ, WRITE, scoped] });
  const reasons = async () =>
    expectSuccess(await calls(id).get()).tools.map(({ available, unavailableReason }) => [
      available,
      unavailableReason,
    ]);
  t.same(await reasons(), [
    [false, 'not_connected'],
    [false, 'read_only'],
    [false, 'not_connected'],
  ]);
  await connect(sql.api, org, id, account('acme'));
  await transition(sql.api, 'integration_discovery_record', {
    organizationId: org.organizationId,
    integrationRef: id,
    connectionRevision: 1,
    discovery: { status: 'ok' },
    tools: [WRITE, scoped],
  });
  t.same(await reasons(), [
    [false, 'read_only'],
    [false, 'not_offered'],
    [false, 'scopes_missing'],
  ]);
  t.match(expectSuccess(await calls(id).get()), {
    discovery: { status: 'ok', error: null },
    connection: { revision: 1 },
  });
  expectSuccess(await calls(id).delete());
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
