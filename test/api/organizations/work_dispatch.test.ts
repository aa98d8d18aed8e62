import t from 'tap';
import type { Organization } from '../../../api/organizations/schema.ts';
import { startTestApp } from '../../support/app.ts';
import { makeOrganization, makeProfile, makeTask, pull, start, started } from '../../support/owner_api.ts';
import { wakesPulls } from '../../support/wakes.ts';

const app = await startTestApp(t);
const { owner } = app;

t.test('a suspended organization hands nothing out, takes its claims back, and lets started runs finish', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  for (let n = 0; n < 3; n += 1) await makeTask(owner, profile);
  const [running, claimed] = await pull(app, id, 2);
  if (!running || !claimed) return t.fail('nothing was pulled');
  const run = await started(app, running);

  t.match(await owner.patch(`/organizations/${id}`, { status: 'suspended' }), { data: { status: 'suspended' } });
  t.match(await start(app, claimed), { status: 409, code: 'run_lease_expired' });
  t.strictSame(await pull(app, id, 10), []);
  const heartbeat = { organizationId: id, leaseToken: running.leaseToken };
  t.match(await app.service.post(`/internal/runs/${run.runId}/heartbeat`, heartbeat), { data: { status: 'starting' } });
  t.match(await owner.get(`/organizations/${id}/tasks`), { status: 200 });

  t.match(await owner.patch(`/organizations/${id}`, { status: 'active' }), { data: { status: 'active' } });
  t.equal((await pull(app, id, 10)).length, 2);
});

t.test('a raised limit opens the organization, and wakes workers that wait', async (t) => {
  const { id } = await makeOrganization(owner, { config: { limits: { maxConcurrentRuns: 1 } } });
  const profile = await makeProfile(owner, id);
  for (let n = 0; n < 4; n += 1) await makeTask(owner, profile);
  t.equal((await pull(app, id, 4)).length, 1);
  t.ok(
    await wakesPulls(app, () => owner.patch(`/organizations/${id}`, { config: { limits: { maxConcurrentRuns: 3 } } })),
  );
  t.equal((await pull(app, id, 4)).length, 2);
});

t.test('stopped dispatch publishes nothing new; resuming publishes what is due and says how much', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  const before = await makeTask(owner, profile);
  const set = (stopped: unknown) =>
    owner.patch<{ organization: Organization; publishedRunRequests: number }>(`/organizations/${id}/work-dispatch`, {
      stopped,
    });

  const stopped = await set(true);
  t.match(stopped, {
    status: 200,
    data: { organization: { id, workDispatchStoppedAt: String }, publishedRunRequests: 0 },
  });
  const repeated = await set(true);
  t.strictSame(repeated.data, stopped.data, 'a repeat changes nothing');
  t.match(await owner.get(`/organizations/${id}`), { data: stopped.data.organization });

  for (let n = 0; n < 2; n += 1) await makeTask(owner, profile);
  await makeTask(owner, profile, { scheduledAt: '2999-01-01T00:00:00Z' });
  const [claim, ...others] = await pull(app, id, 10);
  t.strictSame(others, [], 'what was published before the stop is still handed out');
  t.equal(claim?.task.id, before.id);
  if (claim) t.match(await start(app, claim), { status: 200 });

  t.match(await set(false), { data: { organization: { workDispatchStoppedAt: null }, publishedRunRequests: 2 } });
  t.match(await set(false), { data: { organization: { workDispatchStoppedAt: null }, publishedRunRequests: 0 } });
  t.equal((await pull(app, id, 10)).length, 2);
  t.match(await set('yes'), { status: 400 });
  t.match(await owner.patch(`/organizations/${id}/work-dispatch`), { status: 400 });
  t.match(await owner.patch(`/organizations/${id}/work-dispatch`, { stopped: true, reason: 'x' }), { status: 400 });
});

t.test('resuming wakes workers that wait, where there is something for them', async (t) => {
  const { id } = await makeOrganization(owner);
  const path = `/organizations/${id}/work-dispatch`;
  t.notOk(await wakesPulls(app, () => owner.patch(path, { stopped: true })));
  await makeTask(owner, await makeProfile(owner, id));
  t.ok(await wakesPulls(app, () => owner.patch(path, { stopped: false })));
  t.notOk(await wakesPulls(app, () => owner.patch(path, { stopped: false })));
});

t.test('a deleted organization is gone at once: reads, writes, leases, capabilities, lists', async (t) => {
  const made = await makeOrganization(owner, { slug: 'short-lived' });
  const { id } = made;
  const profile = await makeProfile(owner, id);
  const tasks = await Promise.all([makeTask(owner, profile), makeTask(owner, profile), makeTask(owner, profile)]);
  const [running, claimed] = await pull(app, id, 2);
  if (!running || !claimed) return t.fail('nothing was pulled');
  const { runId, executionToken } = await started(app, running);
  const agent = owner.as(executionToken);
  t.match(await agent.get(`/internal/agent/organizations/${id}/status`), { status: 200 });

  const deleted = await owner.delete<Organization>(`/organizations/${id}`);
  t.match(deleted, { status: 200, data: { id, slug: 'short-lived' } });

  const missing = { status: 404, code: 'organization_not_found' };
  t.match(await owner.delete(`/organizations/${id}`), missing, 'a repeat');
  t.match(await owner.get(`/organizations/${id}`), missing);
  t.match(await owner.patch(`/organizations/${id}`, { name: 'x' }), missing);
  t.match(await owner.patch(`/organizations/${id}/work-dispatch`, { stopped: true }), missing);
  t.match(await owner.get(`/organizations/${id}/agent-profiles`), missing);
  t.match(await owner.get(`/organizations/${id}/agent-profiles/${profile.id}`), missing);
  t.match(await owner.get(`/organizations/${id}/members`), missing);
  t.match(await owner.get(`/organizations/${id}/tasks`), missing);
  t.match(await owner.get(`/organizations/${id}/tasks/${tasks[0]?.id}`), { status: 404 });
  t.match(await owner.get(`/organizations/${id}/runs`), missing);
  t.match(await owner.get(`/organizations/${id}/runs/${runId}`), { status: 404 });
  const { data } = await owner.get<Organization[]>('/organizations', { query: { limit: 200 } });
  t.notOk(data.some((one) => one.id === id));

  t.match(await agent.get(`/internal/agent/organizations/${id}/status`), { status: 401, code: 'agent_unauthorized' });
  const lease = { organizationId: id, leaseToken: running.leaseToken };
  const lost = { status: 409, code: 'run_lease_expired' };
  t.match(await app.service.post(`/internal/runs/${runId}/heartbeat`, lease), lost);
  t.match(await start(app, claimed), lost);
  t.strictSame(await pull(app, id, 10), []);

  // The slug is free while the rows are still being removed; the id is not.
  t.equal((await makeOrganization(owner, { slug: 'short-lived' })).slug, 'short-lived');
  t.match(await owner.post(`/organizations/${id}`, { slug: 'again', name: 'Again' }), {
    status: 409,
    code: 'state_conflict',
  });
});

t.test('a deletion leaves a job that removes the rest', async (t) => {
  const { id } = await makeOrganization(owner);
  await owner.delete(`/organizations/${id}`);
  const { rows } = await app.database.owner.query('select task_identifier from graphile_worker.jobs where key = $1', [
    `organizations__delete:${id}`,
  ]);
  t.strictSame(rows, [{ task_identifier: 'organizations__delete' }]);
});
