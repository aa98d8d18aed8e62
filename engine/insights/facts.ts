import { createHash } from 'node:crypto';
import { formatAmount, isCanonicalAmount, parseAmount } from '../amounts.ts';
import type { Columns, ColumnType, Fact, FactValue } from '../providers/dataset.ts';

// What is stored of a fact, and which of several facts with one key counts (docs/interface.md, 2.14).

const MAX_KEY = 300;
const MAX_TEXT = 200;
const MAX_WORDS = 8_000;
/** The end of the year 9999: later ones have no month of four digits. */
const MAX_TIME = 253_402_300_799_999;
/** Line breaks and whatever else is no character that one sees. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}]/u;
const COLUMN = /^[a-z][A-Za-z0-9_]{0,62}$/;
/** Columns that every fact has, whatever its dataset. */
export const COMMON_COLUMNS = [
  'key',
  'effective_at',
  'content_at',
  'revision',
  'collected_at',
  'unit',
  'deleted',
  'evidence',
] as const;

/** How we know that a fact is gone: the provider answered 404 or 410, or what should list it all no longer had it. */
export const EVIDENCE = ['not_found', 'gone', 'absent'] as const;
export type Evidence = (typeof EVIDENCE)[number];

/** Who collected a fact, and when, in milliseconds. `unit`: the claim. */
export type Collected = Readonly<{ collectedAt: number; unit: string }>;

export type StoredFact = Collected &
  Readonly<{
    key: string;
    effectiveAt: number;
    /** By its month the fact is found again. */
    contentAt: number;
    revision: number | null;
    deleted: boolean;
    /** Of a deleted fact, and of no other. */
    evidence: Evidence | null;
    /** Every column of the dataset; null where nothing is known. Amounts are canonical (`formatAmount`). */
    values: Readonly<Record<string, FactValue>>;
  }>;

/** A fact is not what its dataset says. The value stays out of the error: it is what must not be kept. */
export class FactRefusedError extends Error {
  override name = 'FactRefusedError';
  readonly column: string;
  constructor(column: string, message: string) {
    super(`${column} ${message}`);
    this.column = column;
  }
}

const isTime = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= MAX_TIME;

function lineFault(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return 'is no text';
  if (value.length > maxLength) return `has more than ${maxLength} characters`;
  if (UNPRINTABLE.test(value) || !value.isWellFormed()) return 'is not one line of characters';
  return undefined;
}

function isDay(value: unknown): boolean {
  if (typeof value !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(value)) return false;
  const time = Date.parse(value);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(value);
}

function wordsFault(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'is no text';
  if (value.length > MAX_WORDS) return `has more than ${MAX_WORDS} characters`;
  return value
    .split('\n')
    .map((word) => (word === '' ? 'has an empty word' : lineFault(word, MAX_TEXT)))
    .find((fault) => fault !== undefined);
}

/** What is wrong with a value that is not null. */
const FAULTS: Readonly<Record<ColumnType, (value: unknown) => string | undefined>> = {
  text: (value) => lineFault(value, MAX_TEXT),
  words: wordsFault,
  amount: (value) => (typeof value === 'string' && isCanonicalAmount(value) ? undefined : 'is no canonical amount'),
  count: (value) => (Number.isSafeInteger(value) ? undefined : 'is no whole number'),
  flag: (value) => (typeof value === 'boolean' ? undefined : 'is no flag'),
  time: (value) => (isTime(value) ? undefined : 'is no time'),
  day: (value) => (isDay(value) ? undefined : 'is no day'),
};

function demand(column: string, fault: string | undefined): void {
  if (fault !== undefined) throw new FactRefusedError(column, fault);
}

/**
 * Names that databases take, none twice in any spelling, and none that every fact has.
 * @throws TypeError which names the column
 */
export function checkColumns(columns: Columns): void {
  const taken = new Set<string>(COMMON_COLUMNS);
  for (const name of Object.keys(columns)) {
    if (!COLUMN.test(name)) throw new TypeError(`${JSON.stringify(name)} is no name of a column`);
    if (taken.has(name.toLowerCase())) throw new TypeError(`there is a column ${name} already`);
    taken.add(name.toLowerCase());
  }
}

function checkCommon(fact: StoredFact): void {
  demand('key', fact.key === '' ? 'is empty' : lineFault(fact.key, MAX_KEY));
  demand('unit', fact.unit === '' ? 'is empty' : lineFault(fact.unit, MAX_TEXT));
  demand('effective_at', FAULTS.time(fact.effectiveAt));
  demand('content_at', FAULTS.time(fact.contentAt));
  demand('collected_at', FAULTS.time(fact.collectedAt));
  if (fact.revision !== null) demand('revision', FAULTS.count(fact.revision));
  const knownEvidence = fact.evidence === null || EVIDENCE.includes(fact.evidence);
  demand('evidence', knownEvidence ? undefined : 'is none that counts');
  demand('deleted', fact.deleted === (fact.evidence !== null) ? undefined : 'does not fit its evidence');
}

/** What throws a FactRefusedError where a fact is not what its dataset says. */
export function factCheck(columns: Columns): (fact: StoredFact) => void {
  const own = Object.entries(columns).map(([name, type]) => ({ name, fault: FAULTS[type] }));
  const names = new Set(Object.keys(columns));
  return (fact) => {
    checkCommon(fact);
    for (const { name, fault } of own) {
      const value = Object.hasOwn(fact.values, name) ? fact.values[name] : undefined;
      if (value === undefined) throw new FactRefusedError(name, 'is missing');
      if (value !== null) demand(name, fault(value));
    }
    const unknown = Object.keys(fact.values).find((name) => !names.has(name));
    if (unknown !== undefined) throw new FactRefusedError(unknown.slice(0, 63), 'is no column of the dataset');
  };
}

function canonical(name: string, type: ColumnType | undefined, value: FactValue): FactValue {
  if (type !== 'amount' || typeof value !== 'string') return value;
  try {
    return formatAmount(parseAmount(value));
  } catch {
    throw new FactRefusedError(name, 'is no amount');
  }
}

/**
 * A fact of a provider as it is stored, with its amounts in their one form.
 * @throws FactRefusedError where it is not what its dataset says
 */
export function storedFact(columns: Columns, fact: Fact, collected: Collected): StoredFact {
  const values = Object.entries(fact.values).map(([name, value]) => [
    name,
    canonical(name, Object.hasOwn(columns, name) ? columns[name] : undefined, value),
  ]);
  const stored: StoredFact = {
    key: fact.key,
    effectiveAt: fact.effectiveAt,
    contentAt: fact.contentAt ?? fact.effectiveAt,
    revision: fact.revision,
    collectedAt: collected.collectedAt,
    unit: collected.unit,
    deleted: fact.deleted !== undefined,
    evidence: fact.deleted ?? null,
    values: Object.fromEntries(values),
  };
  factCheck(columns)(stored);
  return stored;
}

/**
 * That a known fact is gone. It keeps the month, by which it is found, and the revision, without which the known one would count
 * before it, but nothing of what was said.
 */
export function withdrawnFact(known: StoredFact, evidence: Evidence, collected: Collected): StoredFact {
  const { collectedAt, unit } = collected;
  const values = Object.fromEntries(Object.keys(known.values).map((name) => [name, null]));
  return { ...known, collectedAt, unit, deleted: true, evidence, values };
}

/** The month that a time lies in, in UTC: YYYY-MM. */
export function contentMonth(contentAt: number): string {
  return new Date(contentAt).toISOString().slice(0, 7);
}

const order = (left: number | string, right: number | string) => (left < right ? -1 : Number(left > right));

/**
 * Above zero where `left` counts before `right`, of one key: by revision, none being older than any, then by when and by whom it was
 * collected. Zero where one claim says both at once: whoever has them in order takes the later one.
 */
export function compareAge(left: StoredFact, right: StoredFact): number {
  return (
    order(left.revision ?? Number.NEGATIVE_INFINITY, right.revision ?? Number.NEGATIVE_INFINITY) ||
    order(left.collectedAt, right.collectedAt) ||
    order(left.unit, right.unit)
  );
}

/** Keeps a fact where none of its key counts before it. */
export function keepNewest(newest: Map<string, StoredFact>, fact: StoredFact): void {
  const known = newest.get(fact.key);
  if (known === undefined || compareAge(fact, known) >= 0) newest.set(fact.key, fact);
}

/** What a fact says as text: null for one that is gone. A column that holds null says as little as one that is not there. */
function saying(fact: StoredFact): string | null {
  if (fact.deleted) return null;
  const said = Object.entries(fact.values).filter(([, value]) => value !== null);
  return JSON.stringify([fact.key, fact.effectiveAt, said.sort(([left], [right]) => order(left, right))]);
}

/** Whether a query sees no difference between two facts, which both may be gone. */
export function saysTheSame(left: StoredFact, right: StoredFact): boolean {
  return left.key === right.key && saying(left) === saying(right);
}

/** SHA-256 of what a query sees of facts that are told one by one: the newest of each key, in the order of keys. */
export function factsHash(): Readonly<{ add(fact: StoredFact): void; hex(): string }> {
  const hash = createHash('sha256');
  return {
    add(fact) {
      const said = saying(fact);
      if (said !== null) hash.update(said).update('\n');
    },
    hex: () => hash.digest('hex'),
  };
}

/**
 * SHA-256 of what a query sees of these facts: the newest of each key unless it is gone, in the order of keys. Who collected them
 * when, and what came before, changes nothing.
 */
export function factsSha256(facts: Iterable<StoredFact>): string {
  const newest = new Map<string, StoredFact>();
  for (const fact of facts) keepNewest(newest, fact);
  const hash = factsHash();
  for (const [, fact] of [...newest].sort(([left], [right]) => order(left, right))) hash.add(fact);
  return hash.hex();
}
