import t from 'tap';
import {
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  recordOutput,
  runNew,
  sha256,
  startRun,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

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
      organizationId: org.organizationId,
      taskRef: task.id,
      path: 'sales.csv',
      storageKey,
      size: 10,
      sha256: sha256(storageKey),
      mediaType: 'text/csv',
      actor: { kind: 'owner' },
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
