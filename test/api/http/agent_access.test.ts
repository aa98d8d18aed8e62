import { randomUUID } from 'node:crypto';
import t from 'tap';
import { agentCalls, agentReads, agentWrites } from '../../support/agent_calls.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  fingerprint,
  type HeldRun,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, startTestApp } from '../../support/app.ts';
import {
  createSecondProfile,
  createTestOrganization,
  endLease,
  type TestOrganization,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t, {
  config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } },
});
const owner = app.owner.as(OWNER_TOKEN);
/** The same app, whose owner is the one with the token. */
const owned = { ...app, owner };
const sql = sqlOf(app);
const capacity = { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } };
const org = await createTestOrganization(sql, { key: 'operator', ...capacity });
const growth = await createSecondProfile(sql, org, { key: 'growth', kind: 'department', maxConcurrentRuns: 50 });
const chat = await createSecondProfile(sql, org, { key: 'chat', kind: 'chat', maxConcurrentRuns: 50 });
const elsewhere = await createTestOrganization(sql, capacity);
const UNAUTHORIZED = '401 agent_unauthorized';

const run = (at: TestOrganization, fields: Fields = {}) => runTask(owned, at, fields);
const agentOf = (held: HeldRun) => app.owner.as(held.executionToken);

t.test('the status says how the organization stands, and who asks', async (t) => {
  const held = await run(growth);
  const ready = await makeTask(owned, growth);
  const { data } = await agentOf(held).get<{ dispatch: { lanes: Fields[] } } & Fields>(agentPath(org, '/status'));
  t.match(data, {
    organization: { id: org.organizationId, status: 'active', workDispatchStoppedAt: null },
    dispatch: { stopped: false, capacity: 50, held: 1 },
  });
  t.same(
    data.dispatch.lanes.find((lane) => lane['key'] === 'growth'),
    {
      agentProfileId: growth.profileId,
      key: 'growth',
      kind: 'task',
      capacity: 50,
      held: 1,
      ready: 1,
    },
  );
  t.same(data['caller'], {
    kind: 'capability',
    agentProfileId: growth.profileId,
    profileKind: 'department',
    runId: held.runId,
    taskId: held.taskId,
    mode: 'execute',
  });
  const asService = await app.service.get<Fields>(agentPath(org, '/status'));
  t.match(asService.data['caller'], { kind: 'service', runId: null });
  await owner.post(ownerPath(org, `/tasks/${ready.id}/cancel`));
  expectSuccess(await workerOf(app, held).complete());
});

t.test('a capability reads its own organization, all of it, and no other', async (t) => {
  const held = await run(growth);
  const other = await makeTask(owned, org);
  const foreign = await makeTask(owned, elsewhere);
  for (const [name, call] of Object.entries(agentReads(agentOf(held), org, other.id))) {
    t.equal((await call()).status, 200, name);
  }
  const before = await fingerprint(app);
  for (const [name, call] of Object.entries(agentCalls(agentOf(held), elsewhere, foreign.id))) {
    t.equal(refusalOf(await call()), UNAUTHORIZED, name);
  }
  for (const [name, call] of Object.entries(agentCalls(agentOf(held), { organizationId: randomUUID() }, foreign.id))) {
    t.equal(refusalOf(await call()), UNAUTHORIZED, `${name} of no organization`);
  }
  t.equal(await fingerprint(app), before);
  expectSuccess(await workerOf(app, held).complete());
  await owner.post(ownerPath(org, `/tasks/${other.id}/cancel`));
});

t.test('a department run changes its own task and what is below it, and nothing else', async (t) => {
  const held = await run(growth);
  const other = await makeTask(owned, growth, { scheduledAt: '2099-01-01T00:00:00Z' });
  const agent = agentOf(held);
  const before = await fingerprint(app);
  for (const ref of [other.id, other.identifier, randomUUID(), 'T-99999']) {
    for (const [name, call] of Object.entries(agentWrites(agent, org, ref))) {
      t.equal(refusalOf(await call()), UNAUTHORIZED, `${name} ${ref}`);
    }
  }
  const child = { title: 'x', parentId: other.id, ownerProfileKey: 'growth' };
  t.equal(refusalOf(await agent.post(agentPath(org, '/tasks'), child)), UNAUTHORIZED, 'below another task');
  t.equal(await fingerprint(app), before);
  const below = await agent.post(agentPath(org, '/tasks'), { title: 'x', parentId: held.taskId });
  t.equal(refusalOf(below), '409 state_conflict not_an_open_initiative', 'its own task is no initiative, but its own');
  const own = await readTask(owned, org, held.taskId);
  const renamed = await agent.patch(agentPath(org, `/tasks/${held.taskId}`), {
    expectedVersion: own.version,
    title: 'Mine',
  });
  t.match(expectSuccess(renamed), { title: 'Mine' });
  expectSuccess(await agent.put(agentPath(org, `/tasks/${own.identifier}/inputs/a.txt`), 'a'), 201);
  t.match(expectSuccess(await agent.post(agentPath(org, `/tasks/${held.taskId}/cancel`))), { status: 'cancelled' });
  t.equal(refusalOf(await agent.get(agentPath(org, '/status'))), UNAUTHORIZED, 'which ends its capability');
  expectSuccess(await workerOf(app, held).complete());
  await owner.post(ownerPath(org, `/tasks/${other.id}/cancel`));
});

t.test('runs of operator and chat profiles change any task', async (t) => {
  for (const profile of [org, chat]) {
    const held = await run(profile);
    const other = await makeTask(owned, growth);
    const agent = agentOf(held);
    const path = agentPath(org, `/tasks/${other.id}`);
    expectSuccess(await agent.patch(path, { expectedVersion: other.version, title: 'Changed' }));
    expectSuccess(await agent.put(`${path}/inputs/a.txt`, 'a'), 201);
    expectSuccess(await agent.post(`${path}/dependencies`, { dependsOn: held.taskId }), 201);
    t.match(expectSuccess(await agent.post(`${path}/cancel`)), { title: 'Changed', status: 'cancelled' });
    expectSuccess(await workerOf(app, held).complete());
  }
});

t.test('operators and chats may stop work dispatch; lifting a stop is for owners and the service token', async (t) => {
  const dispatch = agentPath(org, '/work-dispatch');
  const department = await run(growth);
  t.equal(refusalOf(await agentOf(department).patch(dispatch, { stopped: true })), UNAUTHORIZED);
  const held = await run(org);
  const agent = agentOf(held);
  const stopped = expectSuccess(await agent.patch<{ organization: Fields }>(dispatch, { stopped: true }));
  t.ok(stopped.organization['workDispatchStoppedAt']);
  t.same(stopped, expectSuccess(await agent.patch(dispatch, { stopped: true })), 'a repeat changes nothing');
  t.equal(refusalOf(await agent.patch(dispatch, { stopped: false })), UNAUTHORIZED);
  t.match((await agent.get(agentPath(org, '/status'))).data, { dispatch: { stopped: true } });
  const task = await makeTask(owned, growth);
  t.match(expectSuccess(await app.service.patch(dispatch, { stopped: false })), {
    publishedRunRequests: 1,
    organization: { workDispatchStoppedAt: null },
  });
  for (const body of [{}, { stopped: null }, { stopped: 'true' }, { stopped: true, reason: 'x' }, [true]]) {
    t.match(refusalOf(await app.service.patch(dispatch, body)), /^400 validation_failed/, JSON.stringify(body));
  }
  t.equal(
    refusalOf(
      await app.service.patch(agentPath({ organizationId: randomUUID() }, '/work-dispatch'), { stopped: true }),
    ),
    '404 not_found',
  );
  t.equal(refusalOf(await app.service.get(agentPath({ organizationId: randomUUID() }, '/status'))), '404 not_found');
  await owner.post(ownerPath(org, `/tasks/${task.id}/cancel`));
  for (const one of [department, held]) expectSuccess(await workerOf(app, one).complete());
});

/** What ends a run, and so its capability, at once. */
const endings: Readonly<Record<string, (held: HeldRun, at: TestOrganization) => Promise<unknown>>> = {
  complete: async (held) => expectSuccess(await workerOf(app, held).complete()),
  fail: async (held) => expectSuccess(await workerOf(app, held).fail()),
  'a retryable failure': async (held) => expectSuccess(await workerOf(app, held).fail({ retryable: true })),
  cancel: async (held, at) => expectSuccess(await owner.post(ownerPath(at, `/tasks/${held.taskId}/cancel`))),
  'the end of its lease': (held) => endLease(sql, held),
  'a profile that is disabled': (_held, at) => updateProfile(sql.api, at, { status: 'disabled' }),
  'an organization that is deleted': (held) =>
    transition(sql.api, 'organization_delete', { organizationId: held.organizationId }),
};

t.test('a capability ends with its run, whatever ends it', async (t) => {
  for (const [name, end] of Object.entries(endings)) {
    const at = await createTestOrganization(sql);
    const held = await run(at);
    const agent = agentOf(held);
    t.equal((await agent.get(agentPath(at, '/status'))).status, 200);
    await end(held, at);
    for (const [call, send] of Object.entries(agentCalls(agent, at, held.taskId))) {
      t.equal(refusalOf(await send()), UNAUTHORIZED, `${call} after ${name}`);
    }
  }
});

t.test('a token that nobody was given opens nothing', async (t) => {
  const held = await run(growth);
  const wrong = [
    'x',
    '0'.repeat(64),
    held.executionToken.toUpperCase(),
    held.leaseToken,
    held.leaseToken.slice(2),
    OWNER_TOKEN,
  ];
  for (const token of wrong) {
    t.equal(refusalOf(await app.owner.as(token).get(agentPath(org, '/status'))), UNAUTHORIZED);
  }
  const none = await app.owner.get(agentPath(org, '/status'));
  t.equal(refusalOf(none), UNAUTHORIZED);
  t.match(none.headers.get('www-authenticate'), /^Bearer /);
  t.equal(refusalOf(await agentOf(held).get('/internal/agent/organizations/acme/status')), UNAUTHORIZED);
  expectSuccess(await workerOf(app, held).complete());
});

t.test('in a suspended organization agents read, and change nothing', async (t) => {
  const at = await createTestOrganization(sql, { key: 'operator', maxConcurrentRuns: 5 });
  const held = await run(at);
  const task = await makeTask(owned, at, { scheduledAt: '2099-01-01T00:00:00Z' });
  await updateOrganization(sql.api, at, { status: 'suspended' });
  for (const [who, client] of Object.entries({ service: app.service, capability: agentOf(held) })) {
    for (const [name, call] of Object.entries(agentReads(client, at, task.id))) {
      t.equal((await call()).status, 200, `${name} by ${who}`);
    }
    const before = await fingerprint(app);
    for (const [name, call] of Object.entries(agentWrites(client, at, task.id))) {
      t.equal(refusalOf(await call()), '409 state_conflict', `${name} by ${who}`);
    }
    t.equal(await fingerprint(app), before);
  }
  t.same(expectSuccess(await workerOf(app, held).complete()), { status: 'succeeded' }, 'what runs may finish');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
