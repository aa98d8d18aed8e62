import { mkdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { openSql } from '../../support/transitions.ts';
import { openJobs, runJob } from '../support.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);

t.test('uploads that nobody will finish go after a day', async (t) => {
  await jobs.storage.put('a/b', (async function* () {})());
  const incoming = path.join(fileURLToPath(jobs.storageUrl), '.incoming');
  await mkdir(incoming, { recursive: true });
  const yesterday = new Date(Date.now() - 25 * 3_600_000);
  for (const name of ['old', 'new']) await writeFile(path.join(incoming, name), 'half');
  await utimes(path.join(incoming, 'old'), yesterday, yesterday);
  await runJob(sql.owner, 'storage__clean');
  t.ok(jobs.logged.some(({ msg, removed }) => msg === 'abandoned uploads are removed' && removed === 1));
  t.same(await jobs.storage.stat('a/b'), { size: 0 });
});
