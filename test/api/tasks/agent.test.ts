import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import {
  agentPath,
  expectSuccess,
  fingerprint,
  makeTask,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createSecondProfile, createTestOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'operator',
  maxConcurrentRuns: 50,
  limits: { maxConcurrentRuns: 50 },
});
const growth = await createSecondProfile(sql, org, { key: 'growth', kind: 'department', maxConcurrentRuns: 50 });
const elsewhere = await createTestOrganization(sql, { key: 'operator' });
const tasks = agentPath(org, '/tasks');
const nobody = randomUUID();

const { service } = app;
const post = (body: unknown, headers: Record<string, string> = {}) => service.post<Task>(tasks, body, { headers });
const patch = (ref: string, body: unknown) => service.patch<Task>(`${tasks}/${ref}`, body);

t.test('an agent creates, reads and lists tasks as an owner does', async (t) => {
  const { data: root } = await post({ title: 'Plan', kind: 'initiative', ownerProfileKey: 'operator' });
  const { data: first } = await post({ title: 'First', parentId: root.id, ownerProfileKey: 'growth' });
  const reply = await post({
    title: 'Second',
    parentId: root.id,
    ownerAgentProfileId: growth.profileId,
    dependsOn: [first.identifier],
  });
  t.equal(reply.status, 201);
  t.match(reply.data, {
    parentId: root.id,
    depth: 1,
    ownerAgentProfileId: growth.profileId,
    createdByRunId: null,
    status: 'blocked',
    state: { blockers: [{ kind: 'dependency', taskId: first.id }] },
  });
  for (const ref of [reply.data.id, reply.data.identifier]) {
    t.same((await service.get(`${tasks}/${ref}`)).data, reply.data);
  }
  t.same(
    (await service.get<Task[]>(tasks, { query: { parentId: root.id } })).data.map((task) => task.id),
    [reply.data.id, first.id],
  );
  const again = await post({ title: 'Other', ownerProfileKey: 'growth', dedupeKey: first.dedupeKey });
  t.match([again.status, again.data.id], [201, first.id], 'an open task with the same dedupeKey is returned');
  expectSuccess(await service.post(`${tasks}/${root.id}/cancel`));
});

t.test('a run that creates a task is remembered, and stands for its own profile', async (t) => {
  const run = await runTask(app, org);
  const agent = app.owner.as(run.executionToken);
  const { data } = await agent.post<Task>(tasks, { title: 'From a run' });
  t.match(data, { createdByRunId: run.runId, ownerAgentProfileId: org.profileId });
  expectSuccess(await agent.post(`${tasks}/${data.id}/cancel`));
  expectSuccess(await workerOf(app, run).complete());
});

t.test('agents see not_found and state_conflict, whatever is missing or wrong', async (t) => {
  const foreign = await makeTask(app, elsewhere);
  const leaf = await makeTask(app, org);
  const before = await fingerprint(app);
  const body = { title: 'x', ownerProfileKey: 'operator' };
  t.equal(refusalOf(await post({ ...body, parentId: nobody })), '404 not_found not_found');
  t.equal(refusalOf(await post({ ...body, dependsOn: [foreign.id] })), '404 not_found not_found');
  t.equal(refusalOf(await post({ ...body, parentId: leaf.id })), '409 state_conflict not_an_open_initiative');
  t.equal(refusalOf(await post({ ...body, ownerProfileKey: 'x' })), '400 validation_failed unknown_profile');
  t.equal(refusalOf(await service.get(agentPath({ organizationId: nobody }, '/tasks'))), '404 not_found');
  t.equal(refusalOf(await service.post(agentPath({ organizationId: nobody }, '/tasks'), body)), '404 not_found');
  for (const ref of [foreign.id, nobody, 'T-99999']) {
    t.equal(refusalOf(await service.get(`${tasks}/${ref}`)), '404 not_found', `get ${ref}`);
    t.equal(refusalOf(await patch(ref, { expectedVersion: 1, title: 'x' })), '404 not_found', `patch ${ref}`);
    for (const verb of ['cancel', 'retry']) {
      t.equal(refusalOf(await service.post(`${tasks}/${ref}/${verb}`)), '404 not_found', `${verb} ${ref}`);
    }
  }
  t.equal(refusalOf(await service.post(`${tasks}/${leaf.id}/retry`)), '409 state_conflict');
  t.equal(await fingerprint(app), before);
  expectSuccess(await service.post(`${tasks}/${leaf.id}/cancel`));
});

t.test('cancel and retry do for agents what they do for owners', async (t) => {
  const run = await runTask(app, org);
  expectSuccess(await workerOf(app, run).fail());
  t.match((await service.post(`${tasks}/${run.taskId}/retry`)).data, { status: 'pending' });
  t.equal(refusalOf(await service.post(`${tasks}/${run.taskId}/retry`)), '409 state_conflict');
  for (const _ of [1, 2])
    t.match((await service.post(`${tasks}/${run.taskId}/cancel`, {})).data, { status: 'cancelled' });
});

t.test('Idempotency-Key works for agents, each with keys of its own', async (t) => {
  const body = { title: 'Once', ownerProfileKey: 'operator' };
  const key = { 'idempotency-key': 'k1' };
  const first = await post(body, key);
  const again = await post(body, key);
  t.same(again.data, first.data);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.equal(refusalOf(await post({ ...body, title: 'Other' }, key)), '409 idempotency_key_reused idempotency_key_reused');
  const run = await runTask(app, org);
  const agent = app.owner.as(run.executionToken);
  const own = await agent.post<Task>(tasks, body, { headers: key });
  t.not(own.data.id, first.data.id, 'a capability has keys of its own');
  t.same((await agent.post<Task>(tasks, body, { headers: key })).data, own.data);
  expectSuccess(await workerOf(app, run).complete());
  const late = await agent.post<Task>(tasks, body, { headers: key });
  t.equal(refusalOf(late), '401 agent_unauthorized', 'and they end with it');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
