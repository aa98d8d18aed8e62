import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import type { Columns } from '../../providers/dataset.ts';
import { factCheck, type StoredFact } from '../facts.ts';
import { type Column, factOf, layoutOf, PARSERS } from './layout.ts';
import { demandSize, READ_LIMITS, type ReadLimits, SegmentDamagedError } from './limits.ts';

/** Facts between two turns of other work (docs/interface.md, 8). */
const FACTS_A_TURN = 128;

export type ReadOptions = Readonly<{ limits?: ReadLimits; signal?: AbortSignal | undefined }>;

/** What the library throws of a file that is none is an error of the file. */
async function reading<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SegmentDamagedError) throw error;
    throw new SegmentDamagedError('unreadable', 'no segment that can be read', { cause: error });
  }
}

function fileOf(bytes: Uint8Array): AsyncBuffer {
  // A Buffer's own `slice` copies nothing, so that its memory would be that of the whole pool.
  const plain = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  return { byteLength: plain.length, slice: (start, end) => plain.slice(start, end).buffer };
}

/** The columns that the file has. @throws SegmentDamagedError where one lacks that it must have, or has another type */
function presentColumns(layout: readonly Column[], metadata: FileMetaData): string[] {
  const present = layout.filter(({ name, physical, isOwn }) => {
    const element = metadata.schema.find((one, index) => index > 0 && one.name === name);
    if (element === undefined && isOwn) return false;
    const { type, converted_type } = physical.element;
    if (element?.type === type && element?.converted_type === converted_type) return true;
    throw new SegmentDamagedError('unreadable', `the segment has no such column ${name}`);
  });
  return present.map(({ name }) => name);
}

/** @throws SegmentDamagedError where they are not all rows */
function rowsOfGroups({ num_rows, row_groups }: FileMetaData): number[] {
  const all = row_groups.reduce((sum, group) => sum + group.num_rows, 0n);
  if (all === num_rows && row_groups.every((group) => group.num_rows >= 0n)) {
    return row_groups.map((group) => Number(group.num_rows));
  }
  throw new SegmentDamagedError('unreadable', 'the rows of the segment do not add up');
}

/**
 * The facts of a file whose digest is known to be right: the library may go round for ever on one that was damaged.
 * @throws as `readSegment`
 */
export async function* factsOf(
  bytes: Uint8Array,
  columns: Columns,
  { limits = READ_LIMITS, signal }: ReadOptions = {},
): AsyncGenerator<readonly StoredFact[]> {
  const layout = layoutOf(columns);
  const check = factCheck(columns);
  demandSize({ bytes: bytes.length, rows: 0 }, limits);
  const file = fileOf(bytes);
  const metadata = await reading(() => parquetMetadataAsync(file, { geoparquet: false }));
  demandSize({ bytes: 0, rows: Number(metadata.num_rows) }, limits);
  const groups = await reading(() => rowsOfGroups(metadata));
  const present = await reading(() => presentColumns(layout, metadata));

  let rowStart = 0;
  for (const rows of groups) {
    const rowEnd = rowStart + rows;
    const read = { file, metadata, columns: present, rowStart, rowEnd, parsers: PARSERS };
    const group = await reading(() => parquetReadObjects(read));
    for (let start = 0; start < rows; start += FACTS_A_TURN) {
      signal?.throwIfAborted();
      yield await reading(() =>
        group.slice(start, start + FACTS_A_TURN).map((row) => {
          const fact = factOf(layout, row);
          check(fact);
          return fact;
        }),
      );
      await setImmediate();
    }
    rowStart = rowEnd;
  }
}

/**
 * Reads the facts of a file, at most 128 at a time, between which other work gets a turn. A column that its schema did not have yet
 * is null.
 * @param sha256 what was recorded of the file
 * @throws SegmentTooLargeError, SegmentDamagedError where it has another digest or is no segment of the dataset, or the signal's
 * reason
 */
export async function* readSegment(
  bytes: Uint8Array,
  columns: Columns,
  sha256: string,
  options: ReadOptions = {},
): AsyncGenerator<readonly StoredFact[]> {
  demandSize({ bytes: bytes.length, rows: 0 }, options.limits ?? READ_LIMITS);
  if (createHash('sha256').update(bytes).digest('hex') !== sha256) {
    throw new SegmentDamagedError('changed', 'the segment has another digest than is recorded');
  }
  yield* factsOf(bytes, columns, options);
}
