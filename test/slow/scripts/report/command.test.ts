import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { ReportError } from '../../../../scripts/report/session.ts';
import { width } from '../../../../scripts/report/text.ts';
import { createAnalyst, openReporting } from '../../../support/analysts.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { createSecondProfile, createTestOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import { inboxRow, runRow, setTimezone, taskRow } from '../../../support/reporting_fixtures.ts';
import { jsonLines, printed } from '../../../support/reports.ts';

// Each test starts processes, and a machine that is busy takes its time.
t.setTimeout(180_000);

const root = path.resolve(import.meta.dirname, '../../../..');
const sql = await openReporting(t);

/** The message of what the command refuses. */
async function refusal(url: string, ...argv: string[]): Promise<string> {
  const said = await printed(url, ...argv).catch((error: unknown) => error);
  if (said instanceof ReportError) return said.message;
  throw said instanceof Error ? said : new Error(`it was expected to refuse, and printed ${said}`);
}

type Said = Readonly<{ status: number | null; out: string; err: string }>;

/** The command as a process, with these settings alone. */
async function run(settings: NodeJS.ProcessEnv, ...argv: string[]): Promise<Said> {
  const child = spawn(process.execPath, ['scripts/report.ts', '--no-env-file', ...argv], {
    cwd: root,
    env: bareEnvironment(settings),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status, out, err };
}

async function named(org: TestOrganization, name: string, profileName = 'Profile'): Promise<void> {
  const { organizationId, profileId } = org;
  await sql.owner.query('update app.organizations set name = $2 where id = $1', [organizationId, name]);
  await sql.owner.query('update app.agent_profiles set name = $3 where organization_id = $1 and id = $2', [
    organizationId,
    profileId,
    profileName,
  ]);
}

/** A zone without daylight saving time where it is about noon now: no day begins while the test runs. */
async function noonZone(): Promise<string> {
  const { rows } = await sql.owner.query<{ hour: number }>(
    `select extract(hour from now() at time zone 'UTC')::integer as hour`,
  );
  const east = 12 - (rows[0]?.hour ?? 12);
  return east === 0 ? 'UTC' : `Etc/GMT${east > 0 ? '-' : '+'}${Math.abs(east)}`;
}

t.test('throughput counts the days of the zone, exactly', async (test) => {
  const org = await createTestOrganization(sql);
  await named(org, 'Havana', 'Grüße');
  await setTimezone(sql, org, 'America/Havana');
  const ended = (finished_at: string, fields = {}) =>
    runRow(sql, org, { finished_at, started_at: finished_at, ...fields });
  await ended('2025-11-02T03:59:00Z', { cost_minor_units: 1, cost_known: true });
  // Midnight comes twice on this day.
  await ended('2025-11-02T04:30:00Z', { cost_minor_units: 9_007_199_254, cost_known: true, input_tokens: 5 });
  await ended('2025-11-02T05:30:00Z', {
    status: 'failed',
    error: { code: 'broken' },
    cost_minor_units: 7,
    cost_known: true,
  });
  await ended('2025-11-03T04:59:00Z', { status: 'expired' });
  await taskRow(sql, org, { completed_at: '2025-11-02T12:00:00Z' });
  const argv = ['throughput', '--organization', org.organizationId, '--since', '2025-11-02'];

  const rows = jsonLines(await printed(sql.url, ...argv, '--format', 'json'));
  test.match(rows, [
    {
      organizationId: org.organizationId,
      day: '2025-11-02',
      timezone: 'America/Havana',
      agentProfileName: 'Grüße',
      tasksCompleted: 1,
      runsFinished: 3,
      runsSucceeded: 1,
      runsFailed: 1,
      runsExpired: 1,
      knownCostMinorUnits: 9_007_199_261,
      runsWithUnknownCost: 1,
    },
  ]);
  test.equal(rows.length, 1);
  const [head = '', line = '', ...more] = (
    await printed(sql.url, ...argv, '--format', 'csv', '--currency', 'EUR')
  ).split('\r\n');
  test.same(more, ['']);
  const cells = Object.fromEntries(head.split(',').map((name, index) => [name, line.split(',')[index]]));
  test.match(cells, {
    day: '2025-11-02',
    knownCost: '90071992.61',
    currency: 'EUR',
    runsFinished: '3',
    inputTokens: '5',
  });
  const screen = await printed(sql.url, ...argv, '--currency', 'EUR');
  test.match(screen, /^Havana \(\S+\): throughput from 2025-11-02 to 20\d\d-\d\d-\d\d, America\/Havana\n/);
  test.match(screen, /\n2025-10-27 +1 +3 +1 +2 +0 +33 % {2}█+░+\n/, 'a week of it, for a year has many days');
  test.match(screen, /\nGrüße +1 +3 +1 +2 +0 +33 % +0 +0 s +≥ 90071992\.61\n/);
});

t.test('days without work are shown as such, and bars fit to the screen', async (test) => {
  const org = await createTestOrganization(sql);
  const zone = await noonZone();
  await setTimezone(sql, org, zone);
  const dayAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  for (const days of [2, 2, 0]) await runRow(sql, org, { finished_at: dayAgo(days), started_at: dayAgo(days) });
  await runRow(sql, org, { finished_at: dayAgo(30), started_at: dayAgo(30) });
  const screen = await printed(sql.url, 'throughput', '--organization', org.organizationId, '--since', '4d');
  const days = screen.split('\n').filter((line) => /^20\d\d-/.test(line));
  test.same(
    days.map((line) =>
      line
        .split(/ +/)
        .slice(2, 3)
        .concat(line.split(/ +/)[8] ?? ''),
    ),
    [
      ['2', '█'.repeat(31)],
      ['0', ''],
      ['1', '█'.repeat(16)],
    ],
    'from the first one on',
  );
  test.notMatch(screen, '\u001b', 'no colours where it is no terminal');
  for (const line of screen.split('\n')) test.ok(width(line) <= 100, line);
});

t.test('cost is told by initiative, and an unknown one stays unknown', async (test) => {
  const org = await createTestOrganization(sql);
  const at = new Date().toISOString();
  const initiative = (title: string) => taskRow(sql, org, { kind: 'initiative', title, created_at: at });
  const below = async (parent: string, fields: object) => {
    const task = await taskRow(sql, org, { parent_id: parent, root_task_id: parent, depth: 1 });
    await runRow(sql, org, { task_id: task, started_at: at, finished_at: at, ...fields });
  };
  const dear = await initiative('日本語 =1+1');
  await below(dear, { cost_minor_units: 1250, cost_known: true });
  await below(dear, {});
  const dark = await initiative('\u001b[31mred\u001b[0m\n@SUM');
  await below(dark, {});
  const old = await initiative('Long ago');
  await below(old, { cost_minor_units: 1, cost_known: true, started_at: '2025-01-01T00:00:00Z' });
  const argv = ['cost', '--organization', org.organizationId, '--currency', 'EUR'];

  const screen = await printed(sql.url, ...argv);
  test.match(screen, /\nI-\d+ {2}日本語 =1\+1 +completed +2 of 2 +2 +0 s +0 +≥ 12\.50\n/);
  test.match(screen, /\nI-\d+ {2}\\u001b\[31mred\\u001b\[0m\\n@SUM +completed +1 of 1 +1 +0 s +0 +unknown\n/);
  test.match(screen, /\nall +3 +0 s +0 +≥ 12\.50\n/);
  test.match(screen, /the cost of 2 of 3 runs was not reported/);
  test.notMatch(screen, /Long ago/, 'nothing of it ran in the last 30 days');
  const lines = screen.split('\n').filter((line) => /^(I-| {2})/.test(line));
  test.equal(new Set(lines.map(width)).size, 1, 'wide characters are aligned');

  test.match(jsonLines(await printed(sql.url, ...argv, '--format', 'json')), [
    { title: '日本語 =1+1', knownCostMinorUnits: 1250, knownCost: 12.5, costMinorUnits: null, cost: null },
    { title: '\u001b[31mred\u001b[0m\n@SUM', runsWithUnknownCost: 1, costMinorUnits: null },
  ]);
  const csv = await printed(sql.url, ...argv, '--format', 'csv');
  test.match(csv, ',日本語 =1+1,');
  test.match(csv, ',\\u001b[31mred\\u001b[0m\\n@SUM,');
  await sql.owner.query(
    `update app.tasks set title = '=HYPERLINK("http://x","y")' where organization_id = $1 and id = $2`,
    [org.organizationId, dark],
  );
  test.match(await printed(sql.url, ...argv, '--format', 'csv'), `,"'=HYPERLINK(""http://x"",""y"")",`);
});

t.test('what is outside of initiatives has lines of its own in the costs, chats too', async (test) => {
  const org = await createTestOrganization(sql);
  const at = new Date().toISOString();
  const ended = (fields: object) => runRow(sql, org, { started_at: at, finished_at: at, ...fields });
  const known = (units: number) => ({ cost_minor_units: units, cost_known: true, input_tokens: 3 });
  const argv = ['cost', '--organization', org.organizationId, '--currency', 'EUR'];
  await ended({ task_id: await taskRow(sql, org), ...known(250) });
  await ended({ kind: 'chat', ...known(1) });
  await ended({ kind: 'chat' });
  await runRow(sql, org, { kind: 'chat', finished_at: '2025-01-01T00:00:00Z', ...known(70_000) });
  const alone = await printed(sql.url, ...argv);
  test.match(
    alone,
    /\n +Tasks outside of initiatives +1 +0 s +3 +2\.50\n +Chats +2 +0 s +3 +≥ 0\.01\nall +3 +0 s +6 +≥ 2\.51\n/,
  );
  const initiative = await taskRow(sql, org, { kind: 'initiative', title: 'Open a shop', created_at: at });
  await ended({ task_id: initiative, mode: 'plan', ...known(1_000) });
  const screen = await printed(sql.url, ...argv);
  test.match(screen, /\nI-\d+ +Open a shop +completed +0 of 0 +1 +0 s +3 +10\.00\n +Tasks outside/);
  test.match(screen, /\nall +4 +0 s +9 +≥ 12\.51\n/);
  test.match(screen, /the cost of 1 of 4 runs was not reported/);
  const objects = jsonLines(await printed(sql.url, ...argv, '--format', 'json'));
  test.match(objects, [
    { title: 'Open a shop', depth: 0, runs: 1, knownCostMinorUnits: 1000 },
    { title: 'Tasks outside of initiatives', initiativeId: null, depth: null, runs: 1, costMinorUnits: 250 },
    {
      title: 'Chats',
      initiativeId: null,
      runs: 2,
      runsWithUnknownCost: 1,
      knownCostMinorUnits: 1,
      costMinorUnits: null,
    },
  ]);
  test.equal(objects.length, 3);
  const days = await printed(sql.url, 'throughput', '--organization', org.organizationId, '--currency', 'EUR');
  test.match(days, / +0 +2 +2 +0 +0 +100 % +2 +0 s +≥ 12\.51\n/);
});

t.test('waiting, queue and failures tell what happened', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createSecondProfile(sql, org);
  await named(org, 'Ada & Co', 'Fast');
  await named(other, 'Ada & Co', 'Slow');
  const at = new Date(Date.now() - 86_400_000).toISOString();
  const later = (seconds: number) => new Date(Date.parse(at) + seconds * 1000).toISOString();
  const answered = { created_at: at, status: 'responded', response: 'yes', purpose: 'needs_input' };
  for (const seconds of [60, 120, 7200])
    await inboxRow(sql, org, { ...answered, responded_at: later(seconds), updated_at: later(seconds) });
  await inboxRow(sql, org, { created_at: at, kind: 'notification', blocking: false });
  const waiting = await printed(sql.url, 'waiting', '--organization', org.organizationId);
  test.match(waiting, /\nquestion +needs input +yes +3 +0 +- +3 +2 min +2\.0 h +2\.0 h {2}/);
  test.match(waiting, /\nnotification +agent +no +1 +1 +1\.0 d +0 +- +- +1\.0 d {2}█+\n/);

  for (const seconds of [10, 20, 30]) await runRow(sql, org, { started_at: at, finished_at: at }, seconds);
  await runRow(sql, other, { started_at: at, finished_at: at }, 600);
  const queue = await printed(sql.url, 'queue', '--organization', org.organizationId);
  test.match(queue, /\nFast +task +3 +20 s +28 s +30 s +30 s {2}/);
  test.match(queue, /\nSlow +task +1 +10 min +10 min +10 min +10 min {2}█+\n/);

  const task = await taskRow(sql, org, { spec: { acceptanceCriteria: [{ kind: 'output_file', path: 'a.json' }] } });
  for (const status of ['failed', 'failed', 'passed']) {
    const checks = [{ criterionIndex: 0, evaluator: 'backend', status, summary: '', evidence: [] }];
    const output = { kind: 'task_result', result: { kind: 'completed', completion: { checks } } };
    await runRow(sql, org, { task_id: task, started_at: at, finished_at: at, output });
  }
  const failures = await printed(sql.url, 'failures', '--organization', org.organizationId);
  test.match(failures, /\na\.json +backend +3 +2 +67 % {2}20\d\d-\d\d-\d\d \d\d:\d\d {2}█+\n/);
});

t.test('an analyst sees what it was given, and an operator all, by name', async (test) => {
  const [mine, foreign] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  await named(mine, 'Mine');
  await named(foreign, 'Foreign');
  for (const org of [mine, foreign]) await runRow(sql, org, { finished_at: new Date().toISOString() });
  const { url } = await createAnalyst(t, sql, { organizationIds: [mine.organizationId] });

  const seen = await printed(url, 'throughput', '--format', 'json');
  test.same([...new Set(jsonLines(seen).map((row) => row['organizationId']))], [mine.organizationId]);
  const no = (ref: string) => `there is no organization ${ref} that this login may read`;
  test.equal(await refusal(url, 'throughput', '--organization', foreign.organizationId), no(foreign.organizationId));
  test.equal(await refusal(url, 'throughput', '--organization', 'nobody'), no('nobody'));
  const both = await printed(
    sql.url,
    'waiting',
    '--organization',
    mine.organizationId,
    '--organization',
    foreign.organizationId,
  );
  test.match(both, /^Foreign \([^\n]*\n\nnothing in this time\n\nMine \([^\n]*\n\nnothing in this time\n$/);

  const nobody = await createAnalyst(t, sql, {});
  test.equal(await printed(nobody.url, 'cost'), 'there is no organization that this login may read\n');
  test.equal(await printed(nobody.url, 'cost', '--format', 'csv'), '');
});

t.test('an empty summary is a head in CSV, and nothing in JSON', async (test) => {
  const org = await createTestOrganization(sql);
  for (const name of ['throughput', 'cost', 'waiting', 'queue', 'failures']) {
    const argv = [name, '--organization', org.organizationId];
    test.match(
      await printed(sql.url, ...argv, '--format', 'csv'),
      /^organization,organizationId,[A-Za-z0-9,]+\r\n$/,
      name,
    );
    test.equal(await printed(sql.url, ...argv, '--format', 'json'), '', name);
  }
});

t.test('more rows than a page of the cursor come in full, and a reader that goes away is no error', async (test) => {
  const org = await createTestOrganization(sql);
  await sql.owner.query(
    `insert into app.human_inbox_items (organization_id, kind, purpose, title, created_at)
      select $1, 'question', 'agent', '?', timestamptz '2015-01-01' + n * interval '1 day' from generate_series(1, 2500) n`,
    [org.organizationId],
  );
  const argv = ['waiting', '--organization', org.organizationId, '--since', '2015-01-01', '--format', 'json'];
  const rows = jsonLines(await printed(sql.url, ...argv));
  test.equal(new Set(rows.map((row) => row['day'])).size, 2500);

  const child = spawn(process.execPath, ['scripts/report.ts', '--no-env-file', ...argv], {
    cwd: root,
    env: bareEnvironment({ DATABASE_URL: sql.url }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  const [err, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  test.same({ status, err }, { status: 0, err: '' });
});

t.test('as a process it says in one line what is wrong, and ends with a status of its own', async (test) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'report-test-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  const [usage, help, setting, away, none, well] = await Promise.all([
    run({ DATABASE_URL: 'mysql://x' }, 'costs'),
    run({}, '--help'),
    run({ DATABASE_URL: 'mysql://x' }, 'cost'),
    run({ DATABASE_URL: 'postgres://x:y@127.0.0.1:1/z' }, 'cost'),
    run({ DATA_DIR: folder }, 'cost'),
    run({ DATABASE_URL: sql.url }, 'waiting', '--format', 'csv'),
  ]);
  test.match(usage, { status: 64, out: '', err: /^the report is one of [^\n]+\(npm run report -- --help\)\n$/ });
  test.match(help, { status: 0, out: /^npm run report -- REPORT/, err: '' });
  test.match(setting, { status: 78, out: '', err: /^DATABASE_URL: [^\n]+\n$/ });
  test.match(away, { status: 1, out: '', err: /^the database does not respond: [^\n]*ECONNREFUSED[^\n]*\n$/ });
  test.match(none, {
    status: 1,
    out: '',
    err: /^no Business Runner runs on [^\n]+: run npm start first, or set DATABASE_URL\n$/,
  });
  test.match(well, { status: 0, out: /^organization,organizationId,/, err: '' });
});
