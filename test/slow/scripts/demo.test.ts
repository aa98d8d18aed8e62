import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import { demoChat } from '../../../scripts/demo/chat.ts';
import { demoOrganization } from '../../../scripts/demo/organization.ts';
import { ownerApi } from '../../../scripts/demo/owner_api.ts';
import { GROSS_TOTAL, NET_TOTAL } from '../../../scripts/demo/tasks.ts';
import { PRIVATE } from '../../jobs/onboardings/support.ts';
import { openJobs } from '../../jobs/support.ts';
import { SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { bareEnvironment } from '../../support/environment.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

const root = path.resolve(import.meta.dirname, '../../..');

async function demo(...argv: string[]): Promise<{ status: number; out: string; err: string }> {
  const child = spawn(process.execPath, ['scripts/demo/main.ts', '--no-env-file', ...argv], {
    cwd: root,
    env: bareEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status, out, err };
}

async function setUp(t: Test) {
  const app = await startTestApp(t);
  const catalog = builtinCatalog();
  await app.database.owner.query('select app.agent_catalog_publish($1, $2)', [catalogRevision(catalog), catalog]);
  const folder = await mkdtemp(path.join(tmpdir(), 'demo-test-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const tokenFile = path.join(folder, 'token');
  await writeFile(tokenFile, SERVICE_TOKEN);
  return { app, argv: ['--url', app.url, '--token-file', tokenFile] };
}

t.test('the totals that the demo asks for are those of the shipped sales', async (t) => {
  const lines = (await readFile(path.join(root, 'examples/sales.csv'), 'utf8')).trim().split('\n').slice(1);
  const rows = lines.map((line) => line.split(','));
  const cents = (kind: string) =>
    rows
      .filter((row) => row[6] === kind)
      .reduce((sum, row) => sum + Number(row[4]) * Number((row[5] ?? '').replace('.', '')), 0);
  t.equal(cents('sale'), Math.round(GROSS_TOTAL * 100));
  t.equal(cents('sale') - cents('return'), Math.round(NET_TOTAL * 100));
  t.ok(cents('return') > 0);
});

t.test('the demo does real work twice over, and one result is refused and mended', async (t) => {
  const { app, argv } = await setUp(t);
  await openJobs(t, app.database.url, { ...PRIVATE, STORAGE_URL: app.config.storageUrl });
  const first = await demo(...argv);
  t.equal(first.status, 0, first.err);
  t.match(first.out, /T-2 {2}the result was refused: report\.json: expected \/total to be 18780\.36, found 19643\.33/);
  t.match(first.out, /deducting returns this time/);
  t.match(first.out, /\*\*18780\.36 EUR\*\*/);
  t.match(first.out, /\n {6}By sales\.csv, [a-z]+ sold most: .*\n {6}.*\n {6}.*862\.97 EUR of 19643\.33\.\n/s);
  t.match(first.out, /I-1 {2}submitted: a plan of 3 operations/);
  // What it waits for may be there before the demo looks; its initiative waits until the demo has answered.
  t.match(first.out, /I-1 {2}is blocked, waits for children/);
  t.match(first.out, /T-5 {2}Write the letter: is /);
  t.match(first.out, /T-5 {2}asks: Who is the letter for\? \(the team, the customers\)/);
  t.match(first.out, /\n {6}A letter to the team\.\n/);
  t.match(first.out, /I-1 {2}is completed/);
  const [, revisions] = /complete, after (\d+) revisions/.exec(first.out) ?? [];
  t.ok(Number(revisions) > 3, 'the reply came piece by piece');
  const links = [...first.out.matchAll(/http:\/\/\S+/g)].map(([link]) => link);
  t.equal(links.length, 15);
  t.match(first.out, /found: The title of 127\.0\.0\.1:\d+ is “Demo Lamp Studio”\./);
  t.match(first.out, /Demo Lamp Studio is active/);
  for (const link of links) t.equal((await fetch(link)).status, 200, link);
  const report = links.find((link) => link.endsWith('artifacts/0/content')) ?? '';
  t.match(await (await fetch(report)).json(), { total: GROSS_TOTAL, basis: 'gross', byRegion: { north: 3916.1 } });

  const again = await demo(...argv);
  t.equal(again.status, 0, again.err);
  t.match(again.out, /using the demo organization of the last run/);
  t.match(again.out, /Demo Lamp Studio is already onboarded/);
  const { rows } = await app.database.owner.query(
    `select status, count(*)::integer as count from app.runs where kind = 'task' group by status order by status`,
  );
  t.same(rows, [
    { status: 'failed', count: 2 },
    { status: 'succeeded', count: 14 },
  ]);
});

t.test('the demo asks no longer when its worker has failed', async (t) => {
  const { app } = await setUp(t);
  const api = ownerApi({ url: app.url });
  const organizationId = await demoOrganization(api, () => {});
  const failed = new AbortController();
  const asking = demoChat(api, organizationId, {
    print: () => failed.abort(),
    write: () => {},
    deadline: performance.now() + 60_000,
    signal: failed.signal,
  });
  await t.rejects(asking, { name: 'AbortError' });
});

t.test('the demo says what to do where nothing responds, or a token is wrong', async (t) => {
  const { argv } = await setUp(t);
  const away = await demo('--url', 'http://127.0.0.1:9');
  t.equal(away.status, 1);
  t.match(away.err, /^demo: Business Runner at http:\/\/127\.0\.0\.1:9 does not respond\. Run npm start .*\n$/);
  await writeFile(argv[3] ?? '', 'a-token-of-somebody-else-0123456789');
  const wrong = await demo(...argv);
  t.equal(wrong.status, 1);
  t.match(wrong.err, /^demo: .*\(give --token-file\)\n$/);
});
