import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import {
  agentPath,
  claim,
  expectSuccess,
  type Fields,
  fingerprint,
  IN_ONE_PLACE,
  makeTask,
  readTask,
  refusalOf,
  runNext,
  sqlOf,
  startOf,
  UNDER_EACH_OTHER,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createSecondProfile, createTestOrganization, lastRequest, openItems } from '../../support/fixtures.ts';
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
const patch = (ref: string, body: unknown) => service.patch<Task>(`${tasks}/${ref}`, body);
const patched = async (task: Task, fields: Fields) =>
  expectSuccess(await patch(task.id, { expectedVersion: task.version, ...fields }));

t.test('a merge patch changes what it names, and null brings defaults back', async (t) => {
  const given = { objective: 'o', acceptanceCriteria: [{ kind: 'note' }], budget: { maxAgentRuns: 3, maxReplans: 1 } };
  const task = await makeTask(app, org, { priority: 7, spec: given, dueAt: '2099-01-01T00:00:00Z' });
  const renamed = await patched(task, { title: ' New ' });
  t.match(renamed, { title: 'New', priority: 7, version: task.version + 1, dueAt: '2099-01-01T00:00:00.000Z' });
  t.same(renamed.spec, task.spec);
  const changed = await patched(renamed, {
    spec: { objective: null, budget: { maxAgentRuns: null } },
    dueAt: null,
    priority: null,
  });
  t.match(changed, { priority: 0, dueAt: null });
  t.same(changed.spec, {
    ...task.spec,
    objective: '',
    budget: { maxAgentRuns: 10, maxAttemptsPerPhase: 3, maxReplans: 1 },
  });
  const back = await patched(changed, {
    spec: { budget: null, acceptanceCriteria: null, inputs: [{ kind: 'upload', path: 'a' }] },
  });
  t.same(back.spec.budget, { maxAgentRuns: 10, maxAttemptsPerPhase: 3, maxReplans: 2 });
  t.same([back.spec.acceptanceCriteria, back.spec.inputs], [[], [{ kind: 'upload', path: 'a' }]]);
  const same = await patched(back, {});
  t.same(same, back, 'an empty patch changes nothing, the version neither');
  const merge = await service.send(
    'PATCH',
    `${tasks}/${task.id}`,
    JSON.stringify({ expectedVersion: same.version, title: 'm' }),
    {
      headers: { 'content-type': 'application/merge-patch+json' },
    },
  );
  t.equal(merge.status, 200, 'under the media type of RFC 7396 too');
  expectSuccess(await service.post(`${tasks}/${task.id}/cancel`));
});

t.test('schedules and owners may change, and the task follows', async (t) => {
  const task = await makeTask(app, org);
  const later = await patched(task, { scheduledAt: '2099-01-01T00:00:00+01:00' });
  t.match(later, { status: 'blocked', state: { blockers: [{ kind: 'schedule', until: '2098-12-31T23:00:00.000Z' }] } });
  const now = await patched(later, { scheduledAt: null, ownerProfileKey: 'growth' });
  t.match(now, { status: 'pending', scheduledAt: null, ownerAgentProfileId: growth.profileId });
  const item = await claim(app, org);
  t.match([item.task.id, item.agentProfile.key], [task.id, 'growth']);
  const back = await patched(now, { ownerAgentProfileId: org.profileId });
  t.match(back, { ownerAgentProfileId: org.profileId });
  const start = `/internal/run-requests/${item.runRequestId}/start`;
  t.equal(
    refusalOf(await service.post(start, startOf(item))),
    '409 run_lease_expired lease_lost',
    'a claim of the old owner is over',
  );
  t.equal((await claim(app, org)).agentProfile.key, 'operator');
  expectSuccess(await service.post(`${tasks}/${task.id}/cancel`));
});

t.test('a stale version, a task that runs and one that is over are 409', async (t) => {
  const task = await makeTask(app, org, { priority: 1000 });
  t.equal(
    refusalOf(await patch(task.id, { expectedVersion: task.version + 1, title: 'x' })),
    '409 state_conflict stale',
  );
  await patched(task, { title: 'y' });
  t.equal(refusalOf(await patch(task.id, { expectedVersion: task.version, title: 'x' })), '409 state_conflict stale');
  const run = await runNext(app, org);
  const running = await readTask(app, org, task.id);
  const structural: Fields[] = [
    { spec: { objective: 'x' } },
    { spec: {} },
    { ownerProfileKey: 'growth' },
    { scheduledAt: null },
  ];
  for (const fields of structural) {
    const reply = await patch(task.id, { expectedVersion: running.version, ...fields });
    t.equal(refusalOf(reply), '409 state_conflict', JSON.stringify(fields));
  }
  const light = await patched(running, { title: 'z', priority: 4, dueAt: '2099-01-01T00:00:00Z' });
  t.match(light, { status: 'running', title: 'z', priority: 4 });
  expectSuccess(await workerOf(app, run).complete());
  const done = await readTask(app, org, task.id);
  t.equal(refusalOf(await patch(task.id, { expectedVersion: done.version, title: 'x' })), '409 state_conflict');
});

t.test('a higher budget answers the question that it had caused', async (t) => {
  const task = await makeTask(app, org, { priority: 1000, spec: { budget: { maxAgentRuns: 1 } } });
  expectSuccess(await workerOf(app, await runNext(app, org)).fail({ retryable: true }));
  const blocked = await readTask(app, org, task.id);
  t.match(blocked, { status: 'blocked', state: { blockers: [{ kind: 'budget' }] } });
  t.match(await openItems(sql, org, task.id), [{ purpose: 'budget', options: ['raise', 'cancel'] }]);
  const raised = await patched(blocked, { spec: { budget: { maxAgentRuns: 2 } } });
  t.match(raised, { status: 'pending', state: { blockers: [] } });
  t.same(await openItems(sql, org, task.id), []);
  expectSuccess(await service.post(`${tasks}/${task.id}/cancel`));
});

t.test('a priority that changes also moves the request that waits', async (t) => {
  const task = await makeTask(app, org);
  await patched(task, { priority: 999 });
  t.match(await lastRequest(sql, org, task.id), { priority: 999, state: 'published' });
  t.match(await claim(app, org), { priority: 999, task: { id: task.id } });
  expectSuccess(await service.post(`${tasks}/${task.id}/cancel`));
});

const wrongPatches: Readonly<Record<string, readonly [Fields, string]>> = {
  'no version': [{ title: 'x' }, 'expectedVersion'],
  'version 0': [{ expectedVersion: 0 }, 'expectedVersion'],
  'a version beyond all': [{ expectedVersion: 2_147_483_648 }, 'expectedVersion'],
  'a version as text': [{ expectedVersion: '1' }, 'expectedVersion'],
  'a null title': [{ expectedVersion: 1, title: null }, 'title'],
  'another kind': [{ expectedVersion: 1, kind: 'initiative' }, 'kind'],
  'another parent': [{ expectedVersion: 1, parentId: nobody }, 'parentId'],
  'a status': [{ expectedVersion: 1, status: 'completed' }, 'status'],
  'a null spec': [{ expectedVersion: 1, spec: null }, 'spec'],
  'a null owner': [{ expectedVersion: 1, ownerAgentProfileId: null }, 'ownerAgentProfileId'],
  'both owners': [{ expectedVersion: 1, ownerAgentProfileId: nobody, ownerProfileKey: 'x' }, 'ownerProfileKey'],
  'a key that is none': [{ expectedVersion: 1, ownerProfileKey: 'Growth!' }, 'ownerProfileKey'],
  'a foreign budget': [{ expectedVersion: 1, spec: { budget: { money: 1 } } }, 'spec.budget.money'],
  'an input above': [{ expectedVersion: 1, spec: { inputs: [{ kind: 'upload', path: '..' }] } }, 'spec.inputs.0.path'],
  'an input below another': [{ expectedVersion: 1, spec: UNDER_EACH_OTHER }, 'spec.inputs.1.path'],
  'outputs that differ by case': [{ expectedVersion: 1, spec: IN_ONE_PLACE }, 'spec.acceptanceCriteria.1.path'],
};

t.test('a bad patch is refused by the path of what is wrong', async (t) => {
  const task = await makeTask(app, org);
  const before = await fingerprint(app);
  for (const [name, [body, path]] of Object.entries(wrongPatches)) {
    const reply = await patch(task.id, body);
    t.match([reply.status, reply.code], [400, 'validation_failed'], name);
    t.ok(
      reply.body.error.issues?.some((issue) => issue.path === path),
      `${name}: ${JSON.stringify(reply.body.error)}`,
    );
  }
  const unknown = await patch(task.id, { expectedVersion: 1, ownerProfileKey: 'nobody' });
  t.equal(refusalOf(unknown), '400 validation_failed unknown_profile');
  const foreign = await patch(task.id, { expectedVersion: 1, ownerAgentProfileId: elsewhere.profileId });
  t.equal(refusalOf(foreign), '400 validation_failed unknown_profile');
  t.match(refusalOf(await service.post(`${tasks}/${task.id}/cancel`, { why: 'x' })), /^400 validation_failed/);
  t.match(refusalOf(await service.get(tasks, { query: { limit: 0 } })), /^400 validation_failed/);
  t.match(refusalOf(await service.get(`${tasks}/x`)), /^400 validation_failed/);
  t.equal(await fingerprint(app), before);
  expectSuccess(await service.post(`${tasks}/${task.id}/cancel`));
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
