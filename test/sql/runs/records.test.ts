import t from 'tap';
import {
  appendLogs,
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  logEntry,
  type Run,
  recordOutput,
  runNew,
  sha256,
  startRun,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

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

scenario('an output is recorded under its path, and replaced by the next one there', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.same(await recordOutput(sql.api, run, 'a/b.txt', null), { output: null, replaced: null }, 'the look before');
  const first = await recordOutput(sql.api, run, 'a/b.txt', 'key-1');
  test.match(first, {
    output: { path: 'a/b.txt', storage_key: 'key-1', size: 3, media_type: 'text/plain' },
    replaced: null,
  });
  test.match(await recordOutput(sql.api, run, 'a/b.txt', 'key-2'), {
    output: { storage_key: 'key-2' },
    replaced: 'key-1',
  });
  const { rows } = await sql.owner.query('select path, storage_key from app.run_outputs where run_id = $1', [
    run.runId,
  ]);
  test.same(rows, [{ path: 'a/b.txt', storage_key: 'key-2' }]);
});

scenario('a run stores at most 1000 files, and may still replace them', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await sql.owner.query(
    `insert into app.run_outputs (organization_id, run_id, path, storage_key, size, sha256, media_type)
     select $1, $2, 'f' || n, 'k' || n, 1, $3, 'text/plain' from generate_series(1, 1000) n`,
    [run.organizationId, run.runId, sha256('')],
  );
  test.match(await refusal(recordOutput(sql.api, run, 'one-more', null)), { status: 400, code: 'validation_failed' });
  test.match(await refusal(recordOutput(sql.api, run, 'one-more')), { status: 400, reason: 'too_many_files' });
  test.match(await recordOutput(sql.api, run, 'f7', 'new'), { replaced: 'k7' });
});

scenario('the inputs of a run are fixed at its start', async (test) => {
  const org = await createTestOrganization(sql);
  const made = await runNew(sql, org, { title: 'maker' });
  await recordOutput(sql.api, made, 'out/report.json', 'made-key');
  await completeRun(sql.api, made, {
    result: { kind: 'completed', summary: '', artifacts: [{ path: 'out/report.json' }] },
  });
  const task = await createTask(sql, org, {
    spec: {
      inputs: [
        { kind: 'inline', path: 'notes.txt', text: 'héllo' },
        { kind: 'inline', path: 'notes.txt', text: 'second of the same path' },
        { kind: 'upload', path: 'sales.csv' },
        { kind: 'upload', path: 'missing.csv' },
        { kind: 'artifact', runId: made.runId, artifactIndex: 0, path: 'before.json' },
        { kind: 'artifact', runId: made.runId, artifactIndex: 7, path: 'nothing.json' },
      ],
    },
  });
  const put = (storageKey: string) =>
    transition(sql.api, 'task_input_put', {
      p_organization_id: org.organizationId,
      p_task_ref: task.id,
      p_path: 'sales.csv',
      p_storage_key: storageKey,
      p_size: 10,
      p_sha256: sha256(storageKey),
      p_media_type: 'text/csv',
      p_actor: { kind: 'owner' },
    });
  await put('sales-1');
  const run = await startRun(sql.api, await claimNext(sql, org));
  await put('sales-2');
  const { rows } = await sql.owner.query(
    `select path, media_type, size::int as size, sha256, content, storage_key from app.run_inputs
     where run_id = $1 order by path`,
    [run.runId],
  );
  const none = { size: 0, sha256: null, content: null, storage_key: null, media_type: 'application/octet-stream' };
  test.same(rows, [
    {
      path: 'before.json',
      media_type: 'text/plain',
      size: 3,
      sha256: sha256('out/report.json'),
      content: null,
      storage_key: 'made-key',
    },
    { path: 'missing.csv', ...none },
    {
      path: 'notes.txt',
      media_type: 'text/plain',
      size: 6,
      sha256: sha256('héllo'),
      content: 'héllo',
      storage_key: null,
    },
    { path: 'nothing.json', ...none },
    {
      path: 'sales.csv',
      media_type: 'text/csv',
      size: 10,
      sha256: sha256('sales-1'),
      content: null,
      storage_key: 'sales-1',
    },
  ]);
});
