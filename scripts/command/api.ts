import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { CommandError, EXIT, type Exit } from './errors.ts';
import type { Target } from './options.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_PAGE = 200;
/** Between the tries of a call whose response was lost: each carries the same `Idempotency-Key`. */
const RETRY_AFTER_MS = [200, 1_000];

/** A response that is not 2xx, as one line. */
export class RefusedError extends CommandError {
  override name = 'RefusedError';
  readonly status: number;
  readonly code: string;

  constructor(exit: Exit, status: number, code: string, message: string) {
    super(exit, message);
    this.status = status;
    this.code = code;
  }
}

/** Nobody responds, or not now: the same call may succeed later. */
export class UnavailableError extends CommandError {
  override name = 'UnavailableError';

  constructor(message: string) {
    super(EXIT.unavailable, message);
  }
}

const refusalSchema = z.object({
  message: z.string(),
  error: z.object({
    code: z.string(),
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  }),
});
const pageSchema = z.object({
  data: z.array(z.unknown()),
  pagination: z.looseObject({ nextCursor: z.string().nullish() }),
});

const UNKNOWN = 'unexpected response: is the API of another version?';

type Query = Readonly<Record<string, string | number | undefined>>;
type Method = 'GET' | 'POST';

function exitOf(status: number): Exit {
  if (status === 401 || status === 403) return EXIT.forbidden;
  return status === 404 ? EXIT.notFound : EXIT.refused;
}

/** Why fetch failed: it hides that in the cause, of several addresses in the first one's. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'it does not respond';
  const { cause } = error;
  const first = cause instanceof AggregateError ? cause.errors[0] : cause;
  return first instanceof Error && first.message !== '' ? first.message : error.message;
}

function isNetworkError(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && error.name === 'TimeoutError');
}

/** The calls of an owner. All of them throw CommandError, and the reason of `signal`. */
export function ownerApi({ url, token }: Target, signal?: AbortSignal) {
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function refusal(response: Response): Promise<CommandError> {
    const { status } = response;
    const { data } = refusalSchema.safeParse(await response.json().catch(() => null));
    if (status === 503) return new UnavailableError(`${url} is not ready: ${data?.message ?? 'HTTP 503'}`);
    if (!data) return new RefusedError(EXIT.refused, status, '', `${url} is no Business Runner: HTTP ${status}`);
    if (status === 401) {
      const what = token === undefined ? 'wants an owner’s token' : 'does not take this token';
      const message = `${url} ${what}: give --token-file or set BUSINESS_RUNNER_OWNER_TOKEN`;
      return new RefusedError(EXIT.forbidden, status, data.error.code, message);
    }
    const issues = (data.error.issues ?? []).map(({ path, message }) =>
      path === '' ? message : `${path}: ${message}`,
    );
    const message = issues.length === 0 ? data.message : `${data.message} (${issues.join('; ')})`;
    return new RefusedError(exitOf(status), status, data.error.code, message);
  }

  async function once(method: Method, path: string, init: RequestInit): Promise<Response> {
    const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    try {
      const response = await fetch(url + path, {
        ...init,
        method,
        headers: { ...authorization, ...init.headers },
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      if (!response.ok) throw await refusal(response);
      return response;
    } catch (error) {
      signal?.throwIfAborted();
      if (!isNetworkError(error)) throw error;
      throw new UnavailableError(
        `no Business Runner responds at ${url} (${reasonOf(error)}): run npm start, or give --url`,
      );
    }
  }

  /** Again, where a response may have been lost or the service was not ready: every call here may be repeated. */
  async function send(method: Method, path: string, body?: unknown): Promise<Response> {
    const init: RequestInit =
      method === 'GET'
        ? {}
        : {
            headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
            body: JSON.stringify(body ?? {}),
          };
    for (const wait of RETRY_AFTER_MS) {
      try {
        return await once(method, path, init);
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        await sleep(wait, undefined, signal ? { signal } : {}).catch(() => {});
        signal?.throwIfAborted();
      }
    }
    return once(method, path, init);
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
    text: async (path: string) => (await send('GET', path)).text(),
  };
}

export type OwnerApi = ReturnType<typeof ownerApi>;
