import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import t from 'tap';
import { mergePartition } from '../../../engine/insights/compaction/index.ts';
import { factsSha256, type StoredFact, withdrawnFact } from '../../../engine/insights/facts.ts';
import {
  READ_LIMITS,
  readMonth,
  SegmentTooLargeError,
  type StoredSegment,
  writeSegment,
} from '../../../engine/insights/segments/index.ts';
import {
  openStorage,
  type Storage,
  StorageBrokenError,
  StorageUnavailableError,
} from '../../../engine/storage/index.ts';
import { openFolder } from '../../support/folders.ts';
import { rounds } from '../../support/full.ts';
import { COLUMNS, order, orders } from './segments/support.ts';

const folder = await openFolder(t);
const storage = openStorage(pathToFileURL(folder).href);
const signal = new AbortController().signal;
const options = { limits: READ_LIMITS, signal };
let files = 0;
const nextKey = () => {
  files += 1;
  return `insights/${files}.parquet`;
};

async function put(facts: readonly StoredFact[]): Promise<StoredSegment> {
  const { bytes, sha256, rows } = await writeSegment(COLUMNS, facts);
  const segment = { key: nextKey(), size: bytes.length, sha256, rows };
  await storage.put(segment.key, Readable.from([bytes]));
  return segment;
}

const merge = (segments: readonly StoredSegment[], isWhole: boolean, from: Storage = storage) =>
  mergePartition(from, { segments, isWhole, columns: COLUMNS, key: nextKey }, options);
const read = (segments: readonly StoredSegment[]) => readMonth(storage, segments, COLUMNS);
const seen = async (segments: readonly StoredSegment[]) => factsSha256((await read(segments)).values());
const later = { collectedAt: Date.UTC(2026, 4, 1), unit: 'unit-2' };

t.test('one file holds the newest fact of each key, and a query sees what it saw', async (t) => {
  const segments = [
    await put(orders(0, 300)),
    await put(orders(200, 500).map((fact) => ({ ...fact, ...later, effectiveAt: fact.effectiveAt + 1 }))),
  ];
  const before = await seen(segments);
  const { removed, segment } = await merge(segments, true);
  t.match({ removed, rows: segment?.rows }, { removed: 0, rows: 500 });
  t.equal(segment && (await seen([segment])), before);
  t.end();
});

t.test('what is gone is kept in a part, for it decides about older files, and left out of a whole', async (t) => {
  const gone = withdrawnFact(order(1), 'not_found', later);
  const older = await put([order(1), order(2)]);
  const newer = [await put([gone, order(3)]), await put([order(4)])];
  const part = await merge(newer, false);
  t.match(part, { removed: 0, segment: { rows: 3 } });
  const all = part.segment ? [older, part.segment] : [];
  t.equal(await seen(all), await seen([older, ...newer]));
  t.same((await read(all)).get(gone.key), gone, 'with its evidence');
  const whole = await merge(all, true);
  t.match(whole, { removed: 1, segment: { rows: 3 } });
  t.equal(whole.segment && (await seen([whole.segment])), await seen(all));
  t.match(await merge([await put([order(1)]), await put([gone])], true), { removed: 1, segment: null });
});

/** One step of a month: a unit collects facts, which are published, staged until later, or a compaction takes so many files. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('publish', 'stage'), facts: factsOfUnit() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('publishStaged') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('compact'), files: fc.integer({ min: 2, max: 6 }) }) },
);

function factsOfUnit() {
  return fc.uniqueArray(
    fc.record({
      number: fc.integer({ min: 0, max: 7 }),
      total: fc.constantFrom('1', '2.5', '-3'),
      isGone: fc.boolean(),
      revision: fc.option(fc.integer({ min: 0, max: 3 }), { nil: null }),
    }),
    { selector: ({ number }) => number, minLength: 1, maxLength: 4 },
  );
}

t.test('whatever has happened, a compaction changes nothing that is read', async (t) => {
  let compactions = 0;
  let dropped = 0;
  const history = fc.record({ inOrder: fc.boolean(), steps: fc.array(step, { minLength: 4, maxLength: 14 }) });
  await fc.assert(
    fc.asyncProperty(history, async ({ inOrder, steps }) => {
      let [live, staged]: [StoredSegment[], StoredSegment[]] = [[], []];
      /** As if there were no compaction. */
      let [published, waiting]: [StoredFact[], StoredFact[]] = [[], []];
      for (const [index, one] of steps.entries()) {
        if ('facts' in one) {
          const collected = { collectedAt: Date.UTC(2026, 3, 1) + index, unit: `unit-${index}` };
          const facts = one.facts.map(({ number, total, isGone, revision }) => {
            const values = { status: 'paid', total, items: 1, paid: true, refundedAt: null, onDay: null };
            const fact = order(number, { revision: inOrder ? null : revision, values }, collected);
            return isGone ? withdrawnFact(fact, 'absent', collected) : fact;
          });
          const segment = await put(facts);
          if (one.kind === 'publish')
            [live, published] = [
              [...live, segment],
              [...published, ...facts],
            ];
          else
            [staged, waiting] = [
              [...staged, segment],
              [...waiting, ...facts],
            ];
        } else if ('files' in one) {
          const inputs = live.slice(0, one.files);
          if (inputs.length < 2) continue;
          const isWhole = inputs.length === live.length && staged.length === 0;
          const before = await seen(live);
          const { removed, segment } = await merge(inputs, isWhole);
          live = [...live.slice(inputs.length), ...(segment ? [segment] : [])];
          if ((await seen(live)) !== before) return false;
          compactions += 1;
          dropped += removed;
        } else {
          [live, staged] = [[...live, ...staged], []];
          [published, waiting] = [[...published, ...waiting], []];
        }
      }
      // A fact that comes late with an older revision is another matter: nobody knows any more that it was gone.
      return !inOrder || (await seen(live)) === factsSha256(published);
    }),
    { seed: 20260, numRuns: rounds({ short: 60, full: 1_000 }) },
  );
  t.ok(compactions > 30 && dropped > 10, `${compactions} compactions left out ${dropped} facts`);
});

t.test('a file that is damaged or gone is merged with nothing', async (t) => {
  const good = await put([order(1)]);
  const changed = await put([order(2)]);
  const place = path.join(folder, changed.key);
  const bytes = await readFile(place);
  bytes[20] = (bytes[20] ?? 0) ^ 1;
  await writeFile(place, bytes);
  const before = files;
  await t.rejects(merge([good, changed], true), StorageBrokenError);
  const missing = await put([order(3)]);
  await storage.delete(missing.key);
  await t.rejects(merge([good, missing], true), StorageBrokenError);
  await t.rejects(merge([good, { ...good, rows: 2 }], true), { name: 'SegmentDamagedError' });
  t.equal(files, before + 1, 'and no file is begun');
});

t.test('what is read back has to be what was meant', async (t) => {
  const segments = [await put([order(1)]), await put([order(2)])];
  const spoiled = (change: (bytes: Uint8Array) => Promise<Uint8Array>): Storage => ({
    ...storage,
    put: async (key, source, given) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of source) chunks.push(chunk);
      return storage.put(key, Readable.from([await change(Buffer.concat(chunks))]), given);
    },
  });
  const cut = spoiled(async (bytes) => bytes.subarray(0, -1));
  await t.rejects(merge(segments, true, cut), StorageBrokenError);
  const full: Storage = {
    ...storage,
    put: () => Promise.reject(new StorageUnavailableError('down')),
  };
  await t.rejects(merge(segments, true, full), StorageUnavailableError);
});

t.test('limits hold for all files together, and a signal ends it', async (t) => {
  const segments = [await put(orders(0, 20)), await put(orders(10, 30))];
  const inputs = { segments, isWhole: true, columns: COLUMNS, key: nextKey };
  await t.rejects(
    mergePartition(storage, inputs, { ...options, limits: { ...READ_LIMITS, rows: 39 } }),
    SegmentTooLargeError,
  );
  const reason = new Error('stop');
  await t.rejects(mergePartition(storage, inputs, { ...options, signal: AbortSignal.abort(reason) }), reason);
});
