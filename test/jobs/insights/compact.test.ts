import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { createLogger } from '../../../engine/log.ts';
import { type Storage, StorageUnavailableError } from '../../../engine/storage/index.ts';
import { insightsCompact } from '../../../jobs/insights/compact.ts';
import type { JobContext } from '../../../jobs/runner/handler.ts';
import { openServices } from '../../../jobs/runner/services.ts';
import { claimCompaction, endCompactionLease, type Month } from '../../support/compaction_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { createCollected } from '../../support/insight_fixtures.ts';
import { publishAll, publishFacts, seenOf, type Told, tellings } from '../../support/stored_facts.ts';
import { openSql } from '../../support/transitions.ts';
import { collectLog, jobsConfig } from '../support.ts';

const sql = await openSql(t);
const { logged, write } = collectLog();
const config = await jobsConfig(t, sql.url);
const services = openServices(config, createLogger('debug', 'jobs', { destination: { write } }));
t.teardown(() => services.close());
const { storage } = services;

const run = (change: Partial<JobContext> = {}) => {
  const { signal } = new AbortController();
  const addJob = () => Promise.reject(new Error('it adds no job'));
  return insightsCompact({}, { ...services, jobId: '1', attempt: 1, addJob, signal, ...change });
};
const outcomes = async () => {
  const { values } = await services.metrics.insightCompactions.get();
  return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
};
const seen = (month: Month, revision?: number) => seenOf(sql, storage, month, revision);
const rows = async (text: string, ...values: unknown[]) => (await sql.owner.query(text, values)).rows;
const rowOf = async ({ sourceId }: Month) =>
  (await rows('select * from app.insight_compactions where source_id = $1', sourceId))[0];

async function world(told: readonly (readonly Told[])[] = tellings(16)) {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  return { org, place, month: await publishAll(sql, storage, place, told) };
}

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

/** A storage whose `put` does something before or after. */
const putting = (put: Storage['put']): Storage => ({ ...storage, put });
const objects = async ({ organizationId, sourceId }: Month) =>
  (await storage.list(`organizations/${organizationId}/insights/${sourceId}/`)).objects.length;

t.test('a storage that is away leaves the month to the next run', async (test) => {
  const { month } = await world();
  const away = putting(() => Promise.reject(new StorageUnavailableError('down')));
  await test.rejects(run({ storage: away }), StorageUnavailableError);
  test.match(await rowOf(month), { failure_count: 0, lease_expires_at: null });
  test.match(await seen(month), { files: 16, revision: 16 });
  await run();
  test.match(await seen(month), { files: 1, revision: 17 });
});

t.test('a process that stops, before its file is stored or after, gives the month back', async (test) => {
  for (const storesBefore of [false, true]) {
    const { month } = await world();
    const stop = new AbortController();
    const stopping = putting(async (...args) => {
      const stored = storesBefore ? await storage.put(...args) : undefined;
      stop.abort();
      return stored ?? storage.put(...args);
    });
    test.equal(await run({ storage: stopping, signal: stop.signal }), 'unfinished');
    test.match(await rowOf(month), { failure_count: 0, lease_expires_at: null });
    test.match(await seen(month), { files: 16, revision: 16 });
    test.equal(await run(), 'done');
    test.match(await seen(month), { files: 1, revision: 17 });
    test.equal(await objects(month), storesBefore ? 18 : 17, 'a file that nobody names is left for the clean-up');
  }
});

t.test('whoever has lost its lease publishes nothing', async (test) => {
  const { month } = await world();
  const { sha256 } = await seen(month);
  const slow = putting(async (...args) => {
    const stored = await storage.put(...args);
    await endCompactionLease(sql, month);
    return stored;
  });
  const before = (await outcomes())['late'] ?? 0;
  test.equal(await run({ storage: slow }), 'done');
  test.equal((await outcomes())['late'], before + 1);
  test.match(await seen(month), { files: 16, revision: 16, sha256 });
  await run();
  test.match(await rowOf(month), { failure_count: 1, last_error: { code: 'lease_expired' } }, 'the next one sees it');
  await rows('update app.insight_compactions set due_at = now() where source_id = $1', month.sourceId);
  await run();
  test.match(await seen(month), { sha256 });
});

t.test('a file that comes meanwhile keeps what is gone from being left out', async (test) => {
  const { place, month } = await world([...tellings(15), [{ key: 'first', isGone: true }]]);
  let published = false;
  const crossed = putting(async (...args) => {
    if (!published) await publishFacts(sql, storage, place, [{ key: 'new' }]);
    published = true;
    return storage.put(...args);
  });
  await run({ storage: crossed });
  test.match(await seen(month), { files: 17, revision: 17 });
  await run();
  const after = await seen(month);
  test.match(after, { files: 1, revision: 18 });
  test.same([after.facts.has('first'), after.facts.has('new')], [false, true]);
});

t.test('what takes too long is given up, and waits', async (test) => {
  const { month } = await world();
  const stuck = putting((_key, _source, options) => {
    const { promise, reject } = Promise.withResolvers<never>();
    options?.signal?.addEventListener('abort', () => reject(options.signal?.reason));
    return promise;
  });
  const insightCompaction = { ...config.insightCompaction, seconds: 1 };
  await run({ storage: stuck, config: { ...config, insightCompaction } });
  test.match(await rowOf(month), { failure_count: 1, last_error: { code: 'too_slow' } });
});

t.test('two at once merge a month once', async (test) => {
  const { month } = await world();
  await Promise.all([run(), run()]);
  test.match(await seen(month), { files: 1, revision: 17 });
  const claim = claimCompaction(sql.jobs, month);
  await test.rejects(claim, /nothing/);
});
