import t from 'tap';
import { createTestOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { changeSchedule, createSchedule, fire } from '../../support/schedule_fixtures.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const missing = { status: 404, code: 'not_found' };

scenario('a pause ends the waiting for a fire, a resume starts it anew; repeats change nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, key } = await createSchedule(sql, org);
  const paused = await changeSchedule(sql.api, org, 'pause', key);
  test.match(paused, { status: 'paused', next_run_at: null });
  test.same(await changeSchedule(sql.api, org, 'pause', id), paused);
  const resumed = await changeSchedule(sql.api, org, 'resume', id, { nextRunAt: '2099-01-01T09:00:00Z' });
  test.match(resumed, { status: 'active', next_run_at: /^2099-01-01T09/ });
  test.same(await changeSchedule(sql.api, org, 'resume', key, { nextRunAt: '2098-01-01T09:00:00Z' }), resumed);
  test.match(await changeSchedule(sql.api, org, 'delete', key), { id, status: 'active' });
  for (const verb of ['pause', 'resume', 'delete'] as const) {
    test.match(await refusal(changeSchedule(sql.api, org, verb, id)), missing, verb);
  }
  await createSchedule(sql, org, { key });
});

scenario('a pause and a fire at once: either the fire was first, or there is none', async (test) => {
  const org = await createTestOrganization(sql);
  const [first, second] = [await createSchedule(sql, org), await createSchedule(sql, org)];
  const [person, job] = [await openSession(test, sql), await openSession(test, sql, 'runner_jobs')];
  await person.begin();
  await changeSchedule(person, org, 'pause', first.id);
  const firing = fire(sql, org, first.id, { connection: job });
  await job.waits();
  await person.commit();
  test.match(await firing, { outcome: 'unchanged' });
  await job.begin();
  await fire(sql, org, second.id, { connection: job });
  const pausing = changeSchedule(person, org, 'pause', second.id);
  await person.waits();
  await job.commit();
  test.match(await pausing, { status: 'paused', last_task_id: String });
});
