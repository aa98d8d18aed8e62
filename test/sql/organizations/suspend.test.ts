import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  heartbeat,
  insertOrganization,
  pull,
  runNew,
  startRun,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };
scenario('only the platform suspends, and lifts it', async (test) => {
  const org = await createTestOrganization(sql);
  const forbidden = { status: 403, code: 'forbidden' };
  test.match(await refusal(updateOrganization(sql.api, org, { status: 'suspended' }, false)), forbidden);
  const subject = randomUUID();
  test.match(
    await refusal(insertOrganization(sql.api, randomUUID(), { slug: `s-${subject}`, status: 'suspended' }, subject)),
    forbidden,
  );
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await refusal(updateOrganization(sql.api, org, { status: 'active' }, false)), forbidden);
  test.match(await refusal(updateOrganization(sql.api, org, { status: 'onboarding' })), {
    ...conflict,
    reason: 'no_onboarding',
  });
  await updateOrganization(sql.api, org, { status: 'active' });
  const made = randomUUID();
  await insertOrganization(sql.api, made, { slug: `s-${made}`, status: 'onboarding' });
  test.match(await updateOrganization(sql.api, { organizationId: made }, { status: 'active' }, false), {
    organization: { status: 'active' },
  });
});

scenario('a suspended organization hands out nothing, its claims end, and its runs may finish', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await createTask(sql, org);
  const claim = await claimNext(sql, org);
  await createTask(sql, org);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.same(await pull(sql.api, { organizationIds: [org.organizationId], limit: 9 }), []);
  test.match(await refusal(startRun(sql.api, claim)), { status: 409, code: 'run_lease_expired' });
  test.same(await heartbeat(sql.api, run), { status: 'starting' });
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
  await updateOrganization(sql.api, org, { status: 'active' });
  test.equal((await pull(sql.api, { organizationIds: [org.organizationId], limit: 9 })).length, 2);
});
