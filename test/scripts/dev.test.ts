import { appendFile, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import t from 'tap';
import { workOf } from '../../scripts/dev/changes.ts';
import { followLog } from '../../scripts/dev/follow_log.ts';
import { openFolder } from '../support/folders.ts';
import { until } from '../support/wait.ts';

t.test('a changed file restarts what loads it, and SQL migrates first', async (test) => {
  const both = { api: true, jobs: true };
  test.same(workOf('sql/functions/tasks/task_retry.sql'), { migrate: true, ...both });
  test.same(workOf('sql/functions/access.json'), { migrate: true, ...both });
  test.same(workOf('engine/db/schema/functions.ts'), { migrate: true, ...both });
  test.same(workOf('engine/config.ts'), { migrate: false, ...both });
  test.same(workOf('api/app.ts'), { migrate: false, api: true, jobs: false });
  test.same(workOf('jobs/main.ts'), { migrate: false, api: false, jobs: true });
  for (const file of ['sql/README.md', 'api/tasks/.swp', 'jobs/README.md']) test.equal(workOf(file), undefined, file);
});

t.test('a log is followed from its end, also after it was emptied', async (test) => {
  const file = path.join(await openFolder(test), 'api.log');
  await writeFile(file, 'before\n');
  const output = new PassThrough({ encoding: 'utf8' });
  let seen = '';
  output.on('data', (chunk) => {
    seen += chunk;
  });
  const stop = followLog(file, output);
  await appendFile(file, 'first\n');
  await until('the first line', () => seen === 'first\n');
  await truncate(file);
  await appendFile(file, '2\n');
  await until('the second line', () => seen === 'first\n2\n');
  await appendFile(file, 'last\n');
  stop();
  await until('the last line', () => seen === 'first\n2\nlast\n');
});
