import canonicalize from 'canonicalize';
import type { Request } from 'express';
import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import { sha256Hex } from './auth/bearer.ts';
import type { Caller } from './caller.ts';
import type { AnswerBody } from './envelope.ts';
import { invalid } from './errors.ts';
import { paginationSchema } from './pagination.ts';

const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000';
const keyFormat = /^[\x21-\x7e][\x20-\x7e]{0,199}$/;

export type KeptAnswer = Readonly<{ statusCode: number; body: AnswerBody }>;

const keptBody = z.object({ message: z.string(), data: z.unknown(), pagination: paginationSchema.optional() });
const begun = z.union([
  z.object({ replay: z.object({ statusCode: z.int(), body: keptBody }) }),
  z.object({ fresh: z.literal(true) }),
]);

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

/**
 * The first 2xx answer of a key is kept for 24 hours and given again. Runs inside the caller's transaction: the key, the
 * change and the kept answer commit together, and a refusal leaves nothing. Two at once wait for each other on the key.
 */
export async function idempotently(
  queries: Queries,
  request: Readonly<{ req: Request; caller: Caller; key: string; organizationId: string | undefined; body: unknown }>,
  work: () => Promise<KeptAnswer>,
): Promise<KeptAnswer & { replayed: boolean }> {
  const [path, query] = request.req.originalUrl.split('?');
  const slot = {
    organizationId: request.organizationId ?? NO_ORGANIZATION,
    caller: callerName(request.caller),
    method: request.req.method,
    path: (path ?? '').replace(UUIDS, (id) => id.toLowerCase()),
    key: request.key,
  };
  const hash = sha256Hex(canonicalize([query ?? '', request.body ?? null]) ?? '');
  const state = await call(queries, 'idempotency_begin', { ...slot, bodyHash: hash }, begun);
  if ('replay' in state) return { ...state.replay, replayed: true };
  const answer = await work();
  await call(queries, 'idempotency_finish', { ...slot, status: answer.statusCode, body: answer.body }, z.unknown());
  return { ...answer, replayed: false };
}
