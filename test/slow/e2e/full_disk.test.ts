import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { openFolder } from '../../support/folders.ts';
import { createClient } from '../../support/http.ts';
import { makeOrganization } from '../../support/owner_api.ts';
import { query } from '../../support/postgres.ts';
import { mountSmallDisk, noSmallDisks } from '../../support/small_disk.ts';
import { processOf, start } from '../../support/start.ts';
import { until } from '../../support/wait.ts';

t.setTimeout(300_000);
const skip = await noSmallDisks();

/** `npm start`, each of whose folders is a small disk of its own. */
async function startOnSmallDisks(test: Test) {
  const folder = await openFolder(test);
  const dataDir = path.join(folder, '.data');
  const disks = {
    data: mountSmallDisk(test, dataDir, 200),
    logs: mountSmallDisk(test, path.join(dataDir, 'logs'), 2, '700'),
    files: mountSmallDisk(test, path.join(dataDir, 'files'), 2, '700'),
    temporary: mountSmallDisk(test, path.join(folder, 'tmp'), 1, '1777'),
  };
  const started = start({ DATA_DIR: dataDir, PORT: '0', TMPDIR: disks.temporary.folder });
  test.teardown(async () => {
    started.child.kill('SIGTERM');
    await started.ended;
  });
  const url = await started.ready();
  const client = createClient(url);
  const isReady = () =>
    client.get('/readyz').then(
      ({ status }) => status === 200,
      () => false,
    );
  /** How often it printed a line like this. */
  const printed = (line: RegExp) =>
    started
      .stdout()
      .split('\n')
      .filter((one) => line.test(one)).length;
  const log = (name: string) => readFileSync(path.join(dataDir, 'logs', `${name}.log`), 'utf8');
  await until('readiness', isReady);
  return { started, client, disks, dataDir, isReady, printed, log };
}

type World = Awaited<ReturnType<typeof startOnSmallDisks>>;

/** What is stored of a new chat's new file. */
async function upload({ client }: World, organizationId: string) {
  const chat = await client.post<{ id: string }>(`/organizations/${organizationId}/chats`, { title: 'Files' });
  return client.put(
    `/organizations/${organizationId}/chats/${chat.data.id}/attachments/${randomUUID()}`,
    'x'.repeat(100_000),
    { query: { fileName: 'a.txt', mediaType: 'text/plain' } },
  );
}

t.test(
  'npm start lives through a full disk in each of its folders, and goes on when there is room',
  { skip },
  async (test) => {
    const world = await startOnSmallDisks(test);
    const { started, client, disks, isReady, printed, log } = world;
    const { id: organizationId } = await makeOrganization(client);
    const parts = () => Promise.all(['api/main.ts', 'jobs/main.ts'].map((part) => processOf(started, part)));
    const before = await parts();

    await test.test('logs', async (test) => {
      disks.logs.fill();
      for (let count = 0; count < 100; count += 1) {
        test.equal((await client.get(`/organizations/${organizationId}`)).status, 200);
      }
      await until('it is told', () => printed(/^api cannot write .*api\.log: ENOSPC/) > 0);
      disks.logs.empty();
      await until('it is told', () => printed(/api\.log is written again/) > 0);
      const { headers } = await client.get(`/organizations/${organizationId}`);
      await until('the log goes on', () => log('api').includes(headers.get('x-request-id') ?? 'none'));
      test.equal(printed(/^api cannot write/), 1, 'it was told once');
      for (const line of log('api').trimEnd().split('\n')) test.doesNotThrow(() => JSON.parse(line));
    });

    await test.test('temporary files', async (test) => {
      disks.temporary.fill();
      test.throws(() => writeFileSync(path.join(disks.temporary.folder, 'more'), 'more'), { code: 'ENOSPC' });
      test.equal((await makeOrganization(client)).status, 'active');
      test.match(await upload(world, organizationId), { status: 201 });
      test.match(await client.get('/readyz'), { status: 200, data: { storage: 'reachable' } });
      disks.temporary.empty();
      test.match(await upload(world, organizationId), { status: 201 });
    });

    await test.test('files', async (test) => {
      disks.files.fill();
      test.match(await upload(world, organizationId), {
        status: 503,
        code: 'service_unavailable',
        body: { message: /no room for more files/ },
      });
      test.match(await client.get('/readyz'), { status: 200, data: { storage: 'full' } });
      await makeOrganization(client);
      disks.files.empty();
      test.match(await client.get('/readyz'), { status: 200, data: { storage: 'reachable' } });
      test.match(await upload(world, organizationId), { status: 201 });
    });

    test.same(await parts(), before, 'none of it has ended');

    await test.test('the database', async (test) => {
      const { dataDir } = world;
      const passwords = JSON.parse(readFileSync(path.join(dataDir, 'database-passwords.json'), 'utf8'));
      const port = / on port (\d+),/.exec(started.stdout())?.[1];
      const superuser = `postgres://postgres:${passwords.superuser}@127.0.0.1:${port}/business_runner`;
      disks.data.fill();
      await test.rejects(
        query(
          superuser,
          'create table public.large as select repeat(md5(n::text), 99) from generate_series(1, 9999) n',
        ),
        {
          code: '53100',
        },
      );
      // It cannot do without its log: it ends, and recovers by itself or not.
      await test.rejects(query(superuser, "select pg_logical_emit_message(false, 'large', repeat('x', 40000000))"));
      await until('its start to fail, several times', async () => {
        // What its end gives back is taken again.
        disks.data.fill();
        await processOf(started, `postgres -D ${dataDir}`)
          .then((postgres) => process.kill(postgres, 'SIGKILL'))
          .catch(() => {});
        return (log('postgres').match(/Error: .*(no room|No space left|ENOSPC)/g) ?? []).length > 2;
      });
      const ends = printed(/^Postgres ended, restarting it/) - printed(/^Postgres is running again/);
      test.equal(ends, 1, 'it is told once');
      // What ends while nothing can be started comes back too.
      for (const pid of await parts()) process.kill(pid, 'SIGKILL');
      await until('it ends', () => printed(/^(api|jobs) was ended by SIGKILL, restarting/) === 2);
      disks.data.empty();
      await until('readiness', isReady);
      await until('the jobs', () => printed(/^jobs is running again/) > 0);
      await makeOrganization(client);
    });

    test.equal(started.stderr(), '');
    test.equal(started.child.exitCode, null);
  },
);

t.test('a disk that is too small for the first database ends the start with one line', { skip }, async (test) => {
  for (const [megabytes, status, message] of [
    [1, 1, /^cannot make a database in \S+: there is no room on its disk \(.*\)\n$/],
    [48, 1, /^the database in \S+ cannot be prepared: there is no room on its disk \(.*\n$/],
  ] as const) {
    const disk = mountSmallDisk(test, path.join(await openFolder(test), '.data'), megabytes);
    const started = start({ DATA_DIR: disk.folder, PORT: '0' });
    test.equal(await started.ended, status);
    test.match(started.stderr(), message);
  }
  const disk = mountSmallDisk(test, path.join(await openFolder(test), '.data'), 1);
  disk.fill();
  const started = start({ DATA_DIR: disk.folder, PORT: '0' });
  test.equal(await started.ended, 78);
  test.match(started.stderr(), /^DATA_DIR: \S+ cannot be used: ENOSPC: .*\n$/);
});
