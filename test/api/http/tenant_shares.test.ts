import t from 'tap';
import { expectSuccess, makeTask, ownerPath, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { until } from '../../support/wait.ts';

const CONNECTIONS = 8;
const SHARE = 6;
const CALLS = 200;

const app = await startTestApp(t, { config: { databasePoolSize: CONNECTIONS } });
const sql = sqlOf(app);

t.test('calls of one organization that wait for a lock leave connections to others', async (t) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const task = await makeTask(app, org);
  await makeTask(app, other);
  const holder = await app.database.owner.connect();
  t.teardown(async () => holder.release());
  await holder.query('begin');
  await holder.query('select from app.tasks where organization_id = $1 and id = $2 for update', [
    org.organizationId,
    task.id,
  ]);
  let over = 0;
  const calls = Array.from({ length: CALLS }, async (_, index) => {
    // Keyed ones hold a transaction, the others a statement.
    const headers = index % 2 === 0 ? { 'idempotency-key': `k${index}` } : undefined;
    const reply = await app.owner.post(ownerPath(org, `/tasks/${task.id}/cancel`), {}, headers && { headers });
    over += 1;
    return reply.status;
  });
  const { db } = app.services;
  await until('as many wait for the lock as may', async () => {
    const { running, waiting } = db.load();
    return running >= SHARE && waiting === CALLS - running && running;
  });
  t.equal(db.load().running, SHARE, 'and the rest of the connections is free');
  expectSuccess(await app.owner.get(ownerPath(other, '/tasks')));
  expectSuccess(await app.owner.get(ownerPath(other)));
  expectSuccess(
    await app.owner.post(ownerPath(other, '/tasks'), { title: 'x', ownerProfileKey: other.profileKey }),
    201,
  );
  t.equal(over, 0, 'while none of the calls that wait is over');
  await holder.query('commit');
  const statuses = new Set(await Promise.all(calls));
  // On a machine that is busy some of them wait for longer than a call may.
  t.ok(statuses.delete(200), 'which are served in turn');
  t.ok([...statuses].every((status) => status === 503));
  await until('nothing is left', () => db.load().running + db.load().waiting === 0);
});
