import type { INSIGHT_CURSOR_MODES, INSIGHT_ENVIRONMENTS } from '../insight_states.ts';
import type { Access, ProviderContext } from './context.ts';

// Facts that are collected from a connection (docs/interface.md, 2.14), and how they are requested from a provider.

/**
 * What a column holds: `text`, a key or a word of a closed set, never a sentence; `words`, several of them, a line each; `amount`, a
 * decimal in major units (`amounts.ts`); `count`, a whole number; `time`, milliseconds since 1970; `day`, YYYY-MM-DD in the time zone of
 * the source.
 */
export type ColumnType = 'text' | 'words' | 'amount' | 'count' | 'flag' | 'time' | 'day';
export type Columns = Readonly<Record<string, ColumnType>>;
export type FactValue = string | number | boolean | null;

/** A fact as a provider reports it. It has the columns of its dataset, and no others. */
export type Fact = Readonly<{
  /** Identifies it in its source, and stays the same when it changes. At most 300 characters. */
  key: string;
  /** The time it is about, in milliseconds. */
  effectiveAt: number;
  /** Decides which month it is stored in: a time of it that never changes (default: `effectiveAt`). */
  contentAt?: number;
  /** The provider's own version of it: a sequence, or milliseconds; the highest counts. Null: the provider has none. */
  revision: number | null;
  values: Readonly<Record<string, FactValue>>;
  /** How the provider reports that it no longer exists; undefined: it does. */
  deleted?: 'not_found' | 'gone' | undefined;
}>;

/** A stretch of a source's time, in milliseconds, its end excluded. */
export type Interval = Readonly<{ start: number; end: number }>;
export const COVERAGE_STATES = ['complete', 'partial', 'suppressed', 'unavailable'] as const;
export type CoverageState = (typeof COVERAGE_STATES)[number];
/** `reason`: the provider's, as a word. */
export type Covered = Interval & Readonly<{ state: CoverageState; reason?: string | undefined }>;

/**
 * `tail`: what is new or changed, again and again. `backfill`: the past, once, its newest month first. `rescan`: all of it, for changes
 * that the tail cannot see.
 */
export type CollectMode = (typeof INSIGHT_CURSOR_MODES)[number];

/** The result of one request. */
export type FactPage = Readonly<{
  /** How many the provider sent, before any was left out. */
  records: number;
  bytes: number;
  facts: readonly Fact[];
  /** Where the page that follows begins; where `done`, the next round of this mode. It fits into 8 KiB of JSON. */
  cursor: unknown;
  /** There is no more for now. */
  done: boolean;
  /** The page has all facts of this time: known ones that it lacks no longer exist. */
  exhaustive?: Interval | undefined;
  /** What is known by now that was not before this page. */
  covered?: readonly Covered[];
  /** Of a rescan: how many the provider says there are, now. */
  total?: number | undefined;
}>;

/** A thing of the provider that has facts, as its account sees it. With another zone it is another source. */
export type FoundSource = Readonly<{
  resourceId: string;
  environment: (typeof INSIGHT_ENVIRONMENTS)[number];
  /** IANA; null: the provider has none, and that of the organization is taken. */
  timezone: string | null;
}>;

export type DiscoverCall<C = unknown, S = unknown> = Readonly<{ context: ProviderContext; access: Access<C, S> }>;

export type CollectCall<C = unknown, S = unknown> = DiscoverCall<C, S> &
  Readonly<{
    source: FoundSource & Readonly<{ timezone: string }>;
    mode: CollectMode;
    /** Of an earlier page; null: from the beginning. */
    cursor: unknown;
    now: Date;
    /** What stands for an id of a customer: another word in each organization, and no way back. */
    pseudonym(id: string): string;
  }>;

/** When a mode is due again, once a round is done: after so many seconds, or at the next midnight of the source. */
export type Rhythm = Readonly<{ everySeconds: number }> | 'midnight';

/** How the facts of one dataset are collected. */
export type DatasetAdapter<C = unknown, S = unknown> = Readonly<{
  /** With another one everything is collected anew. */
  version: number;
  columns: Columns;
  /** Rises with the columns. */
  schemaVersion: number;
  rhythm: Readonly<{ tail: Rhythm; rescan?: Rhythm; backfill?: true }>;
  /** Fields of a cursor that a round keeps when it has to start over: what earlier rounds have collected. `collect` accepts them alone. */
  lasting?: readonly string[];
  /** A snapshot: the facts of a round are published together, when it is done. */
  isSnapshot?: boolean;
  /** Whether a rescan reports this fact as long as it exists (default: all). The absence of others means nothing. */
  isRescanned?(values: Fact['values']): boolean;
  /** Those that the settings allow. @throws ProviderError */
  discover(call: DiscoverCall<C, S>): Promise<readonly FoundSource[]>;
  /**
   * Requests page by page. The caller may stop after any page, and continue from its cursor later, in another process.
   * @throws ProviderError; CursorMovedError where the round has to start over
   */
  collect(call: CollectCall<C, S>): AsyncIterable<FactPage>;
}>;

/** The cursor leads nowhere any more: the round starts over, and what it has staged is dropped. */
export class CursorMovedError extends Error {
  override name = 'CursorMovedError';
}

export type Dataset<C = unknown, S = unknown> = Readonly<{
  key: string;
  /** All of them have to be granted. */
  scopes: readonly string[];
  adapter?: DatasetAdapter<C, S>;
}>;
