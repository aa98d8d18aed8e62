import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { encryptionKeys } from '../../../engine/secrets/index.ts';
import { eachDue } from '../../../jobs/integrations/due.ts';
import { connectTokens, KEYS } from '../../engine/integrations/support.ts';
import { openAs } from '../../support/database.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const db = openAs(sql.url, { role: 'runner_jobs', size: 2, applicationName: 'test jobs' });
t.teardown(() => db.end());

t.test('after one that throws none begins, and the job is over once none runs any more', async (test) => {
  const keys = encryptionKeys.parse(KEYS);
  for (let number = 0; number < 10; number += 1) await connectTokens(sql, { access_token: 'access-0' }, { keys });
  await sql.owner.query("update app.integration_connections set check_due_at = now() - interval '1 minute'");
  const released = Promise.withResolvers<void>();
  const seen: string[] = [];
  let begun = 0;
  const job = eachDue({ db, signal: new AbortController().signal }, 'check', async () => {
    begun += 1;
    if (begun === 8) throw new Error('first');
    await released.promise;
    seen.push('ended');
    throw new Error('later');
  }).catch((error: Error) => seen.push(error.message));
  while (begun < 8) await turn();
  await turn();
  released.resolve();
  await job;
  test.equal(begun, 8);
  test.same(seen, [...Array.from({ length: 7 }, () => 'ended'), 'first']);
});
