import type { Logger } from 'pino';
import { z } from 'zod';
import { call, ignored, type Queries } from '../../engine/db/call.ts';
import { PULL_CHANNEL, pulledFrom } from '../../engine/db/channels.ts';
import type { Listener } from '../../engine/db/listen.ts';
import type { Notifier } from '../../engine/db/notify.ts';
import { retryTransient } from '../http/errors.ts';
import type { Metrics } from '../http/metrics.ts';

const MAX_CLAIM = 50;
const POLL_INTERVAL_MS = 2_000;
const AFTER_ERROR_MS = 250;

export type PullFilters = Readonly<{
  organizationIds?: readonly string[] | undefined;
  profileKeys?: readonly string[] | undefined;
  kinds?: readonly string[] | undefined;
}>;

export type PullRequest = Readonly<{
  workerId: string;
  limit: number;
  waitMs: number;
  /** Aborted when the client goes away, until its response is written. */
  signal: AbortSignal;
}>;

/** A claimed run request: passed on as the database made it. */
const claimSchema = z.looseObject({ organizationId: z.string(), runRequestId: z.string(), leaseToken: z.string() });
export type Claim = z.output<typeof claimSchema>;
const claimsSchema = z.object({ items: z.array(claimSchema) });

export type PullBrokers = Readonly<{
  /** Run requests for a worker: at once, or when some come up within `waitMs`, else none. */
  pull(filters: PullFilters, request: PullRequest): Promise<readonly Claim[]>;
  /** Gives every waiter nothing, and all later ones too. Claims under way are still handed out. */
  close(): Promise<void>;
  /** Something may be ready (a payload of `PULL_CHANNEL`): whoever waits here for such a thing looks at once. */
  wake(payload: string): void;
}>;

type Waiter = PullRequest & {
  readonly items: Claim[];
  /** True while a claim is under way that may bring items for it: then it has to wait for the outcome. */
  claiming: boolean;
  /** True once a claim has looked on its behalf: even `waitMs: 0` is worth one. */
  tried: boolean;
  expired: boolean;
  timer: NodeJS.Timeout | undefined;
  readonly resolve: (items: readonly Claim[]) => void;
  readonly reject: (error: unknown) => void;
};

type Broker = Readonly<{
  filters: PullFilters;
  pull(request: PullRequest): Promise<readonly Claim[]>;
  wake(): void;
  /** Ends all waits; resolves when no claim is under way. */
  close(): Promise<void>;
}>;

export type PullBrokerOptions = Readonly<{
  db: Queries;
  listener: Pick<Listener, 'subscribe' | 'onResync'>;
  notifier: Pick<Notifier, 'sender'>;
  metrics: Metrics;
  log: Logger;
  claimSeconds: number;
}>;

/**
 * Deals a claim of at most 50 over the waiters, one each in their order, then a second one each, and so on: entry i is
 * the waiter that item i will be for.
 */
export function deal<W extends { readonly limit: number }>(waiters: Iterable<W>): W[] {
  const dealt: W[] = [];
  let round = [...waiters];
  for (let given = 0; round.length > 0 && dealt.length < MAX_CLAIM; given += 1) {
    round = round.filter((waiter) => waiter.limit > given);
    dealt.push(...round.slice(0, MAX_CLAIM - dealt.length));
  }
  return dealt;
}

/** Gives back what nobody will start; if that fails, the claim runs out by itself. */
function release(options: PullBrokerOptions, items: readonly Claim[]): void {
  for (const item of items) {
    options.metrics.pullReleases.inc();
    const args = {
      organizationId: item.organizationId,
      runRequestId: item.runRequestId,
      leaseToken: item.leaseToken,
    };
    call(options.db, 'run_request_release', args, ignored).catch((error: unknown) =>
      options.log.debug({ err: error }, 'a claim could not be given back'),
    );
  }
}

function claim(options: PullBrokerOptions, filters: PullFilters, dealt: readonly Waiter[]): Promise<readonly Claim[]> {
  const args = {
    workerIds: dealt.map((waiter) => waiter.workerId),
    organizationIds: filters.organizationIds,
    profileKeys: filters.profileKeys,
    kinds: filters.kinds,
    claimSeconds: options.claimSeconds,
  };
  return retryTransient(async () => (await call(options.db, 'run_requests_pull', args, claimsSchema)).items);
}

function createBroker(options: PullBrokerOptions, filters: PullFilters, onIdle: () => void): Broker {
  const waiters = new Set<Waiter>();
  let running: Promise<void> | undefined;
  let again = false;
  let timer: NodeJS.Timeout | undefined;

  function leave(waiter: Waiter): void {
    clearTimeout(waiter.timer);
    if (waiters.delete(waiter)) options.metrics.pullWaiters.dec();
  }

  /** Responds to a waiter that has something, or nothing to wait for any more. */
  function settle(waiter: Waiter): void {
    if (waiter.claiming || !waiters.has(waiter)) return;
    const over = waiter.signal.aborted || (waiter.expired && waiter.tried);
    if (waiter.items.length === 0 && !over) return;
    leave(waiter);
    waiter.resolve(waiter.items);
    if (waiters.size === 0 && !running) onIdle();
  }

  function hand(waiter: Waiter | undefined, item: Claim): void {
    if (!waiter || waiter.signal.aborted) {
      release(options, [item]);
      return;
    }
    waiter.items.push(item);
    // The client may go away until the last byte of its response is written.
    waiter.signal.addEventListener('abort', () => release(options, [item]), { once: true });
  }

  async function failed(dealt: readonly Waiter[], error: unknown): Promise<void> {
    for (const waiter of new Set(dealt)) {
      leave(waiter);
      waiter.reject(error);
    }
    // Whoever comes next waits for this pause: a database that is down is not asked in a hot loop.
    await new Promise((resolve) => setTimeout(resolve, AFTER_ERROR_MS));
  }

  /** @returns true when there may be more to claim for those who still wait */
  async function claimOnce(): Promise<boolean> {
    const present = [...waiters];
    const dealt = deal(present);
    for (const waiter of dealt) waiter.claiming = true;
    let items: readonly Claim[];
    try {
      items = await claim(options, filters, dealt);
    } catch (error) {
      await failed(dealt, error);
      return true;
    }
    options.metrics.pullClaims.inc(items.length);
    for (const [index, item] of items.entries()) hand(dealt[index], item);
    const exhausted = items.length < dealt.length;
    for (const waiter of dealt) waiter.claiming = false;
    // Nothing was left over, so that a look for those further back would have found nothing either.
    for (const waiter of exhausted ? present : dealt) waiter.tried = true;
    for (const waiter of present) settle(waiter);
    return !exhausted;
  }

  async function run(): Promise<void> {
    let more = true;
    while (waiters.size > 0 && (more || again)) {
      again = false;
      more = await claimOnce();
    }
    running = undefined;
    if (waiters.size === 0) onIdle();
    // A notification may be lost, and some changes send none.
    else timer = setTimeout(wake, POLL_INTERVAL_MS);
  }

  function wake(): void {
    clearTimeout(timer);
    again = true;
    running ??= run();
  }

  function expire(waiter: Waiter): void {
    waiter.expired = true;
    settle(waiter);
  }

  return {
    filters,
    wake,
    pull(request) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Claim[]>();
      const waiter: Waiter = {
        ...request,
        items: [],
        claiming: false,
        tried: false,
        expired: false,
        timer: undefined,
        resolve,
        reject,
      };
      waiter.timer = setTimeout(() => expire(waiter), request.waitMs);
      request.signal.addEventListener('abort', () => settle(waiter), { once: true });
      waiters.add(waiter);
      options.metrics.pullWaiters.inc();
      wake();
      return promise;
    },
    async close() {
      clearTimeout(timer);
      for (const waiter of waiters) {
        waiter.tried = true;
        expire(waiter);
      }
      await running;
    },
  };
}

function filterKey(filters: PullFilters): string {
  const sorted = (values: readonly string[] | undefined) => (values ? [...new Set(values)].sort() : null);
  return JSON.stringify([sorted(filters.organizationIds), sorted(filters.profileKeys), sorted(filters.kinds)]);
}

function mayMatch({ organizationIds, kinds }: PullFilters, payload: string): boolean {
  const published = pulledFrom(payload);
  if (!published) return true;
  if (kinds && !kinds.includes(published.kind)) return false;
  return !organizationIds || organizationIds.some((id) => id.toLowerCase() === published.organizationId);
}

/** One broker a filter set: a process makes one claim at a time for all that wait for the same (docs/decisions/0007). */
export function createPullBrokers(options: PullBrokerOptions): PullBrokers {
  const brokers = new Map<string, Broker>();
  let closed = false;

  const wake = (payload: string) => {
    for (const broker of brokers.values()) if (mayMatch(broker.filters, payload)) broker.wake();
  };
  const stopListening = [
    options.listener.subscribe(PULL_CHANNEL, (payload, sender) => {
      // What this process marked has woken its own waiters already.
      if (sender !== options.notifier.sender()) wake(payload);
    }),
    options.listener.onResync(() => wake('')),
  ];

  return {
    async pull(filters, request) {
      if (closed || request.signal.aborted) return [];
      const key = filterKey(filters);
      const broker = brokers.get(key) ?? createBroker(options, filters, () => brokers.delete(key));
      brokers.set(key, broker);
      return broker.pull(request);
    },
    async close() {
      closed = true;
      for (const stop of stopListening) stop();
      await Promise.all([...brokers.values()].map((broker) => broker.close()));
    },
    wake,
  };
}
