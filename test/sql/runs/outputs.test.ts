import t from 'tap';
import { createTestOrganization, recordOutput, runNew, sha256 } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

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

scenario('files that cannot be laid out together are not stored together', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  for (const path of ['a/b.txt', 'Gr\u00f6\u00dfe']) await recordOutput(sql.api, run, path);
  for (const path of ['A/b.txt', 'a', 'A', 'a/b.txt/c', 'a/B.TXT/c', 'gr\u00f6\u00dfe', 'Gro\u0308\u00dfe']) {
    const layout = { status: 400, reason: 'layout_conflict' };
    test.match(await refusal(recordOutput(sql.api, run, path, null)), layout, 'before the upload');
    test.match(await refusal(recordOutput(sql.api, run, path)), layout, 'and after it');
  }
  for (const path of ['a/b', 'a/b.tx', 'ab', 'a/b.txt', 'A2/b.txt']) await recordOutput(sql.api, run, path);
  const both = await Promise.allSettled(['new', 'NEW'].map((path) => recordOutput(sql.api, run, path)));
  test.same(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'of two at once one is stored');
});

scenario('a run stores at most 1000 files, and may still replace them', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await sql.owner.query(
    `insert into app.run_outputs (organization_id, run_id, path, layout_key, storage_key, size, sha256, media_type)
     select $1, $2, 'f' || n, 'f' || n, 'k' || n, 1, $3, 'text/plain' from generate_series(1, 1000) n`,
    [run.organizationId, run.runId, sha256('')],
  );
  test.match(await refusal(recordOutput(sql.api, run, 'one-more', null)), { status: 400, code: 'validation_failed' });
  test.match(await refusal(recordOutput(sql.api, run, 'one-more')), { status: 400, reason: 'too_many_files' });
  test.match(await recordOutput(sql.api, run, 'f7', 'new'), { replaced: 'k7' });
});
