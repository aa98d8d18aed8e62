import { z } from 'zod';
import { call, ignored } from '../../db/call.ts';
import { Problem } from '../../db/problem.ts';
import { type Integrations, integrationProblem, type OpenConnection, useConnection } from '../../integrations/index.ts';
import { CursorMovedError, type DatasetAdapter } from '../../providers/dataset.ts';
import { ProviderError } from '../../providers/outgoing/index.ts';
import { zoneName } from '../../schedules/index.ts';
import { SecretError } from '../../secrets/index.ts';
import type { Storage } from '../../storage/index.ts';
import { adapterFacts, adapterOf, collectedOf } from '../adapters.ts';
import { layCoverage } from '../coverage.ts';
import { FactRefusedError } from '../facts.ts';
import { pseudonymsOf } from '../pseudonyms.ts';
import { nextDue } from '../rhythm.ts';
import { changesOf } from './changes.ts';
import { type CollectUnit, leaseOf, type Unit } from './claim.ts';
import { type Gathered, type GatherLimits, gather } from './gather.ts';
import { endScan, seenFacts } from './scan.ts';
import { storeSegments } from './store.ts';

export type CollectLimits = GatherLimits & Readonly<{ perOrganization: number }>;

export type Collecting = Readonly<{
  integrations: Integrations;
  storage: Storage;
  limits: CollectLimits;
}>;

/** How a unit ended: `committed`, with what was new in it; `discarded`, what it was claimed for has changed; `late`: its lease is over. */
export type UnitOutcome = Readonly<{
  outcome: 'committed' | 'discarded' | 'failed' | 'released' | 'late';
  changed: number;
  code?: string;
}>;

/** Until sources are looked for again, without a change of the connection or its settings. */
const DISCOVERY_SECONDS = 86_400;
/** Behind the unit itself: refreshing tokens, and what the last request takes to be broken off. */
const GRACE_MS = 30_000;

const committedSchema = z.object({ committed: z.boolean() });

/** What collected it failed by, as it is recorded: none of a provider's own words. */
function failureOf(error: unknown): Failure | undefined {
  // Adapters read nothing but cursors by schemas that throw this.
  if (error instanceof CursorMovedError || error instanceof z.ZodError)
    return { code: 'cursor_moved', message: 'The round begins anew.', restart: true };
  if (error instanceof FactRefusedError) return { code: 'fact_refused', message: error.message };
  if (error instanceof SecretError) return { code: 'encryption_key_missing', message: error.message, isOurs: true };
  if (error instanceof ProviderError) {
    const { reason, message, isOurs, retryNotBefore } = error;
    const code = isOurs && reason === 'rate_limited' ? 'throttled' : `provider_${reason}`;
    return { code, message, isOurs: isOurs || reason === 'rate_limited', retryNotBefore };
  }
  const problem = integrationProblem(error);
  if (problem instanceof Problem) return { code: problem.code, message: problem.message, isOurs: true };
  return undefined;
}
type Failure = Readonly<{
  code: string;
  message: string;
  isOurs?: boolean;
  restart?: boolean;
  retryNotBefore?: Date | undefined;
}>;
/** Something of ours: it waits as what a provider fails does, so that it is not tried for ever. */
const UNEXPECTED: Failure = { code: 'internal_error', message: 'It could not be collected; the log says why.' };

const targetOf = ({ organizationId, integrationId, connectionRevision: revision }: Unit) => {
  return { organizationId, integrationId, revision };
};

/** The scopes that a dataset needs are granted; null: the provider tells none. */
function isGranted(scopes: readonly string[], { grantedScopes }: OpenConnection): boolean {
  return grantedScopes === null || scopes.every((scope) => grantedScopes.includes(scope));
}

/** A provider may name a zone that nobody else knows: then it has none. */
const isZone = (timezone: string | null) => timezone !== null && zoneName(timezone) !== undefined;

async function discoverSources({ integrations, limits }: Collecting, unit: Unit, signal: AbortSignal) {
  const { organizationId } = unit;
  const sources = await useConnection(
    integrations,
    targetOf(unit),
    async (connection) => {
      const { provider, context, access } = connection;
      const found: unknown[] = [];
      for (const { key, scopes, adapter } of collectedOf(provider.key)) {
        if (!isGranted(scopes, connection)) continue;
        const facts = adapterFacts(adapter);
        for (const { timezone, ...source } of await adapter.discover({ context, access })) {
          found.push({ dataset: key, ...source, timezone: isZone(timezone) ? timezone : null, ...facts });
        }
      }
      return found;
    },
    { signal, withinMs: limits.ms + GRACE_MS },
  );
  const args = { ...leaseOf(unit), sources, nextSeconds: DISCOVERY_SECONDS };
  const { committed } = await call(integrations.db.of(organizationId), 'insight_sources_put', args, committedSchema);
  return { committed, changed: 0 };
}

function askPages(
  { integrations, limits }: Collecting,
  unit: CollectUnit,
  adapter: DatasetAdapter,
  pseudonym: (id: string) => string,
  signal: AbortSignal,
): Promise<Gathered> {
  const { resourceId, environment, timezone } = unit.source;
  return useConnection(
    integrations,
    targetOf(unit),
    ({ context, access }) => {
      const over = AbortSignal.timeout(limits.ms);
      const ending = AbortSignal.any([over, ...(context.signal ? [context.signal] : [])]);
      const pages = adapter.collect({
        context: { ...context, signal: ending },
        access,
        source: { resourceId, environment, timezone },
        mode: unit.mode,
        cursor: unit.cursor,
        now: new Date(),
        pseudonym,
      });
      return gather(pages, limits, ending).catch((error: unknown) => {
        if (!over.aborted || context.signal?.aborted) throw error;
        throw new ProviderError(unit.provider, 'unavailable', 'The provider did not respond in time.');
      });
    },
    { signal, withinMs: limits.ms + GRACE_MS },
  );
}

/** Where a round begins that has to begin anew: what earlier ones have told stays. */
function begunAnew(adapter: DatasetAdapter | undefined, cursor: unknown): unknown {
  const { lasting = [] } = adapter ?? {};
  const { success, data } = z.record(z.string(), z.unknown()).safeParse(cursor);
  const kept = success ? lasting.flatMap((name) => (data[name] == null ? [] : [[name, data[name]] as const])) : [];
  return kept.length > 0 ? Object.fromEntries(kept) : null;
}

async function collect(collecting: Collecting, unit: CollectUnit, signal: AbortSignal) {
  const { integrations, storage } = collecting;
  const { organizationId, source, mode } = unit;
  const adapter = adapterOf(unit.provider, source.dataset);
  if (!adapter) throw new Error(`no adapter collects ${source.dataset}`);
  const { db, settings } = integrations;
  const pseudonym = await pseudonymsOf(db, settings.encryptionKeys, organizationId);
  const gathered = await askPages(collecting, unit, adapter, pseudonym, signal);
  const failure = gathered.error === undefined ? undefined : failureOf(gathered.error);
  if (gathered.error !== undefined && !failure) throw gathered.error;
  const isSnapshot = adapter.isSnapshot === true;
  const kept = { db, storage };
  const collected = { collectedAt: Date.now(), unit: unit.id };
  const seen = seenFacts(unit, gathered.facts, collected);
  const { round, withdrawn } = await endScan(kept, unit, adapter, { gathered, last: seen, collected });
  const facts = [...(await changesOf(kept, unit, adapter, gathered, collected)), ...withdrawn];
  const isSeenKept = seen.length > 0 && !gathered.done;
  const segments = [
    ...(await storeSegments(storage, unit, adapter.columns, facts, { staged: isSnapshot })),
    ...(isSeenKept ? await storeSegments(storage, unit, {}, seen, { staged: true, isSeen: true }) : []),
  ];
  const result = {
    pages: gathered.pages,
    records: gathered.records,
    bytes: gathered.bytes,
    changed: facts.length,
    cursor: failure?.restart ? begunAnew(adapter, gathered.cursor) : (gathered.cursor ?? null),
    round: failure?.restart ? null : round,
    done: gathered.done,
    nextDueAt: gathered.done ? (nextDue(adapter, mode, source.timezone, new Date())?.toISOString() ?? null) : null,
    coverage: layCoverage(source.coverage, gathered.covered).map(({ start, end, ...rest }) => ({
      start: new Date(start).toISOString(),
      end: new Date(end).toISOString(),
      ...rest,
    })),
    segments,
    publishStaged: isSnapshot && gathered.done,
    dropStaged: failure?.restart === true || (!isSnapshot && mode === 'rescan' && gathered.done),
    ...(failure ? { error: { code: failure.code, message: failure.message, isOurs: failure.isOurs ?? false } } : {}),
    retryNotBefore: failure?.retryNotBefore?.toISOString() ?? null,
  };
  const args = { ...leaseOf(unit), result };
  const { committed } = await call(db.of(organizationId), 'insight_unit_commit', args, committedSchema);
  return { committed, changed: facts.length };
}

async function fail({ integrations }: Collecting, unit: Unit, failure: Failure): Promise<void> {
  const { code, message, isOurs = false, retryNotBefore } = failure;
  const adapter = unit.source ? adapterOf(unit.provider, unit.source.dataset) : undefined;
  const args = {
    ...leaseOf(unit),
    error: { code, message, isOurs },
    retryNotBefore: retryNotBefore?.toISOString() ?? null,
    restart: failure.restart ? { cursor: begunAnew(adapter, unit.cursor) } : null,
  };
  await call(integrations.db.of(unit.organizationId), 'insight_unit_fail', args, ignored);
}

/** Its lease is over, and another process may be at work: what it has found is left. */
function isLate(error: unknown): boolean {
  return error instanceof Problem && error.code === 'state_conflict';
}

/**
 * Does what a unit was claimed for: looks for sources, or asks for facts until the unit is full, stores them, and commits them with the
 * cursor behind them. Whatever ends it, the connector is given back; a process that dies leaves a lease that ends.
 * @throws what is neither the provider's nor the connection's fault, with the unit given back
 */
export async function runUnit(collecting: Collecting, unit: Unit, signal: AbortSignal): Promise<UnitOutcome> {
  const { integrations } = collecting;
  const queries = integrations.db.of(unit.organizationId);
  try {
    const run =
      unit.mode === 'discovery' ? discoverSources(collecting, unit, signal) : collect(collecting, unit, signal);
    const { committed, changed } = await run;
    return { outcome: committed ? 'committed' : 'discarded', changed };
  } catch (error) {
    if (isLate(error)) return { outcome: 'late', changed: 0 };
    const failure = failureOf(error);
    const ended = signal.aborted
      ? call(queries, 'insight_unit_release', leaseOf(unit), ignored)
      : fail(collecting, unit, failure ?? UNEXPECTED);
    await ended.catch((cause: unknown) => {
      if (!isLate(cause)) throw cause;
    });
    if (signal.aborted) return { outcome: 'released', changed: 0 };
    if (failure) return { outcome: 'failed', changed: 0, code: failure.code };
    throw error;
  }
}
