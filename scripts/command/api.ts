import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { callOwnerApi, OwnerApiError, type OwnerCall } from '../owner_call.ts';
import { CommandError, EXIT, type Exit } from './errors.ts';
import type { Target } from './options.ts';

const MAX_PAGE = 200;
/** Between the tries of a call whose response was lost: each carries the same `Idempotency-Key`. */
export const RETRY_AFTER_MS = [200, 1_000];

/** Nobody responds, or not now: the same call may succeed later. */
export class UnavailableError extends CommandError {
  override name = 'UnavailableError';

  constructor(message: string, options?: ErrorOptions) {
    super(EXIT.unavailable, message, options);
  }
}

const pageSchema = z.object({
  data: z.array(z.unknown()),
  pagination: z.looseObject({ nextCursor: z.string().nullish() }),
});

const UNKNOWN = 'unexpected response: is the API of another version?';

type Query = Readonly<Record<string, string | number | undefined>>;
type Method = 'GET' | 'POST' | 'PUT';

function exitOf(status: number): Exit {
  if (status === 401 || status === 403) return EXIT.forbidden;
  return status === 404 ? EXIT.notFound : EXIT.refused;
}

/** Why fetch failed: it hides that in the cause, of several addresses in the first one's. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'it does not respond';
  const { cause } = error;
  const first = cause instanceof AggregateError ? cause.errors[0] : cause;
  return first instanceof Error && first.message !== '' ? first.message : error.message;
}

export function isNetworkError(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && error.name === 'TimeoutError');
}

/** Who calls, and what a call may take. */
export type Caller = Pick<Target, 'url' | 'token'> &
  Readonly<{
    /** Of whoever calls: it decides what is said about a token. Default: an owner. */
    as?: 'owner' | 'agent' | 'gateway';
    timeoutMs?: number;
  }>;

/** The calls of an owner or an agent. All of them throw CommandError, and the reason of `signal`. */
export function ownerApi({ url, token, as = 'owner', timeoutMs }: Caller, signal?: AbortSignal) {
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  function unauthorized(): string {
    if (as !== 'owner') return `${url} does not take the token of this run: the run is over, or may not do this`;
    const what = token === undefined ? 'wants an owner’s token' : 'does not take this token';
    return `${url} ${what}: give --token-file or set BUSINESS_RUNNER_OWNER_TOKEN`;
  }

  function refusal(error: OwnerApiError): CommandError {
    const { status, reason } = error;
    const options = { cause: error };
    if (as === 'gateway' && status === 503 && reason !== undefined) return new UnavailableError(reason, options);
    if (status === 503) return new UnavailableError(`${url} is not ready: ${reason ?? 'HTTP 503'}`);
    if (reason === undefined) return new CommandError(EXIT.refused, `${url} is not Business Runner: HTTP ${status}`);
    if (status === 401) return new CommandError(EXIT.forbidden, unauthorized(), options);
    const isArguments = as === 'gateway' && status === 400;
    return new CommandError(isArguments ? EXIT.data : exitOf(status), reason, options);
  }

  async function once(call: OwnerCall): Promise<Response> {
    try {
      return await callOwnerApi(call);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof OwnerApiError) throw refusal(error);
      if (!isNetworkError(error)) throw error;
      const advice = as === 'owner' ? ': run npm start, or give --url' : '';
      throw new UnavailableError(`no Business Runner responds at ${url} (${reasonOf(error)})${advice}`);
    }
  }

  /** Again, where a response may have been lost or the service was not ready: every call here may be repeated. */
  async function send(method: Method, path: string, body?: unknown): Promise<Response> {
    const sent = method === 'GET' ? {} : { body: body ?? {}, headers: { 'idempotency-key': randomUUID() } };
    const call: OwnerCall = { url, method, path, token, signal, timeoutMs, ...sent };
    for (const wait of RETRY_AFTER_MS) {
      try {
        return await once(call);
      } catch (error) {
        // A provider that is not available was asked again already.
        if (!(error instanceof UnavailableError) || error.cause !== undefined) throw error;
        await sleep(wait, undefined, signal ? { signal } : {}).catch(() => {});
        signal?.throwIfAborted();
      }
    }
    return once(call);
  }

  async function parsed<S extends z.ZodType>(schema: S, response: Response): Promise<z.output<S>> {
    const found = schema.safeParse(await response.json().catch(() => null));
    if (found.success) return found.data;
    throw new CommandError(EXIT.refused, UNKNOWN);
  }

  async function call<S extends z.ZodType>(
    schema: S,
    method: Method,
    path: string,
    body?: unknown,
  ): Promise<z.output<S>> {
    const { data } = await parsed(z.object({ data: z.unknown() }), await send(method, path, body));
    const found = schema.safeParse(data);
    if (found.success) return found.data;
    throw new CommandError(EXIT.refused, UNKNOWN);
  }

  return {
    url,
    authorization,
    get: <S extends z.ZodType>(schema: S, path: string) => call(schema, 'GET', path),
    post: <S extends z.ZodType>(schema: S, path: string, body?: unknown) => call(schema, 'POST', path, body),
    put: <S extends z.ZodType>(schema: S, path: string, body: Uint8Array) => call(schema, 'PUT', path, body),
    /** Up to `limit` items of a list, page by page. */
    async list<S extends z.ZodType>(schema: S, path: string, query: Query, limit: number): Promise<z.output<S>[]> {
      const found: z.output<S>[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = { ...query, limit: Math.min(limit - found.length, MAX_PAGE), cursor };
        const given = Object.entries(page).flatMap(([name, value]): [string, string][] =>
          value === undefined ? [] : [[name, `${value}`]],
        );
        const { data, pagination } = await parsed(
          pageSchema,
          await send('GET', `${path}?${new URLSearchParams(given)}`),
        );
        found.push(...data.map((item) => schema.parse(item)));
        cursor = pagination.nextCursor ?? undefined;
        if (cursor === undefined || found.length >= limit) return found;
      }
    },
    /** Bytes as they come. */
    open: (path: string) => send('GET', path),
    text: async (path: string) => (await send('GET', path)).text(),
  };
}

export type OwnerApi = ReturnType<typeof ownerApi>;
