import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Columns } from '../../providers/dataset.ts';
import { readVerified, type Storage } from '../../storage/index.ts';
import { compareAge, factsHash, type StoredFact, saysTheSame } from '../facts.ts';
import { type ReadLimits, readMonth, readSegment, type StoredSegment, writeSegment } from '../segments/index.ts';

/** Facts between two turns of other work. */
const FACTS_A_TURN = 128;

/** The file does not say what those said that it was made of. */
export class CompactionDiffersError extends Error {
  override name = 'CompactionDiffersError';
}

export type Inputs = Readonly<{
  segments: readonly StoredSegment[];
  /** Those are all of the month: what is gone need not keep older files from telling what was before. */
  isWhole: boolean;
  columns: Columns;
  /** A key that was never used. */
  key(month: string): string;
}>;

export type Merged = Readonly<{
  /** Facts that are gone, and are left out. */
  removed: number;
  /** Null: nothing is left. */
  segment: (StoredSegment & Readonly<{ minAt: number; maxAt: number }>) | null;
}>;

type Options = Readonly<{ limits: ReadLimits; signal: AbortSignal }>;

/** What a query sees of them: SHA-256, in hex. */
async function seenSha256(newest: ReadonlyMap<string, StoredFact>, signal: AbortSignal): Promise<string> {
  const hash = factsHash();
  let hashed = 0;
  for (const key of [...newest.keys()].sort()) {
    const fact = newest.get(key);
    if (fact) hash.add(fact);
    hashed += 1;
    if (hashed % FACTS_A_TURN > 0) continue;
    signal.throwIfAborted();
    await setImmediate();
  }
  return hash.hex();
}

/**
 * Reads what was stored, and compares each fact with the one that it has to be, by age too: a fact that is gone is not seen, and
 * still decides about files that are not among these.
 * @returns what a query sees of it: SHA-256, in hex
 */
async function checkStored(
  storage: Pick<Storage, 'get'>,
  segment: StoredSegment,
  kept: ReadonlyMap<string, StoredFact>,
  { columns, limits, signal }: Options & Readonly<{ columns: Columns }>,
): Promise<string> {
  const bytes = await readVerified(storage, segment, signal);
  const hash = factsHash();
  let facts = 0;
  for await (const some of readSegment(bytes, columns, segment.sha256, { limits, signal })) {
    for (const fact of some) {
      const known = kept.get(fact.key);
      const isKnown = known && compareAge(fact, known) === 0 && fact.deleted === known.deleted;
      if (!isKnown || fact.evidence !== known.evidence || !saysTheSame(fact, known)) {
        throw new CompactionDiffersError('a fact is not what it was');
      }
      hash.add(fact);
    }
    facts += some.length;
  }
  if (facts !== kept.size) throw new CompactionDiffersError(`there are ${facts} facts where ${kept.size} were kept`);
  return hash.hex();
}

async function store(storage: Storage, kept: ReadonlyMap<string, StoredFact>, inputs: Inputs, options: Options) {
  const { columns } = inputs;
  const { bytes, sha256, rows, minAt, maxAt, month } = await writeSegment(columns, kept.values());
  options.signal.throwIfAborted();
  const segment = { key: inputs.key(month), size: bytes.length, sha256, rows, minAt, maxAt };
  await storage.put(segment.key, Readable.from([bytes]), { signal: options.signal });
  return { segment, seen: await checkStored(storage, segment, kept, { ...options, columns }) };
}

/**
 * Merges segments into one, which holds the newest fact of each key, and stores it. It is read back: what a query sees of it has the
 * digest that it had of the segments. Other work has its turns meanwhile.
 * @throws CompactionDiffersError, what `readMonth` and `writeSegment` throw, StorageUnavailableError, or the signal's reason
 */
export async function mergePartition(storage: Storage, inputs: Inputs, options: Options): Promise<Merged> {
  const newest = await readMonth(storage, inputs.segments, inputs.columns, options);
  const before = await seenSha256(newest, options.signal);
  const kept = inputs.isWhole ? new Map([...newest].filter(([, fact]) => !fact.deleted)) : newest;
  const removed = newest.size - kept.size;
  const { segment, seen } =
    kept.size > 0 ? await store(storage, kept, inputs, options) : { segment: null, seen: factsHash().hex() };
  if (seen !== before) throw new CompactionDiffersError('a query would see something else');
  return { removed, segment };
}
