import t from 'tap';
import { openReporting } from '../../support/analysts.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { inboxRow, runRow, setTimezone, taskRow } from '../../support/reporting_fixtures.ts';
import { jsonLines, printed } from '../../support/reports.ts';

t.setTimeout(180_000);
const sql = await openReporting(t);
const at = new Date().toISOString();
const lines = (screen: string, pattern: RegExp) => screen.split('\n').filter((line) => pattern.test(line));

t.test('of more criteria than fit into a call, the worst are shown, and the number of all', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runRow(sql, org, { started_at: at, finished_at: at });
  await sql.owner.query(
    `begin; set local session_replication_role = replica;
     update app.runs set output = jsonb_build_object('kind', 'task_result', 'result', jsonb_build_object('completion',
       jsonb_build_object('checks', (select jsonb_agg(jsonb_build_object('criterionIndex', n, 'evaluator', 'backend',
         'status', case when n < 3 then 'failed' else 'passed' end)) from generate_series(1, 130000) n))))
     where organization_id = '${org.organizationId}' and id = '${run}'; commit`,
  );
  const screen = await printed(sql.url, 'failures', '--organization', org.organizationId);
  test.equal(lines(screen, /^criterion \d/).length, 40);
  test.match(screen, /\ncriterion 1 +backend +1 +1 +100 %[^\n]*\ncriterion 2 +backend +1 +1 +100 %/);
  test.match(screen, '\nand 129960 more criteria; --format csv has all of them\n');
});

t.test('of more initiatives than are shown the last line is the sum of all', async (test) => {
  const org = await createTestOrganization(sql);
  for (let units = 1; units <= 45; units += 1) {
    const id = await taskRow(sql, org, { kind: 'initiative', title: `Costs ${units}`, created_at: at });
    const used = { cost_minor_units: units, cost_known: units > 1, input_tokens: 2, output_tokens: 1 };
    await runRow(sql, org, { task_id: id, mode: 'plan', started_at: at, finished_at: at, ...used });
  }
  const screen = await printed(sql.url, 'cost', '--organization', org.organizationId, '--currency', 'EUR');
  test.equal(lines(screen, /^I-/).length, 40);
  test.match(screen, 'Costs 45');
  test.notMatch(screen, 'Costs 5 ');
  test.match(screen, /\nall +45 +0 s +135 +≥ 10\.34\n/);
  test.match(screen, '\nand 5 more initiatives; --format csv has all of them\n');
  test.match(screen, 'the cost of 1 of 45 runs was not reported');
});

t.test('instants keep the microseconds that the database has', async (test) => {
  const org = await createTestOrganization(sql);
  await taskRow(sql, org, {
    kind: 'initiative',
    created_at: '2026-01-01T10:00:00.123456Z',
    completed_at: '2026-01-01T11:00:00Z',
  });
  const argv = ['cost', '--organization', org.organizationId, '--since', '2026-01-01'];
  test.match(jsonLines(await printed(sql.url, ...argv, '--format', 'json')), [
    { createdAt: '2026-01-01T10:00:00.123456Z', completedAt: '2026-01-01T11:00:00Z' },
  ]);
  test.match(await printed(sql.url, ...argv, '--format', 'csv'), ',2026-01-01T10:00:00.123456Z,2026-01-01T11:00:00Z');
});

t.test('what was over without an answer has not been answered, in the file and on the screen', async (test) => {
  const org = await createTestOrganization(sql);
  const asked = { created_at: at, updated_at: at };
  await inboxRow(sql, org, { ...asked, status: 'responded', responded_at: at, response: 'yes' });
  await inboxRow(sql, org, { ...asked, status: 'resolved' });
  const argv = ['waiting', '--organization', org.organizationId];
  test.match(jsonLines(await printed(sql.url, ...argv, '--format', 'json')), [{ items: 2, itemsAnswered: 1 }]);
  test.match(await printed(sql.url, ...argv), /\nquestion +agent +yes +2 +0 +- +1 /);
});

t.test('a zone that the database does not know is UTC in the title too, as in the rows', async (test) => {
  const org = await createTestOrganization(sql);
  await setTimezone(sql, org, 'Atlantis/Capital');
  await runRow(sql, org, { started_at: at, finished_at: at });
  const argv = ['throughput', '--organization', org.organizationId];
  test.match(await printed(sql.url, ...argv), /^[^\n]*, UTC\n/);
  test.match(jsonLines(await printed(sql.url, ...argv, '--format', 'json')), [{ timezone: 'UTC' }]);
  // What Postgres takes for a zone and the API does not.
  for (const zone of ['LAMP-3', 'BST']) {
    await setTimezone(sql, org, zone);
    test.match(await printed(sql.url, ...argv), /^[^\n]*, UTC\n/, zone);
    test.match(jsonLines(await printed(sql.url, ...argv, '--format', 'json')), [{ timezone: 'UTC' }], zone);
  }
});
