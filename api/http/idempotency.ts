import { randomUUID } from 'node:crypto';
import { setTimeout as delay, setInterval } from 'node:timers/promises';
import canonicalize from 'canonicalize';
import type { Request } from 'express';
import { z } from 'zod';
import { call, ignored, type Queries } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { Problem } from '../../engine/db/problem.ts';
import { sha256Hex } from './auth/bearer.ts';
import type { Caller } from './caller.ts';
import type { ResponseBody } from './envelope.ts';
import { invalid, retryTransient } from './errors.ts';
import { paginationSchema } from './pagination.ts';

const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000';
const keyFormat = /^[\x21-\x7e][\x20-\x7e]{0,199}$/;

export type StoredResponse = Readonly<{ statusCode: number; body: ResponseBody }>;

const keptBody = z.object({ message: z.string(), data: z.unknown(), pagination: paginationSchema.optional() });
const begunSchema = z.union([
  z.object({ replay: z.object({ statusCode: z.int(), body: keptBody }) }),
  z.object({ fresh: z.literal(true) }),
  z.object({ inUse: z.literal(true) }),
]);
/** How long a second call waits for the first. */
const IN_USE_WAIT_MS = 10_000;
/** How long a claim keeps others off after its process has died. One that another call took over commits nothing. */
const CLAIM_SECONDS = 30;
const RENEW_MS = 8_000;

/** The `Idempotency-Key` of a request. @throws Problem 400 */
export function idempotencyKey(req: Request): string | undefined {
  const key = req.get('idempotency-key');
  if (key === undefined) return undefined;
  if (!keyFormat.test(key)) throw invalid('Idempotency-Key', 'must be 1 to 200 printable ASCII characters');
  return key;
}

/** The same person or token keeps its keys to itself; operators share them, since their tokens are rotated. */
function callerName(caller: Caller): string {
  if (caller.kind === 'owner') return caller.subject === null ? 'operator' : `owner:${caller.subject}`;
  if (caller.kind === 'capability') return `capability:${caller.tokenHash}`;
  return caller.kind;
}

/** The same resource, however its id is spelled. */
const UUIDS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

export type KeyedRequest = Readonly<{
  req: Request;
  caller: Caller;
  key: string;
  organizationId: string | undefined;
  body: unknown;
}>;

/** What a key stands for: one call by one caller. */
function slotOf(request: KeyedRequest) {
  const [path, query] = request.req.originalUrl.split('?');
  return {
    slot: {
      organizationId: request.organizationId ?? NO_ORGANIZATION,
      caller: callerName(request.caller),
      method: request.req.method,
      path: (path ?? '').replace(UUIDS, (id) => id.toLowerCase()),
      key: request.key,
    },
    bodyHash: sha256Hex(canonicalize([query ?? '', request.body ?? null]) ?? ''),
  };
}

const IN_USE = Symbol('in use');
type Replayable = StoredResponse & Readonly<{ replayed: boolean }>;

/**
 * Attempts until the key is free or has its response. Who waits holds no connection.
 * @throws Problem 409 `idempotency_key_in_use` after ten seconds
 */
async function whenFree(attempt: () => Promise<Replayable | typeof IN_USE>, signal: AbortSignal): Promise<Replayable> {
  const end = performance.now() + IN_USE_WAIT_MS;
  for (let waitMs = 25; ; waitMs = Math.min(waitMs * 2, 500)) {
    const response = await attempt();
    if (response !== IN_USE) return response;
    if (performance.now() + waitMs > end) throw inUse();
    await delay(waitMs * (0.5 + Math.random()), undefined, { signal });
  }
}

function inUse(): Problem {
  const code = 'idempotency_key_in_use';
  const message = 'Another call with this Idempotency-Key is in progress. Send it again later.';
  const issue = { path: 'Idempotency-Key', message: 'is of a call in progress', code };
  return new Problem(409, code, message, [issue], { 'Retry-After': '5' });
}

/**
 * Work that only changes the database, in one transaction with its key: the first 2xx response is kept for 24 hours and
 * given again. Key, change and stored response commit together, and a refusal leaves nothing.
 */
export function idempotently(
  database: Database,
  request: KeyedRequest,
  signal: AbortSignal,
  work: (db: Queries) => Promise<StoredResponse>,
): Promise<Replayable> {
  const { slot, bodyHash } = slotOf(request);
  const attempt = () =>
    database.transaction(async (db) => {
      const begun = await call(db, 'idempotency_begin', { ...slot, bodyHash }, begunSchema);
      if ('inUse' in begun) return IN_USE;
      if ('replay' in begun) return { ...begun.replay, replayed: true };
      const response = await work(db);
      await call(db, 'idempotency_finish', { ...slot, status: response.statusCode, body: response.body }, ignored);
      return { ...response, replayed: false };
    });
  return whenFree(() => retryTransient(attempt), signal);
}

/** Calls `renew` while work goes on. A failure is made up for by the next call, or the claim is lost, which its end finds out. */
async function renewing<T>(renew: () => Promise<unknown>, work: () => Promise<T>): Promise<T> {
  const over = new AbortController();
  const beats = async () => {
    for await (const _ of setInterval(RENEW_MS, undefined, { signal: over.signal, ref: false })) {
      await renew().catch(() => undefined);
    }
  };
  void beats().catch(() => undefined);
  try {
    return await work();
  } finally {
    over.abort();
  }
}

/** Ends work under a claim: the last change and the response that is stored of it commit together. */
export type Commit = <T>(change: (db: Queries) => Promise<T>, responseOf: (data: T) => StoredResponse) => Promise<T>;

/**
 * Work that also reads or writes files or websites, which no connection may wait for: the key is claimed in a transaction of
 * its own, renewed while the work goes on, and the response is stored with the last change. A claim whose process died is taken
 * over after `CLAIM_SECONDS`; what its holder wants to commit after that is refused.
 */
export function idempotentlyOutside(
  database: Database,
  request: KeyedRequest,
  signal: AbortSignal,
  work: (commit: Commit) => Promise<StoredResponse>,
): Promise<Replayable> {
  const { slot, bodyHash } = slotOf(request);

  const claimId = randomUUID();
  const renew = () => call(database, 'idempotency_renew', { ...slot, claimId, claimSeconds: CLAIM_SECONDS }, ignored);
  // Where this is lost too, the claim runs out by itself.
  const release = () => call(database, 'idempotency_release', { ...slot, claimId }, ignored).catch(() => undefined);

  async function claimed(): Promise<Replayable> {
    const finish = (db: Queries, { statusCode: status, body }: StoredResponse) =>
      call(db, 'idempotency_finish', { ...slot, claimId, status, body }, ignored);
    let kept: StoredResponse | undefined;
    const commit: Commit = async (change, responseOf) => {
      const [data, response] = await database.transaction(async (db) => {
        const changed = await change(db);
        const made = responseOf(changed);
        await finish(db, made);
        return [changed, made] as const;
      });
      kept = response;
      return data;
    };
    try {
      const response = await renewing(renew, () => work(commit));
      if (!kept) await retryTransient(() => finish(database, response));
      return { ...(kept ?? response), replayed: false };
    } catch (error) {
      if (!kept) await release();
      throw error;
    }
  }

  async function begin() {
    const args = { ...slot, bodyHash, claimId, claimSeconds: CLAIM_SECONDS };
    try {
      return await retryTransient(() => call(database, 'idempotency_begin', args, begunSchema));
    } catch (error) {
      // It may have been claimed although its response was lost.
      await release();
      throw error;
    }
  }

  return whenFree(async () => {
    const begun = await begin();
    if ('replay' in begun) return { ...begun.replay, replayed: true };
    return 'fresh' in begun ? claimed() : IN_USE;
  }, signal);
}
