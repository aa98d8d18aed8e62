import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { z } from 'zod';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import { openJobs } from '../../jobs/support.ts';
import { SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { bareEnvironment } from '../../support/environment.ts';
import { openFolder } from '../../support/folders.ts';

t.setTimeout(240_000);
const root = path.resolve(import.meta.dirname, '../../..');

async function seed(...argv: string[]) {
  const child = spawn(process.execPath, ['scripts/seed/main.ts', '--no-env-file', ...argv], {
    cwd: root,
    env: bareEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status, out, err };
}

/** An app with the catalog that the seed provisions from, and a file for the service token. */
async function setUp(test: Test) {
  const app = await startTestApp(test);
  const catalog = builtinCatalog();
  await app.database.owner.query('select app.agent_catalog_publish($1, $2)', [catalogRevision(catalog), catalog]);
  const tokenFile = path.join(await openFolder(test), 'token');
  return { app, tokenFile };
}

t.test('the seed leaves tasks in every state, chats with replies and a schedule', async (test) => {
  const { app, tokenFile } = await setUp(test);
  await openJobs(test, app.database.url, { STORAGE_URL: app.config.storageUrl });
  await writeFile(tokenFile, SERVICE_TOKEN);
  const { status, out, err } = await seed('--url', app.url, '--token-file', tokenFile);
  test.equal(status, 0, err);
  const { rows } = await app.database.owner.query(
    'select status::text, count(*)::integer as count from app.tasks group by 1 order by 1',
  );
  test.same(rows, [
    { status: 'blocked', count: 2 },
    { status: 'completed', count: 4 },
    { status: 'failed', count: 1 },
    { status: 'pending', count: 1 },
  ]);
  const links = [...out.matchAll(/http:\/\/\S+/g)].map(([link]) => link);
  test.equal(links.length, 3);
  const list = z.object({ data: z.array(z.unknown()) });
  const lists = await Promise.all(links.map(async (link) => list.parse(await (await fetch(link)).json()).data));
  test.same(
    lists.map(({ length }) => length),
    [8, 2, 2],
    'tasks, chats, what waits for people: a question, and word of a failure',
  );
  const { rows: schedules } = await app.database.owner.query('select key from app.schedules');
  test.same(schedules, [{ key: 'weekly-numbers' }]);
});

t.test('when one thing fails, the seed ends at once', async (test) => {
  const { app, tokenFile } = await setUp(test);
  await writeFile(tokenFile, 'a-token-of-somebody-else-0123456789');
  const begun = performance.now();
  const { status, err } = await seed('--url', app.url, '--token-file', tokenFile);
  test.equal(status, 1);
  test.match(err, /^seed: .*\(give --token-file\)\n$/);
  test.ok(performance.now() - begun < 60_000, 'half of the time that it waits for a task');
});
