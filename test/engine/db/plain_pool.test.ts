import t from 'tap';
import { isUnavailable } from '../../../engine/db/errors.ts';
import { openPlainPool } from '../../../engine/db/plain_pool.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startProxy } from '../../support/proxy.ts';

const database = await createTestDatabase(t);
const PID = 'select pg_backend_pid() as pid';

t.test('a connection that falls silent is given up, and the next statement has another', async (t) => {
  const proxy = await startProxy(t, database.url);
  const pool = openPlainPool({ url: proxy.url, size: 1, responseTimeoutMs: 2_000, lost: () => {} });
  t.teardown(() => pool.end());
  const first = (await pool.query(PID)).rows[0].pid;

  const held = await pool.connect();
  t.equal((await held.query(PID)).rows[0].pid, first);
  proxy.freezeExisting();
  await t.rejects(held.query(PID), { message: 'Query read timeout' });
  // As the queue does, which does not say why.
  held.release();
  const second = (await pool.query(PID)).rows[0].pid;
  t.not(second, first);

  proxy.freezeExisting();
  t.ok(isUnavailable(await pool.query(PID).catch((error: unknown) => error)));
  t.not((await pool.query(PID)).rows[0].pid, second);
});
