import assert from 'node:assert/strict';
import { z } from 'zod';
import { errorEnvelopeSchema, metaSchema } from '../../api/http/envelope.ts';
import { paginationSchema } from '../../api/http/pagination.ts';

const successEnvelope = z.strictObject({
  success: z.literal(true),
  statusCode: z.int(),
  message: z.string().min(1),
  data: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]),
  meta: metaSchema.strict(),
  pagination: paginationSchema.strict().optional(),
});

type Pagination = z.output<typeof paginationSchema>;
type ErrorPart = z.output<typeof errorEnvelopeSchema>['error'];

export type Reply<T> = Readonly<{
  status: number;
  headers: Headers;
  /** The whole envelope as it came. */
  body: Readonly<{
    statusCode: number;
    message: string;
    data: T;
    pagination: Pagination;
    error: ErrorPart;
    meta: z.output<typeof metaSchema>;
  }>;
  data: T;
  /** `error.code` of a refusal. */
  code: string | undefined;
}>;

type SendOptions = Readonly<{
  headers?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  signal?: AbortSignal;
}>;

/** What comes back must be an envelope, whatever the status. */
function checkEnvelope(status: number, headers: Headers, body: unknown): void {
  const schema = status < 400 ? successEnvelope : errorEnvelopeSchema.strict();
  const parsed = schema.safeParse(body);
  assert.ok(
    parsed.success,
    `not an envelope (${status}): ${parsed.error && z.prettifyError(parsed.error)} ${JSON.stringify(body)}`,
  );
  assert.equal(parsed.data.statusCode, status);
  assert.equal(parsed.data.meta.requestId, headers.get('x-request-id'));
}

function withQuery(path: string, query: SendOptions['query']): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  if (given.length === 0) return path;
  return `${path}?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

/** A client of the API that checks the envelope of every response. `T` is the caller's word for what `data` holds. */
export function createClient(baseUrl: string, defaults: Readonly<Record<string, string>> = {}) {
  async function send<T>(method: string, path: string, body: unknown, options: SendOptions = {}): Promise<Reply<T>> {
    const raw = body instanceof Uint8Array || typeof body === 'string';
    const headers = {
      ...defaults,
      ...(body === undefined ? {} : { 'content-type': raw ? 'application/octet-stream' : 'application/json' }),
      ...options.headers,
    };
    const response = await fetch(new URL(withQuery(path, options.query), baseUrl), {
      method,
      headers,
      ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
    const parsed = (await response.json()) as Reply<T>['body'];
    checkEnvelope(response.status, response.headers, parsed);
    return {
      status: response.status,
      headers: response.headers,
      body: parsed,
      data: parsed.data,
      code: parsed.error?.code,
    };
  }

  type Data = Record<string, unknown>;
  return {
    url: baseUrl,
    send,
    get: <T = Data>(path: string, options?: SendOptions) => send<T>('GET', path, undefined, options),
    post: <T = Data>(path: string, body?: unknown, options?: SendOptions) => send<T>('POST', path, body, options),
    put: <T = Data>(path: string, body?: unknown, options?: SendOptions) => send<T>('PUT', path, body, options),
    patch: <T = Data>(path: string, body?: unknown, options?: SendOptions) => send<T>('PATCH', path, body, options),
    delete: <T = Data>(path: string, options?: SendOptions) => send<T>('DELETE', path, undefined, options),
    /** Bytes and streams, which have no envelope. */
    fetch: (path: string, init?: RequestInit) =>
      fetch(new URL(path, baseUrl), {
        ...init,
        headers: { ...defaults, ...(init?.headers as Record<string, string>) },
      }),
    /** The same with another bearer token. */
    as: (token: string) => createClient(baseUrl, { ...defaults, authorization: `Bearer ${token}` }),
  };
}

export type Client = ReturnType<typeof createClient>;

/** What a 400 complains about, sorted; empty where nothing is wrong. */
export function issuePaths(reply: Reply<unknown>): string[] {
  return (reply.body.error?.issues ?? []).map((issue) => issue.path).sort();
}
