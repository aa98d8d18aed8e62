// What a compaction leaves wherever it breaks off: the month as it was, for the next one.
import t from 'tap';
import { StorageUnavailableError } from '../../../../engine/storage/index.ts';
import { openCompactor } from '../../../jobs/insights/compacting.ts';
import { endCompactionLease } from '../../../support/compaction_fixtures.ts';
import { publishFacts, tellings } from '../../../support/stored_facts.ts';
import { openSql } from '../../../support/transitions.ts';

const sql = await openSql(t);
const { config, objects, outcomes, putting, rowOf, rows, run, seen, storage, world } = await openCompactor(t, sql);

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
