// Job processes that are killed while they merge files: each month is merged once, and says what it said.
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { openStorage } from '../../../../engine/storage/index.ts';
import { addJob, queued, spawnJobs } from '../../../jobs/support.ts';
import type { Month } from '../../../support/compaction_fixtures.ts';
import { createTestOrganization } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { rounds } from '../../../support/full.ts';
import { createCollected } from '../../../support/insight_fixtures.ts';
import { publishAll, seenOf, tellings } from '../../../support/stored_facts.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);
const TASK = 'insights__compact';
const MONTHS = 6;

t.test('whenever job processes die, each month is merged once and says what it said', async (test) => {
  const STORAGE_URL = pathToFileURL(await openFolder(test)).href;
  const storage = openStorage(STORAGE_URL);
  const worlds: { month: Month; sha256: string }[] = [];
  for (let made = 0; made < MONTHS; made += 1) {
    const org = await createTestOrganization(sql);
    const place = await createCollected(sql, org);
    const month = await publishAll(sql, storage, place, tellings(16));
    worlds.push({ month, sha256: (await seenOf(sql, storage, month)).sha256 });
  }
  const files = () =>
    Promise.all(
      worlds.map(async ({ month, sha256 }) => {
        const now = await seenOf(sql, storage, month);
        test.equal(now.sha256, sha256);
        test.ok(now.files === 1 ? now.revision === 17 : now.files === 16 && now.revision === 16, `${now.files} files`);
        return now.files;
      }),
    );
  const settings = { STORAGE_URL, INSIGHT_UNITS: '0', CURRENCY_RATES: 'off' };
  // What a dead process left is due now, and not in minutes; nor does a month that is killed often take half of its files.
  const passTime = () =>
    sql.owner.query(`update app.insight_compactions
      set lease_expires_at = case when lease_expires_at is not null then now() - interval '1 second' end, due_at = now(),
        failure_count = 0`);
  for (let round = 0; round < rounds({ short: 3, full: 6 }); round += 1) {
    const jobs = await spawnJobs(test, sql.url, settings);
    await addJob(sql.owner, TASK, {}, TASK);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 400));
    await jobs.kill('SIGKILL');
    await files();
    await passTime();
  }
  const jobs = await spawnJobs(test, sql.url, settings);
  await until(
    'all are merged',
    async () => {
      // A lease that ended without a word counts as a failure, after which a month waits.
      await sql.owner.query(
        'update app.insight_compactions set due_at = now() where due_at > now() and lease_expires_at is null',
      );
      if ((await queued(sql.owner, TASK)).length === 0) await addJob(sql.owner, TASK, {}, TASK);
      return (await files()).every((count) => count === 1);
    },
    120_000,
  );
  await jobs.kill('SIGTERM');
  const { rows } = await sql.owner.query(
    'select count(*)::int as merges from app.insight_publications where unit_id is null group by organization_id',
  );
  test.same(rows, Array(MONTHS).fill({ merges: 1 }));
});
