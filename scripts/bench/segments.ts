import { setTimeout } from 'node:timers/promises';
import { type StoredFact, storedFact } from '../../engine/insights/facts.ts';
import { readSegment, type WrittenSegment, writeSegment } from '../../engine/insights/segments/index.ts';
import type { Columns } from '../../engine/providers/dataset.ts';

const COLUMNS: Columns = {
  kind: 'text',
  status: 'text',
  currency: 'text',
  total: 'amount',
  tax: 'amount',
  customer: 'text',
  product: 'text',
  test: 'flag',
  refundedAt: 'time',
};
const MARCH = Date.UTC(2026, 2, 1);
const MEGABYTE = 1024 * 1024;

/** An order of a shop: a thousand products, and each customer comes back four times. */
function order(number: number): StoredFact {
  const at = MARCH + number * 20_000;
  const cents = String((number * 7_919) % 100).padStart(2, '0');
  const values = {
    kind: 'order',
    status: number % 50 === 0 ? 'refunded' : 'paid',
    currency: number % 10 === 0 ? 'EUR' : 'USD',
    total: `${10 + (number % 190)}.${cents}`,
    tax: `${number % 20}.${cents}`,
    customer: Buffer.from(String(number % 25_000))
      .toString('hex')
      .padStart(64, '0'),
    product: String(number % 1_000),
    test: false,
    refundedAt: number % 50 === 0 ? at + 86_400_000 : null,
  };
  const fact = { key: `order:${number}`, effectiveAt: at, revision: at, values };
  return storedFact(COLUMNS, fact, { collectedAt: at, unit: `0199${String(number % 20).padStart(28, '0')}` });
}

export type SegmentTimes = Readonly<{
  writeMs: number;
  readMs: number;
  megabytes: number;
  peakMegabytes: number;
  blockedMs: number;
}>;

async function readBack({ bytes, sha256 }: WrittenSegment): Promise<number> {
  let read = 0;
  for await (const some of readSegment(bytes, COLUMNS, sha256)) read += some.length;
  return read;
}

/**
 * Writes so many facts to one file and reads them: how long each takes, what the process grew by at most beyond the facts that are
 * written, and how long no other work got a turn.
 */
export async function measureSegments(rows: number): Promise<SegmentTimes> {
  const facts = Array.from({ length: rows }, (_, number) => order(number));
  // Once, so that all of it is compiled.
  await readBack(await writeSegment(COLUMNS, facts.slice(0, 5_000)));
  const before = process.memoryUsage.rss();
  let peak = 0;
  let blockedMs = 0;
  let last = performance.now();
  const turns = setInterval(() => {
    blockedMs = Math.max(blockedMs, performance.now() - last);
    last = performance.now();
  }, 1);
  const memory = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss() - before);
  }, 20);
  try {
    const started = performance.now();
    const segment = await writeSegment(COLUMNS, facts);
    const written = performance.now();
    const read = await readBack(segment);
    const end = performance.now();
    await setTimeout(2);
    if (read !== rows) throw new Error(`${read} of ${rows} facts were read`);
    return {
      writeMs: written - started,
      readMs: end - written,
      megabytes: segment.bytes.length / MEGABYTE,
      peakMegabytes: peak / MEGABYTE,
      blockedMs,
    };
  } finally {
    clearInterval(turns);
    clearInterval(memory);
  }
}
