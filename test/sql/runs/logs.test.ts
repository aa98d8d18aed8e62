import t from 'tap';
import { appendLogs, completeRun, createTestOrganization, logEntry, type Run, runNew } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const differs = { status: 409, code: 'run_lease_expired', reason: 'differs', raised: true };

/** As if the entries 1 to `count` had been sent. */
async function fillLog(run: Run, count: number): Promise<void> {
  await sql.owner.query(
    `insert into app.run_logs (organization_id, run_id, sequence, category, status, label, detail, occurred_at)
     select $1, $2, n, 'execution', 'completed', 'entry', '', now() from generate_series(1, $3::integer) n`,
    [run.organizationId, run.runId, count],
  );
  await sql.owner.query(`update app.runs set log_count = $2, log_state = 'recording' where id = $1`, [
    run.runId,
    count,
  ]);
}

scenario('log entries are kept once; the same sequence with other content refuses the whole batch', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.same(await appendLogs(sql.api, run, [logEntry(1), logEntry(2)]), { status: 'starting' });
  test.same(await appendLogs(sql.api, run, [logEntry(1), logEntry(2)]), { status: 'starting' }, 'sent again');
  test.same(await appendLogs(sql.api, run, [logEntry(2), logEntry(3)]), { status: 'starting' }, 'partly sent again');
  test.match(await refusal(appendLogs(sql.api, run, [logEntry(4), logEntry(2, 'other')])), differs);
  const { rows } = await sql.owner.query(
    `select u.log_state, u.log_count, array_agg(l.sequence::int order by l.sequence) as sequences
     from app.runs u join app.run_logs l on l.run_id = u.id where u.id = $1 group by u.log_state, u.log_count`,
    [run.runId],
  );
  test.same(rows, [{ log_state: 'recording', log_count: 3, sequences: [1, 2, 3] }]);
});

scenario('a sequence twice in one batch counts once, and with two contents is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.same(await appendLogs(sql.api, run, [logEntry(1), logEntry(1)]), { status: 'starting' });
  test.match(await refusal(appendLogs(sql.api, run, [logEntry(2), logEntry(2, 'other')])), differs);
  const { rows } = await sql.owner.query('select log_count, log_state from app.runs where id = $1', [run.runId]);
  test.same(rows, [{ log_count: 1, log_state: 'recording' }]);
});

scenario('the same batch at once is kept once', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const batch = Array.from({ length: 50 }, (_, index) => logEntry(index));
  await Promise.all(Array.from({ length: 8 }, () => appendLogs(sql.api, run, batch)));
  const { rows } = await sql.owner.query('select log_count from app.runs where id = $1', [run.runId]);
  test.same(rows, [{ log_count: 50 }]);
});

scenario(
  'a log ends at 10,000 entries and is marked truncated, also by a complete that calls it complete',
  async (test) => {
    const org = await createTestOrganization(sql);
    const run = await runNew(sql, org);
    await fillLog(run, 9999);
    test.same(await appendLogs(sql.api, run, [logEntry(20_000), logEntry(20_001)]), { status: 'starting' });
    test.same(
      await appendLogs(sql.api, run, [logEntry(20_000)]),
      { status: 'starting' },
      'what was kept may come again',
    );
    test.same(await appendLogs(sql.api, run, [logEntry(20_002)]), { status: 'starting' }, 'more is dropped in silence');
    await completeRun(sql.api, run, { report: { logState: 'complete' } });
    const { rows } = await sql.owner.query(
      `select log_state, log_count, (select max(sequence)::int from app.run_logs l where l.run_id = u.id) as last
     from app.runs u where id = $1`,
      [run.runId],
    );
    test.same(rows, [{ log_state: 'truncated', log_count: 10_000, last: 20_000 }]);
  },
);

scenario('a batch of nothing changes nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const row = () => sql.owner.query('select * from app.runs where id = $1', [run.runId]).then(({ rows }) => rows);
  const before = await row();
  test.same(await appendLogs(sql.api, run, []), { status: 'starting' });
  test.same(await row(), before);
});

scenario('what is sent again takes no room: a batch whose new entries just fit is kept whole', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await fillLog(run, 9997);
  await appendLogs(sql.api, run, [logEntry(20_000)]);
  const batch = [logEntry(20_000), logEntry(20_001), logEntry(20_002), logEntry(20_001)];
  test.same(await appendLogs(sql.api, run, batch), { status: 'starting' });
  test.same(await appendLogs(sql.api, run, batch), { status: 'starting' }, 'and again');
  test.match(await refusal(appendLogs(sql.api, run, [logEntry(20_003), logEntry(20_001, 'other')])), differs);
  const { rows } = await sql.owner.query(
    `select log_state, log_count, (select count(*)::int from app.run_logs l where l.run_id = u.id) as kept
     from app.runs u where id = $1`,
    [run.runId],
  );
  test.same(rows, [{ log_state: 'recording', log_count: 10_000, kept: 10_000 }]);
});
