import t from 'tap';
import { authorizationEpoch, createTestOrganization } from '../../support/fixtures.ts';
import {
  createConnected,
  createIntegration,
  integrationCreate,
  integrationOf,
  READ,
  readIntegration,
  tool,
  WRITE,
} from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const missing = { status: 404, code: 'integration_not_found' };

scenario('an integration is made with all of its tools off, and its key is its own', async (test) => {
  const org = await createTestOrganization(sql);
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const made = await createIntegration(sql, org, { key: 'shop', departments: ['growth'] });
  test.match(made, { status: 'enabled', access_mode: 'read_only', readiness: 'not_connected', connection: null });
  test.ok(made.tools.every(({ enabled }) => !enabled));
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch + 1);
  const inUse = { status: 409, code: 'integration_conflict', reason: 'in_use' };
  test.match(await refusal(integrationCreate(sql.api, org, { key: 'shop' })), inUse);
  await createIntegration(sql, await createTestOrganization(sql), { key: 'shop' });
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await integrationCreate(session, org, { key: 'other' });
  const second = refusal(integrationCreate(rival, org, { key: 'other' }));
  await rival.waits();
  await session.commit();
  test.match(await second, inUse);
});

scenario('tools are chosen by mode or by list, and each choice raises the epoch once', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id } = await createConnected(sql, org);
  const put = async (change: JsonObject) => {
    const { tools } = integrationOf(
      await transition(sql.api, 'integration_tools_put', { organizationId, integrationRef: id, change }),
    );
    return tools.filter(({ enabled }) => enabled).map(({ key }) => key);
  };
  test.same(await put({ accessMode: 'full' }), [READ.key, WRITE.key]);
  const epoch = await authorizationEpoch(sql, organizationId);
  test.same(await put({}), [READ.key], 'read_only unless said');
  test.equal(await authorizationEpoch(sql, organizationId), epoch + 1);
  test.same(await put({}), [READ.key]);
  test.equal(await authorizationEpoch(sql, organizationId), epoch + 1, 'a repeat changes nothing');
  test.same(await put({ accessMode: 'full', tools: [WRITE.key] }), [WRITE.key]);
  test.same(await put({ tools: [WRITE.key], effects: { [WRITE.key]: 'read' } }), [WRITE.key], 'as its owner knows it');
  const invalid = (reason: string) => ({ status: 400, code: 'validation_failed', reason });
  test.match(await refusal(put({ tools: ['nothing'] })), invalid('unknown_tool'));
  test.match(await refusal(put({ effects: { nothing: 'read' } })), invalid('unknown_tool'));
  test.match(await refusal(put({ tools: [READ.key], effects: { [READ.key]: 'write' } })), invalid('read_only'));
  const foreign = { organizationId: (await createTestOrganization(sql)).organizationId, integrationRef: id };
  test.match(await refusal(transition(sql.api, 'integration_tools_put', { ...foreign, change: {} })), missing);
});

scenario('a tool that changes at its provider is off again, and one that is gone too', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id } = await createConnected(sql, org);
  const record = async (tools: readonly JsonObject[] | null, fields: JsonObject = {}) =>
    integrationOf(
      await transition(sql.api, 'integration_discovery_record', {
        organizationId,
        integrationRef: id,
        connectionRevision: 1,
        discovery: { status: 'ok' },
        ...(tools === null ? {} : { tools }),
        ...fields,
      }),
    );
  const epoch = await authorizationEpoch(sql, organizationId);
  const same = await record([READ, WRITE, tool('items.find')]);
  test.same(
    same.tools.map(({ key, enabled }) => [key, enabled]),
    [
      [READ.key, true],
      [WRITE.key, true],
      ['items.find', false],
    ],
  );
  test.equal(await authorizationEpoch(sql, organizationId), epoch, 'one more that is off gives nothing');
  const changed = await record([tool(READ.key, { digest: WRITE.digest, effect: 'write' }), WRITE]);
  test.match(changed.tools[0], { enabled: false, effect: 'write', offered: true });
  test.equal(await authorizationEpoch(sql, organizationId), epoch + 1);
  const gone = await record([READ]);
  test.match(
    gone.tools.find(({ key }) => key === WRITE.key),
    {
      enabled: false,
      offered: false,
      unavailable_reason: 'not_offered',
    },
  );
  const failed = await record(null, {
    discovery: { status: 'failed', error: { code: 'provider_failed', message: '' } },
  });
  test.match(failed, { discovery_status: 'failed', discovery_error: { code: 'provider_failed' } });
  test.same(failed.tools.length, 3, 'a failure says nothing about tools');
  test.match(await refusal(record([READ], { connectionRevision: 0 })), { status: 409, reason: 'revision_moved' });
  const choose = { organizationId, integrationRef: id, change: { accessMode: 'full', tools: [WRITE.key] } };
  test.match(await refusal(transition(sql.api, 'integration_tools_put', choose)), { reason: 'not_offered' });
});

scenario('name, departments, status and settings: what agents are given by raises the epoch', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id, key } = await createConnected(sql, org);
  const epochs = async (work: () => Promise<unknown>) => {
    const before = await authorizationEpoch(sql, organizationId);
    await work();
    return (await authorizationEpoch(sql, organizationId)) - before;
  };
  const at = { organizationId, integrationRef: key };
  const update = (patch: JsonObject) => transition(sql.api, 'integration_update', { ...at, patch });
  const turn = (status: string) => transition(sql.api, 'integration_status_set', { ...at, status });
  const settle = (settings: JsonObject, disconnect = false, connectionRevision = 1, forgetTools = false) =>
    transition(sql.api, 'integration_settings_put', { ...at, connectionRevision, settings, disconnect, forgetTools });
  test.equal(await epochs(() => update({ name: 'Shop' })), 0);
  test.equal(await epochs(() => update({ departments: ['growth'] })), 1);
  test.equal(await epochs(() => update({ departments: ['growth'] })), 0);
  test.equal(await epochs(() => turn('disabled')), 1);
  test.equal(await epochs(() => turn('disabled')), 0);
  test.equal(await epochs(() => turn('enabled')), 1);
  test.equal(await epochs(() => settle({ kind: 'a' })), 1);
  test.equal(await epochs(() => settle({ kind: 'a' }, true, 1, true)), 0, 'the same server');
  const { tools } = await readIntegration(sql, org, id);
  test.equal(tools.filter(({ enabled }) => enabled).length, 2);
  test.equal(await epochs(() => settle({ kind: 'b' }, true)), 1, 'once for all that changes');
  const moved = await readIntegration(sql, org, id);
  test.match(moved, { name: 'Shop', connection: null, connection_revision: 2 });
  test.equal(moved.tools.filter(({ enabled }) => enabled).length, 2, 'the tools of the provider');
  test.equal(await epochs(() => settle({ kind: 'd' }, true, 2, true)), 1);
  test.same((await readIntegration(sql, org, id)).tools, [], 'those of the server');
  test.match(await refusal(settle({ kind: 'c' })), { status: 409, code: 'integration_conflict' });
  const foreign = { organizationId: (await createTestOrganization(sql)).organizationId, integrationRef: id };
  test.match(await refusal(transition(sql.api, 'integration_status_set', { ...foreign, status: 'disabled' })), missing);
  test.match(await refusal(transition(sql.api, 'integration_update', { ...foreign, patch: {} })), missing);
  test.match(await refusal(transition(sql.api, 'integration_delete', foreign)), missing);
  test.equal(await epochs(() => transition(sql.api, 'integration_delete', at)), 1);
  test.match(await refusal(transition(sql.api, 'integration_delete', at)), missing);
});

scenario('a page goes by keys, in both directions', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  for (const key of ['c', 'a', 'b']) await createIntegration(sql, org, { key });
  await createIntegration(sql, await createTestOrganization(sql), { key: 'd' });
  const page = async (key: string | null, inclusive: boolean, backward: boolean) => {
    const { integrations } = await transition(sql.api, 'integrations_list', {
      organizationId,
      key,
      inclusive,
      backward,
      limit: 2,
    });
    return (integrations as { key: string }[]).map((row) => row.key);
  };
  test.same(await page(null, false, false), ['a', 'b']);
  test.same(await page('b', false, false), ['c']);
  test.same(await page('b', true, false), ['b', 'c']);
  test.same(await page('c', false, true), ['a', 'b']);
  test.same(await page('a', false, true), []);
  test.same(await page(null, false, true), ['b', 'c'], 'the last page');
});
