import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  appendLogs,
  cancelTask,
  checkLease,
  claimNext,
  completeRun,
  createPlace,
  createTask,
  endLease,
  expire,
  failRun,
  heartbeat,
  lastRequest,
  logEntry,
  markRunning,
  publishNow,
  type Run,
  recordOutput,
  releaseClaim,
  runNew,
  sha256,
  startRun,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost', raised: true };
const differs = { status: 409, code: 'run_lease_expired', reason: 'differs', raised: true };

type Holder = Pick<Run, 'organizationId' | 'runRequestId' | 'runId' | 'leaseToken'>;

/** Everything that a holder can send, by name. */
const calls: Readonly<Record<string, (run: Holder) => Promise<unknown>>> = {
  start: (run) => startRun(sql.api, run, { runId: run.runId }),
  'start of a new run': (run) => startRun(sql.api, run),
  running: (run) => markRunning(sql.api, run),
  heartbeat: (run) => heartbeat(sql.api, run),
  logs: (run) => appendLogs(sql.api, run, [logEntry(900)]),
  'output, the look before': (run) => recordOutput(sql.api, run, 'late.txt', null),
  output: (run) => recordOutput(sql.api, run, 'late.txt'),
  inputs: (run) => checkLease(sql.api, run),
  complete: (run) => completeRun(sql.api, run),
  fail: (run) => failRun(sql.api, run),
};

/** All that the calls of a holder could change. */
async function everything(organizationId: string): Promise<unknown> {
  const tables = [
    'tasks',
    'run_requests',
    'runs',
    'run_logs',
    'run_outputs',
    'capabilities',
    'human_inbox_items',
    'dispatch',
    'dispatch_lanes',
  ];
  const found: Record<string, unknown> = {};
  for (const table of tables) {
    const { rows } = await sql.owner.query(
      `select to_jsonb(r) - 'turn' as row from app.${table} r where organization_id = $1 order by to_jsonb(r)::text`,
      [organizationId],
    );
    found[table] = rows;
  }
  return found;
}

scenario('an expired holder changes nothing by any call, whether the end was noticed or not', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await endLease(sql, run);
  const before = await everything(place.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(run)), lost, name);
  test.same(await everything(place.organizationId), before, 'unnoticed');
  test.equal(await expire(sql.jobs, run), 'expired');
  const after = await everything(place.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(run)), lost, name);
  test.same(await everything(place.organizationId), after, 'noticed');
});

scenario('nor does it after the request went to the same worker again, claimed or started', async (test) => {
  const place = await createPlace(sql);
  await createTask(sql, place);
  const old = await startRun(sql.api, await claimNext(sql, place, 'w-1'), { workerId: 'w-1' });
  await endLease(sql, old);
  await expire(sql.jobs, old);
  await publishNow(sql, place, old.taskId);
  const claim = await claimNext(sql, place, 'w-1');
  test.equal(claim.runRequestId, old.runRequestId);
  test.equal(claim.attempt, 2);
  const claimed = await everything(place.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(old)), lost, name);
  test.same(await everything(place.organizationId), claimed, 'claimed');
  const run = await startRun(sql.api, claim, { workerId: 'w-1' });
  const started = await everything(place.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(old)), lost, name);
  // Its own run with the new token, and the new run with its old one.
  for (const mixed of [
    { ...run, runId: old.runId },
    { ...run, leaseToken: old.leaseToken },
  ]) {
    for (const [name, send] of Object.entries(calls)) {
      if (!name.startsWith('start')) test.match(await refusal(send(mixed)), lost, name);
    }
  }
  test.same(await everything(place.organizationId), started, 'started');
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario('a run of another organization, an unknown run and an unstarted claim take no call', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const run = await runNew(sql, place);
  await createTask(sql, place);
  const claim = await claimNext(sql, place);
  for (const wrong of [
    { ...run, organizationId: foreign.organizationId },
    { ...run, runId: randomUUID() },
    { ...run, leaseToken: 'nonsense' },
    {
      organizationId: place.organizationId,
      runRequestId: claim.runRequestId,
      runId: randomUUID(),
      leaseToken: claim.leaseToken,
    },
  ]) {
    for (const [name, send] of Object.entries(calls)) {
      if (!name.startsWith('start')) test.match(await refusal(send(wrong)), lost, name);
    }
  }
  test.same(await releaseClaim(sql.api, run), { released: false }, 'a started run is not given back as a claim');
});

scenario('a call that waited for a lock until the lease was over is refused', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const [sweep, holder] = [await openSession(test, sql, 'owner'), await openSession(test, sql)];
  await sweep.begin();
  await sweep.query('select from app.run_requests where id = $1 for update', [run.runRequestId]);
  const beat = refusal(heartbeat(holder, run));
  await holder.waits();
  await sweep.query(`update app.run_requests set lease_expires_at = clock_timestamp() where id = $1`, [
    run.runRequestId,
  ]);
  await sweep.commit();
  test.match(await beat, lost);
});

scenario('a call that waited for a row that did not change is judged by the clock after the wait', async (test) => {
  const place = await createPlace(sql);
  await createTask(sql, place);
  const run = await startRun(sql.api, await claimNext(sql, place));
  const [blocker, holder] = [await openSession(test, sql, 'owner'), await openSession(test, sql)];
  await blocker.begin();
  // The lease ends while the row is locked, and nothing changes the row afterwards.
  await sql.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() + interval '150 milliseconds' where id = $1`,
    [run.runRequestId],
  );
  await blocker.query('select from app.run_requests where id = $1 for update', [run.runRequestId]);
  const complete = refusal(completeRun(holder, run));
  await holder.waits();
  await blocker.query(
    `do $$ begin while clock_timestamp() <= (select lease_expires_at from app.run_requests where id = '${run.runRequestId}')
     loop end loop; end $$`,
    [],
  );
  await blocker.commit();
  test.match(await complete, lost);
  test.match(await taskRow(sql, place, run.taskId), { status: 'running' });
});

scenario('running says what the run runs on; again it is the same answer, with other content refused', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  test.same(await markRunning(sql.api, run, 'm-1'), { status: 'running' });
  test.same(await markRunning(sql.api, run, 'm-1'), { status: 'running' });
  test.match(await refusal(markRunning(sql.api, run, 'm-2')), differs);
  const { rows } = await sql.owner.query('select status, harness, model, workspace_uri from app.runs where id = $1', [
    run.runId,
  ]);
  test.same(rows, [{ status: 'running', harness: 'h', model: 'm-1', workspace_uri: null }]);
});

scenario('a heartbeat renews the lease by what the backend says and answers the status of the run', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  test.same(await heartbeat(sql.api, run, 120), { status: 'starting' });
  await markRunning(sql.api, run);
  test.same(await heartbeat(sql.api, run, 120), { status: 'running' });
  const { rows } = await sql.owner.query(
    `select extract(epoch from lease_expires_at - clock_timestamp())::float as left from app.run_requests where id = $1`,
    [run.runRequestId],
  );
  const left = Number(rows[0]?.left);
  test.ok(left > 110 && left <= 120);
  test.equal(await expire(sql.jobs, run), 'kept', 'a sweep that comes too early changes nothing');
});

scenario('after a cancel a heartbeat says cancelling and no longer renews', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await cancelTask(sql.api, place, run.taskId);
  const before = await lastRequest(sql, place, run.taskId);
  test.same(await heartbeat(sql.api, run, 500), { status: 'cancelling' });
  test.same(await lastRequest(sql, place, run.taskId), before);
  test.same(await markRunning(sql.api, run), { status: 'cancelling' });
  test.same(await appendLogs(sql.api, run, [logEntry(1)]), { status: 'cancelling' }, 'its logs are kept');
});

scenario('log entries are kept once; the same sequence with other content refuses the whole batch', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
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
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  test.same(await appendLogs(sql.api, run, [logEntry(1), logEntry(1)]), { status: 'starting' });
  test.match(await refusal(appendLogs(sql.api, run, [logEntry(2), logEntry(2, 'other')])), differs);
  const { rows } = await sql.owner.query('select log_count, log_state from app.runs where id = $1', [run.runId]);
  test.same(rows, [{ log_count: 1, log_state: 'recording' }]);
});

scenario('the same batch at once is kept once', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const batch = Array.from({ length: 50 }, (_, index) => logEntry(index));
  await Promise.all(Array.from({ length: 8 }, () => appendLogs(sql.api, run, batch)));
  const { rows } = await sql.owner.query('select log_count from app.runs where id = $1', [run.runId]);
  test.same(rows, [{ log_count: 50 }]);
});

scenario(
  'a log ends at 10,000 entries and is marked truncated, also by a complete that calls it complete',
  async (test) => {
    const place = await createPlace(sql);
    const run = await runNew(sql, place);
    await sql.owner.query(
      `insert into app.run_logs (organization_id, run_id, sequence, category, status, label, detail, occurred_at)
     select $1, $2, n, 'execution', 'completed', 'entry', '', now() from generate_series(1, 9999) n`,
      [run.organizationId, run.runId],
    );
    await sql.owner.query(`update app.runs set log_count = 9999, log_state = 'recording' where id = $1`, [run.runId]);
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

scenario('an output is recorded under its path, and replaced by the next one there', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
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
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
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
  const place = await createPlace(sql);
  const made = await runNew(sql, place, { title: 'maker' });
  await recordOutput(sql.api, made, 'out/report.json', 'made-key');
  await completeRun(sql.api, made, {
    result: { kind: 'completed', summary: '', artifacts: [{ path: 'out/report.json' }] },
  });
  const task = await createTask(sql, place, {
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
      p_organization_id: place.organizationId,
      p_task_ref: task.id,
      p_path: 'sales.csv',
      p_storage_key: storageKey,
      p_size: 10,
      p_sha256: sha256(storageKey),
      p_media_type: 'text/csv',
      p_actor: { kind: 'owner' },
    });
  await put('sales-1');
  const run = await startRun(sql.api, await claimNext(sql, place));
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
