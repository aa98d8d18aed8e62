import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { Columns } from '../../providers/dataset.ts';
import { contentMonth, factCheck, keepNewest, type StoredFact } from '../facts.ts';
import { layoutOf, schemaOf } from './layout.ts';
import { demandSize, READ_LIMITS } from './limits.ts';

/** What is decoded in one go, by whoever reads the file: some milliseconds. */
const ROWS_A_GROUP = 1_024;

export type WrittenSegment = Readonly<{
  bytes: Uint8Array;
  sha256: string;
  rows: number;
  /** The first and the last time at which one of the facts holds, in milliseconds. */
  minAt: number;
  maxAt: number;
  /** In which all of them lie: YYYY-MM. */
  month: string;
}>;

function spanOf(rows: readonly StoredFact[], of: (fact: StoredFact) => number): [min: number, max: number] {
  return rows.reduce(
    ([min, max], fact) => [Math.min(min, of(fact)), Math.max(max, of(fact))],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
}

/**
 * A Parquet file of facts of one dataset and month, in the order of their keys. Of facts with one key the newest is written. The same
 * facts make the same bytes. Other work gets a turn between groups of rows.
 * @throws FactRefusedError, SegmentTooLargeError where no reader would take it, RangeError where there are none or of two months
 */
export async function writeSegment(columns: Columns, facts: Iterable<StoredFact>): Promise<WrittenSegment> {
  const layout = layoutOf(columns);
  const check = factCheck(columns);
  const newest = new Map<string, StoredFact>();
  let seen = 0;
  for (const fact of facts) {
    check(fact);
    keepNewest(newest, fact);
    seen += 1;
    if (seen % ROWS_A_GROUP === 0) await setImmediate();
  }
  const rows = [...newest.values()].sort((left, right) => (left.key < right.key ? -1 : 1));
  if (rows.length === 0) throw new RangeError('a segment has at least one fact');
  demandSize({ bytes: 0, rows: rows.length }, READ_LIMITS);

  const [minContentAt, maxContentAt] = spanOf(rows, (fact) => fact.contentAt);
  const month = contentMonth(minContentAt);
  if (contentMonth(maxContentAt) !== month) throw new RangeError('the facts of a segment lie in one month');
  const [minAt, maxAt] = spanOf(rows, (fact) => fact.effectiveAt);

  const writer = new ByteWriter();
  const file = new ParquetWriter({ writer, schema: schemaOf(layout), createdBy: 'business-runner' });
  for (let start = 0; start < rows.length; start += ROWS_A_GROUP) {
    const group = rows.slice(start, start + ROWS_A_GROUP);
    const columnData = layout.map(({ name, physical, of }) => ({
      name,
      data: group.map((fact) => physical.pack(of(fact))),
    }));
    await file.write({ columnData, rowGroupSize: ROWS_A_GROUP });
    await setImmediate();
  }
  await file.finish();
  const bytes = writer.getBytes();
  demandSize({ bytes: bytes.length, rows: rows.length }, READ_LIMITS);
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex'), rows: rows.length, minAt, maxAt, month };
}
