import t from 'tap';
import { z } from 'zod';
import type { AgentProfile } from '../../../api/agent_profiles/schema.ts';
import type { Task } from '../../../api/tasks/schema.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { makeOrganization, makeProfile, makeTask, pull, start, started } from '../../support/owner_api.ts';
import { wakesPulls } from '../../support/wakes.ts';

const app = await startTestApp(t);
const { owner } = app;

const pathOf = (profile: AgentProfile) => `/organizations/${profile.organizationId}/agent-profiles/${profile.id}`;
const set = (profile: AgentProfile, status: 'enabled' | 'disabled') => owner.patch(pathOf(profile), { status });
const read = async (task: Task) =>
  (await owner.get<Task>(`/organizations/${task.organizationId}/tasks/${task.id}`)).data;

const counters = z.array(z.object({ capacity: z.int(), held: z.int(), ready: z.int() }));

/** The profile's lane as a pull sees it. */
async function lane(profile: AgentProfile) {
  const { rows } = await app.database.owner.query(
    `select capacity, held, ready from app.dispatch_lanes where agent_profile_id = $1 and kind = 'task'`,
    [profile.id],
  );
  return counters.parse(rows)[0];
}

/** A profile with a task in each state that it may be working on. */
async function atWork(app: TestApp) {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  const other = await makeProfile(owner, id);
  for (let n = 0; n < 2; n += 1) await makeTask(owner, profile, { title: `${n}`, priority: 9 - n });
  const [running, claimed] = await pull(app, id, 2);
  if (!running || !claimed) throw new Error('nothing was pulled');
  const run = await started(app, running);
  const published = await makeTask(owner, profile);
  const scheduled = await makeTask(owner, profile, { scheduledAt: '2999-01-01T00:00:00Z' });
  const prerequisite = await makeTask(owner, other);
  const dependent = await makeTask(owner, profile, { dependsOn: [prerequisite.identifier] });
  return { id, profile, running, claimed, run, published, scheduled, prerequisite, dependent };
}

t.test('disabling a profile ends claims, runs and capabilities, and blocks its open tasks', async (t) => {
  const { id, profile, running, claimed, run, published, scheduled, prerequisite, dependent } = await atWork(app);
  const agent = owner.as(run.executionToken);
  t.match(await agent.get(`/internal/agent/organizations/${id}/status`), { status: 200 });
  t.match(await set(profile, 'disabled'), { status: 200, data: { status: 'disabled' } });

  for (const task of [running.task, claimed.task, published]) {
    t.match(await read(task), { status: 'blocked', state: { blockers: [{ kind: 'profile' }], activeRunIds: [] } });
  }
  t.match(await read(scheduled), {
    status: 'blocked',
    state: { blockers: [{ kind: 'schedule' }, { kind: 'profile' }] },
  });
  t.match(await read(dependent), {
    status: 'blocked',
    state: { blockers: [{ kind: 'dependency', taskId: prerequisite.id }, { kind: 'profile' }] },
  });
  t.match(await read(prerequisite), { status: 'pending' }, 'others are not touched');

  t.match(await start(app, claimed), { status: 409, code: 'run_lease_expired' });
  t.match(await owner.get(`/organizations/${id}/runs/${run.runId}`), { data: { status: 'cancelled' } });
  t.match(await agent.get(`/internal/agent/organizations/${id}/status`), { status: 401, code: 'agent_unauthorized' });
  const heartbeat = { organizationId: id, leaseToken: running.leaseToken };
  const told = await app.service.post(`/internal/runs/${run.runId}/heartbeat`, heartbeat);
  t.match(told, { status: 200, data: { status: 'cancelling' } }, 'the worker is told to stop');
  t.strictSame(
    (await pull(app, id, 10)).map((claim) => claim.task.id),
    [prerequisite.id],
  );
  t.strictSame(await lane(profile), { capacity: 5, held: 1, ready: 0 }, 'the run’s slot until it reports');
});

t.test('a late report of a cancelled run frees its slot and changes nothing else', async (t) => {
  const { id, profile, running, run } = await atWork(app);
  await set(profile, 'disabled');
  const failure = { code: 'stopped', message: 'stopped', retryable: true };
  const reply = await app.service.post(`/internal/runs/${run.runId}/fail`, {
    organizationId: id,
    leaseToken: running.leaseToken,
    error: failure,
    logState: 'not_recorded',
  });
  t.match(reply, { status: 200, data: { status: 'cancelled' } });
  t.match(await read(running.task), { status: 'blocked', state: { blockers: [{ kind: 'profile' }] } });
  t.strictSame(await lane(profile), { capacity: 5, held: 0, ready: 0 });
});

t.test('enabling lifts the block, wakes workers, and leaves other blockers alone', async (t) => {
  const { id, profile, running, claimed, published, scheduled, dependent } = await atWork(app);
  await set(profile, 'disabled');
  t.ok(await wakesPulls(app, () => set(profile, 'enabled')));
  for (const task of [running.task, claimed.task, published]) {
    t.match(await read(task), { status: 'pending', state: { blockers: [] } });
  }
  t.strictSame((await read(scheduled)).state.blockers, [{ kind: 'schedule', until: '2999-01-01T00:00:00.000Z' }]);
  t.match((await read(dependent)).state.blockers, [{ kind: 'dependency' }]);
  const again = (await pull(app, id, 10)).map((claim) => claim.task.id);
  for (const task of [running.task, claimed.task, published]) t.ok(again.includes(task.id));
});

t.test('disabling twice is harmless', async (t) => {
  const { profile, running } = await atWork(app);
  const first = await set(profile, 'disabled');
  t.strictSame((await set(profile, 'disabled')).data, first.data);
  t.match(await read(running.task), { status: 'blocked' });
});

t.test('a task given to a disabled profile is blocked from the start', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id, { status: 'disabled' });
  const task = await makeTask(owner, profile);
  t.match(task, { status: 'blocked', state: { blockers: [{ kind: 'profile' }] } });
  await set(profile, 'enabled');
  t.match(await read(task), { status: 'pending' });
});

t.test('deleting a profile does what disabling does, and history goes on naming it', async (t) => {
  const { id, profile, running, claimed, run, published } = await atWork(app);
  t.ok(await wakesPulls(app, () => owner.delete(pathOf(profile))));
  for (const task of [running.task, claimed.task, published]) {
    t.match(await read(task), {
      status: 'blocked',
      ownerAgentProfileId: profile.id,
      state: { blockers: [{ kind: 'profile' }] },
    });
  }
  t.match(await start(app, claimed), { status: 409, code: 'run_lease_expired' });
  t.match(await owner.get(`/organizations/${id}/runs/${run.runId}`), {
    data: { status: 'cancelled', agentProfile: { id: profile.id, key: profile.key, status: 'disabled' } },
  });
});

t.test('finished work of a disabled profile stays finished', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  const task = await makeTask(owner, profile);
  await owner.post(`/organizations/${id}/tasks/${task.id}/cancel`);
  await set(profile, 'disabled');
  await set(profile, 'enabled');
  t.match(await read(task), { status: 'cancelled' });
});

t.test('a limit of the profile counts at once, lower and higher', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id, { config: { maxConcurrentRuns: 2 } });
  for (let n = 0; n < 4; n += 1) await makeTask(owner, profile);
  const limit = (maxConcurrentRuns: number) => owner.patch(pathOf(profile), { config: { maxConcurrentRuns } });
  t.equal((await pull(app, id, 10)).length, 2);
  await limit(1);
  t.strictSame(await pull(app, id, 10), []);
  t.strictSame(await lane(profile), { capacity: 1, held: 2, ready: 2 });
  t.ok(await wakesPulls(app, () => limit(3)));
  t.equal((await pull(app, id, 10)).length, 1);
  await limit(4);
  t.equal((await pull(app, id, 10)).length, 1);
});

t.test('disabling while workers start its claims leaves no run and no slot behind', async (t) => {
  const { id } = await makeOrganization(owner, { config: { limits: { maxConcurrentRuns: 20 } } });
  const profile = await makeProfile(owner, id, { config: { maxConcurrentRuns: 20 } });
  for (let n = 0; n < 8; n += 1) await makeTask(owner, profile);
  const claims = await pull(app, id, 8);
  const [, ...starts] = await Promise.all([set(profile, 'disabled'), ...claims.map((claim) => start(app, claim))]);
  for (const reply of starts) t.ok(reply.status === 200 || reply.code === 'run_lease_expired', `${reply.status}`);
  const { rows } = await app.database.owner.query(
    `select (select count(*)::int from app.runs where organization_id = $1 and status in ('starting', 'running')) as active,
       (select count(*)::int from app.run_requests where organization_id = $1 and state = 'started') as started,
       (select count(*)::int from app.run_requests where organization_id = $1 and state in ('queued', 'published', 'leased')) as open,
       (select held from app.dispatch where organization_id = $1 and kind = 'task') as held`,
    [id],
  );
  const wonBefore = starts.filter((reply) => reply.status === 200).length;
  t.strictSame(rows, [{ active: 0, started: wonBefore, open: 0, held: wonBefore }]);
  const { data } = await owner.get<Task[]>(`/organizations/${id}/tasks`);
  for (const task of data) t.match(task, { status: 'blocked', state: { blockers: [{ kind: 'profile' }] } });
});
