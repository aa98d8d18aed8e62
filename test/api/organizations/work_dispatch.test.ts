import t from 'tap';
import type { Organization } from '../../../api/organizations/schema.ts';
import { startTestApp } from '../../support/app.ts';
import { makeOrganization, makeProfile, makeTask, pull, start } from '../../support/owner_api.ts';
import { wakesPulls } from '../../support/wakes.ts';

const app = await startTestApp(t);
const { owner } = app;

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
