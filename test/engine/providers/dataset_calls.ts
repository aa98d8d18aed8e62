import { createHmac } from 'node:crypto';
import { storedFact } from '../../../engine/insights/facts.ts';
import {
  COVERAGE_STATES,
  type CollectMode,
  type Covered,
  type DatasetAdapter,
  type Fact,
  type FactPage,
  type FoundSource,
} from '../../../engine/providers/dataset.ts';
import type { Provider, ProviderContext } from '../../../engine/providers/index.ts';
import type { Connected } from './tool_calls.ts';

// Calls datasets as the collector does: page by page, also by a process that knows no more than the stored cursor.

export type Source = FoundSource & Readonly<{ timezone: string }>;

export type RoundOptions = Readonly<{
  source: Source;
  mode: CollectMode;
  now: Date;
  cursor?: unknown;
  /** Each page is asked for by another process. */
  resumes?: boolean;
  /** Runs before the next page is asked for. */
  afterPage?: (page: FactPage, number: number) => unknown;
}>;

export type Round = Readonly<{
  pages: readonly FactPage[];
  facts: readonly Fact[];
  covered: readonly Covered[];
  /** Where the next round begins. */
  cursor: unknown;
}>;

const MAX_PAGES = 1_000;
const MAX_CURSOR_BYTES = 8 * 1024;

/** Stands for an id in the organization of the tests. */
export const pseudonym = (id: string) => createHmac('sha256', 'a key of the tests').update(id).digest('base64url');

/** What the collector relies on of each page. @throws where a page breaks it */
function check(adapter: DatasetAdapter, page: FactPage): FactPage {
  const fail = (what: string, of: unknown) => {
    throw new Error(`${what}: ${JSON.stringify(of)}`);
  };
  if (!Number.isSafeInteger(page.records) || page.records < 0) fail('records', page.records);
  if (!Number.isSafeInteger(page.bytes) || page.bytes < 0) fail('bytes', page.bytes);
  for (const fact of page.facts) storedFact(adapter.columns, fact, { collectedAt: 0, unit: 'unit' });
  for (const covered of page.covered ?? []) {
    if (!(covered.start < covered.end) || !COVERAGE_STATES.includes(covered.state)) fail('covered', covered);
  }
  if (page.exhaustive && !(page.exhaustive.start < page.exhaustive.end)) fail('exhaustive', page.exhaustive);
  if (JSON.stringify(page.cursor ?? null).length > MAX_CURSOR_BYTES) fail('cursor', page.cursor);
  return page;
}

/** The cursor as it comes back from storage. */
const stored = (cursor: unknown): unknown => JSON.parse(JSON.stringify(cursor ?? null));

export function datasetOf(provider: Provider, key: string, connected: Connected) {
  const { client, credential, settings, signal, deploymentClient } = connected;
  const found = provider.datasets.find((dataset) => dataset.key === key)?.adapter;
  if (!found) throw new Error(`${key} has no adapter`);
  const adapter = found;
  const context: ProviderContext = { client, account: 'i1', signal, deploymentClient };
  const call = { context, access: { credential, settings } };

  async function* pagesOf(options: RoundOptions): AsyncGenerator<FactPage, void, void> {
    const { source, mode, now, resumes = false } = options;
    let cursor = stored(options.cursor);
    for (;;) {
      let last: FactPage | undefined;
      for await (const page of adapter.collect({ ...call, source, mode, cursor, now, pseudonym })) {
        if (last?.done) throw new Error('a page comes after the last one');
        last = check(adapter, page);
        yield page;
        if (resumes) break;
      }
      if (last?.done) return;
      if (!last || !resumes) throw new Error('the pages end before the round is done');
      cursor = stored(last.cursor);
    }
  }

  return {
    adapter,
    discover: () => adapter.discover(call),
    /** The only source, in this zone where it has none. */
    async source(timezone = 'Europe/Berlin'): Promise<Source> {
      const [source, ...more] = await adapter.discover(call);
      if (!source || more.length > 0) throw new Error(`${more.length + (source ? 1 : 0)} sources`);
      return { ...source, timezone: source.timezone ?? timezone };
    },
    /** @throws ProviderError, CursorMovedError */
    async round(options: RoundOptions): Promise<Round> {
      const pages: FactPage[] = [];
      for await (const page of pagesOf(options)) {
        pages.push(page);
        if (pages.length > MAX_PAGES) throw new Error('the round does not end');
        await options.afterPage?.(page, pages.length);
      }
      return {
        pages,
        facts: pages.flatMap(({ facts }) => facts),
        covered: pages.flatMap(({ covered = [] }) => covered),
        cursor: stored(pages.at(-1)?.cursor),
      };
    },
  };
}

/** What is known after all of the facts: of each key the newest one, as the collector orders them. */
export function known(facts: readonly Fact[]): ReadonlyMap<string, Fact> {
  const newest = new Map<string, Fact>();
  for (const fact of facts) {
    const before = newest.get(fact.key);
    if (before && (before.revision ?? 0) > (fact.revision ?? 0)) continue;
    newest.set(fact.key, fact);
  }
  return newest;
}

export const keysOf = ({ facts }: Pick<Round, 'facts'>): string[] => [...known(facts).keys()].sort();

/** What is said to be known, from the newest on, as one interval. @throws where there is a gap, or not all is complete */
export function extent(covered: readonly Covered[]) {
  for (const [index, { start, state }] of covered.entries()) {
    if (state !== 'complete') throw new Error(state);
    const next = covered[index + 1];
    if (next && next.end !== start) throw new Error('there is a gap');
  }
  return { start: covered.at(-1)?.start, end: covered[0]?.end };
}
