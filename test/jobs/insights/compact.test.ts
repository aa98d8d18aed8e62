import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { claimCompaction } from '../../support/compaction_fixtures.ts';
import { publishAll, publishFacts, tellings } from '../../support/stored_facts.ts';
import { openSql } from '../../support/transitions.ts';
import { openCompactor } from './compacting.ts';

const sql = await openSql(t);
const { config, logged, outcomes, rowOf, rows, run, seen, storage, world } = await openCompactor(t, sql);

t.test('a month of sixteen files becomes one, and a query sees what it saw, now and before', async (test) => {
  const { month } = await world();
  const before = await seen(month);
  test.match(before, { revision: 16, files: 16 });
  await run();
  const after = await seen(month);
  test.match(after, { revision: 17, files: 1, sha256: before.sha256 });
  test.equal(after.facts.get('first')?.values['amount'], '15');
  test.match(await seen(month, 16), { files: 16, sha256: before.sha256 }, 'a query that had begun reads on');
  const [segment] = await rows(
    'select distinct_keys, row_count from app.insight_segments where source_id = $1 and published_revision = 17',
    month.sourceId,
  );
  test.same(segment, { distinct_keys: true, row_count: 17 });
  await run();
  test.match(await seen(month), { revision: 17 }, 'and that is that');
});

t.test('fewer files stay, and other months of the source do', async (test) => {
  const { place, month } = await world(tellings(15));
  await run();
  test.match(await seen(month), { revision: 15, files: 15 });
  await publishFacts(sql, storage, place, [
    { key: 'first', isGone: true },
    { key: 'other', month: 2 },
  ]);
  await run();
  const january = await seen(month);
  test.match(january, { revision: 17, files: 1 });
  test.notOk(january.facts.has('first'), 'what is gone is left out of a whole month');
  test.match(await seen({ ...month, month: '2026-03' }), { files: 1 });
});

t.test('what is staged stays, and what is gone stays because of it', async (test) => {
  const { place, month } = await world(tellings(2));
  await publishFacts(sql, storage, place, [{ key: 'first', amount: '77' }], { staged: true });
  await publishFacts(sql, storage, place, [{ key: 'first', isGone: true }]);
  await publishAll(
    sql,
    storage,
    place,
    tellings(14).map((told) => told.slice(1)),
  );
  await run();
  const part = await seen(month);
  test.match(part, { files: 1 });
  test.equal(part.facts.get('first')?.deleted, true);
  await publishFacts(sql, storage, place, [{ key: 'late' }], { staged: true, publishStaged: true });
  const all = await seen(month);
  test.match(all, { files: 3 });
  test.equal(all.facts.get('first')?.deleted, true, 'an older file does not bring it back');
});

t.test('a large month is merged a part at a time', async (test) => {
  const { month } = await world(tellings(40));
  const { sha256 } = await seen(month);
  const insightCompaction = { ...config.insightCompaction, rows: 26, files: 12 };
  await run({ config: { ...config, insightCompaction } });
  const after = await seen(month);
  test.equal(after.sha256, sha256);
  test.ok(after.files < 16, `${after.files} files are left`);
  test.equal(
    (await rows('select 1 from app.insight_segments where source_id = $1 and distinct_keys', month.sourceId)).length,
    0,
  );
});

t.test('a file that is damaged is told, waits, and holds up no other month', async (test) => {
  const [broken, other] = [await world(), await world()];
  const [file] = await rows(
    'select object_key from app.insight_segments where source_id = $1 limit 1',
    broken.month.sourceId,
  );
  const place = path.join(fileURLToPath(config.storageUrl), file.object_key);
  const bytes = await readFile(place);
  bytes[30] = (bytes[30] ?? 0) ^ 1;
  await writeFile(place, bytes);
  const before = (await outcomes())['damaged'] ?? 0;
  test.equal(await run(), 'done');
  test.match(await seen(other.month), { files: 1 });
  test.match(await rowOf(broken.month), { failure_count: 1, last_error: { code: 'damaged' }, lease_expires_at: null });
  test.equal((await outcomes())['damaged'], before + 1);
  const told = logged.filter(({ msg }) => msg === 'files of facts are not merged for now');
  test.match(told, [{ level: 'error', sourceId: broken.month.sourceId, month: '2026-01' }]);
  await run();
  test.equal((await outcomes())['damaged'], before + 1, 'nor is it tried again and again');
});

t.test('two at once merge a month once', async (test) => {
  const { month } = await world();
  await Promise.all([run(), run()]);
  test.match(await seen(month), { files: 1, revision: 17 });
  const claim = claimCompaction(sql.jobs, month);
  await test.rejects(claim, /nothing/);
});
