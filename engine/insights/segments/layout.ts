import type { ParquetParsers, SchemaElement } from 'hyparquet';
import type { Columns, ColumnType, FactValue } from '../../providers/dataset.ts';
import { checkColumns, type Evidence, type StoredFact } from '../facts.ts';

// How facts lie in a Parquet file: a row each, with the columns that all facts have before those of the dataset.

type Physical = Readonly<{
  element: Omit<SchemaElement, 'name' | 'repetition_type'>;
  pack(value: FactValue): unknown;
  /** Of whatever the library read; what it makes of it is checked with the fact. */
  unpack(value: unknown): unknown;
}>;

/** Milliseconds without a zone: DuckDB's TIMESTAMP. */
const TIMESTAMP = { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' } as const;
const same = (value: unknown) => value;
const pack64 = (value: FactValue) => (value === null ? null : BigInt(value));
const unpack64 = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
const TEXT: Physical = { element: { type: 'BYTE_ARRAY', converted_type: 'UTF8' }, pack: same, unpack: same };

/** Amounts are text: Parquet's decimals have 38 digits as ours, but no reader in JavaScript that keeps them. */
const PHYSICAL: Readonly<Record<ColumnType, Physical>> = {
  text: TEXT,
  words: TEXT,
  amount: TEXT,
  day: TEXT,
  count: { element: { type: 'INT64' }, pack: pack64, unpack: unpack64 },
  flag: { element: { type: 'BOOLEAN' }, pack: same, unpack: same },
  time: { element: TIMESTAMP, pack: pack64, unpack: unpack64 },
};

export type Column = Readonly<{
  name: string;
  physical: Physical;
  isRequired: boolean;
  /** One of the dataset: a file that was written before it came to be has none, and all its facts hold null. */
  isOwn: boolean;
  of(fact: StoredFact): FactValue;
}>;

const common = (name: string, type: ColumnType, of: (fact: StoredFact) => FactValue, isRequired = true): Column => ({
  name,
  physical: PHYSICAL[type],
  isRequired,
  isOwn: false,
  of,
});

const COMMON: readonly Column[] = [
  common('key', 'text', (fact) => fact.key),
  common('effective_at', 'time', (fact) => fact.effectiveAt),
  common('content_at', 'time', (fact) => fact.contentAt),
  common('revision', 'count', (fact) => fact.revision, false),
  common('collected_at', 'time', (fact) => fact.collectedAt),
  common('unit', 'text', (fact) => fact.unit),
  common('deleted', 'flag', (fact) => fact.deleted),
  common('evidence', 'text', (fact) => fact.evidence, false),
];

/** The columns of a file in their order. @throws TypeError where a name is taken or none */
export function layoutOf(columns: Columns): readonly Column[] {
  checkColumns(columns);
  const own = Object.entries(columns).map(
    ([name, type]): Column => ({
      name,
      physical: PHYSICAL[type],
      isRequired: false,
      isOwn: true,
      of: (fact) => fact.values[name] ?? null,
    }),
  );
  return [...COMMON, ...own];
}

export function schemaOf(layout: readonly Column[]): SchemaElement[] {
  const elements = layout.map(
    ({ name, physical, isRequired }): SchemaElement => ({
      name,
      ...physical.element,
      repetition_type: isRequired ? 'REQUIRED' : 'OPTIONAL',
    }),
  );
  return [{ name: 'facts', num_children: elements.length }, ...elements];
}

/** As the library's, but times stay numbers, and a text keeps a mark of byte order that it begins with. */
export const PARSERS: Partial<ParquetParsers> = {
  timestampFromMilliseconds: (millis) => millis,
  stringFromBytes: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
};

/** The fact of a row, unchecked. */
export function factOf(layout: readonly Column[], row: Readonly<Record<string, unknown>>): StoredFact {
  const read = (name: string, physical: Physical) => physical.unpack(row[name] ?? null);
  const values = layout.filter(({ isOwn }) => isOwn).map(({ name, physical }) => [name, read(name, physical)]);
  const time = (name: string) => read(name, PHYSICAL.time) as number;
  return {
    key: read('key', TEXT) as string,
    effectiveAt: time('effective_at'),
    contentAt: time('content_at'),
    revision: read('revision', PHYSICAL.count) as number | null,
    collectedAt: time('collected_at'),
    unit: read('unit', TEXT) as string,
    deleted: read('deleted', PHYSICAL.flag) as boolean,
    evidence: read('evidence', TEXT) as Evidence | null,
    values: Object.fromEntries(values),
  };
}
