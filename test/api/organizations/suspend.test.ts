import t from 'tap';
import { startTestApp } from '../../support/app.ts';
import { makeOrganization, makeProfile, makeTask, pull, start, started } from '../../support/owner_api.ts';

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
