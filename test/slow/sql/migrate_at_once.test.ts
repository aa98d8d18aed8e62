import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import t from 'tap';
import { migrate } from '../../../engine/db/migrate.ts';
import { createEmptyDatabase } from '../../support/database.ts';

t.test('ten processes at once migrate once', async (test) => {
  const database = await createEmptyDatabase(test);
  const script = path.resolve(import.meta.dirname, '../../../scripts/migrate.ts');
  const starts = Array.from({ length: 10 }, async () => {
    const child = fork(script, [], { env: { ...process.env, DATABASE_URL: database.url }, stdio: 'pipe' });
    let output = '';
    child.stdout?.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      output += chunk;
    });
    const [code] = await once(child, 'close');
    return { code, output };
  });
  const ends = await Promise.all(starts);
  test.same(
    ends.filter((end) => end.code !== 0),
    [],
    'all succeed',
  );
  test.equal(ends.filter((end) => end.output.includes('migrated 000201_schemas')).length, 1, 'one did the work');
  test.equal(ends.filter((end) => end.output.trim() === 'nothing to migrate').length, 9);
});

t.test('databases of one cluster migrate at the same time, though roles are shared', async (test) => {
  const databases = await Promise.all(Array.from({ length: 4 }, () => createEmptyDatabase(test)));
  const done = await Promise.all(databases.map((database) => migrate(database.url)));
  for (const { migrations } of done) test.equal(migrations[0], '000201_schemas');
});
