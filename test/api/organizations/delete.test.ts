import t from 'tap';
import type { Organization } from '../../../api/organizations/schema.ts';
import { startTestApp } from '../../support/app.ts';
import { makeOrganization, makeProfile, makeTask, pull, start, started } from '../../support/owner_api.ts';

const app = await startTestApp(t);
const { owner } = app;

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
