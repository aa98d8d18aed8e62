import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import type { Decision } from '../../engine/db/decision.ts';
import type { Problem } from '../../engine/db/problem.ts';
import type { Services } from '../services.ts';
import type { Audience, CallerOf } from './caller.ts';
import type { DecisionDefinition } from './decision.ts';
import type { SuccessStatus } from './envelope.ts';
import type { Pagination } from './pagination.ts';
import type { StreamBody, StreamedBody } from './stream_body.ts';
import type { Tag } from './tags.ts';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
export type Shape = Readonly<Record<string, z.ZodType>>;

export type JsonResponse<D extends z.ZodType = z.ZodType> = Readonly<{
  status?: SuccessStatus;
  data: D;
  /** Paginated: the handler returns `{data, pagination}`. */
  list?: boolean;
  message?: string;
  description?: string;
}>;

/** A response that the handler writes by itself: bytes or events. */
export type StreamResponse = Readonly<{
  stream: true;
  mediaType: string;
  description: string;
  /** Also responds with 206, 304 and 416 (api/http/bytes.ts). */
  ranges?: boolean;
  /** What JSON in it looks like, for the document alone. */
  schema?: z.ZodType;
}>;

export type DeclaredError = Readonly<{ status: number; code: string; when: string }>;

type Parsed<S extends Shape> = { [K in keyof S]: z.output<S[K]> };

export type Context<
  A extends Audience = Audience,
  P extends Shape = Shape,
  Q extends Shape = Shape,
  H extends Shape = Shape,
  B = unknown,
> = Readonly<{
  params: Parsed<P>;
  query: Parsed<Q>;
  headers: Parsed<H>;
  body: B;
  caller: CallerOf<A>;
  /** The entry that this call leaves in the audit log: for `call`, with the transition that carries the decision out. */
  decision: Decision | undefined;
  /** The pool; of a call with an `Idempotency-Key`, save for `external` endpoints, its transaction. */
  db: Queries;
  services: Services;
  /**
   * Of an `external` endpoint: its last change, whose result is its response. Under an `Idempotency-Key` the change and the
   * stored response commit together.
   */
  commit: <T>(change: (db: Queries) => Promise<T>) => Promise<T>;
  log: Logger;
  req: Request;
  res: Response;
  /** Aborted when the client goes away. */
  signal: AbortSignal;
  /** The streamed request body, of endpoints with a stream body; asks the client to go on where it waits for that. */
  openBody(): StreamedBody;
  /** For bytes that an agent hands in by another way: says why a chunk is refused in which a token ends, as `openBody` does. */
  searchTokens(): (chunk: Buffer) => Problem | undefined;
}>;

type BodyOf<B> = B extends z.ZodType ? z.output<B> : undefined;

export type Result<R> = R extends StreamResponse
  ? // biome-ignore lint/suspicious/noConfusingVoidType: the handler writes the response itself and returns nothing
    void
  : R extends JsonResponse<infer D>
    ? R extends { list: true }
      ? Readonly<{ data: z.output<D>; pagination: Pagination }>
      : z.output<D>
    : never;

export type Definition<
  A extends Audience,
  P extends Shape,
  Q extends Shape,
  H extends Shape,
  B extends z.ZodType | StreamBody | undefined,
  R extends JsonResponse | StreamResponse,
> = Readonly<{
  method: Method;
  /** OpenAPI style, `/organizations/{organizationId}/tasks/{taskRef}`; `{path*}` takes the rest, slashes included. */
  path: `/${string}`;
  audience: A;
  tag: Tag;
  operationId: string;
  summary: string;
  /** What summary and schemas leave open. */
  description?: string;
  params?: P;
  query?: Q;
  /** Request headers that the endpoint reads, by lower-case name. */
  headers?: H;
  /** A strict zod schema, a stream, or nothing: then only an empty body or `{}` is accepted. */
  body?: B;
  response: R;
  errors?: readonly DeclaredError[];
  /** Codes that differ from the audience's, by status (docs/interface.md 7.1). */
  codes?: Readonly<Partial<Record<number, string>>>;
  /**
   * Owners alone: with OWNER_AUTH=open it takes a token of OWNER_TOKENS all the same, or with some bodies does. Whoever reaches
   * the loopback port may be an agent, and must not decide what agents may do outside.
   */
  ownerToken?: boolean | ((body: BodyOf<B>) => boolean);
  /** Of the gateway: the capability may come as a password too, and a call without one is asked for it in that way. */
  byPassword?: boolean;
  /** Programs (by `User-Agent`) that show their person a refusal that is plain text, and nothing of an envelope. */
  textFor?: RegExp;
  /** `ignored`: the response holds what must not be kept, so that no `Idempotency-Key` counts. */
  idempotencyKey?: 'ignored';
  /** The query is another party's: the handler reads it by itself, and no name in it is refused. */
  anyQuery?: boolean;
  /** The path holds a secret: logs have its template. */
  secretPath?: boolean;
  /** False: may be called by viewers too, and is not a write. Default: every method but GET writes. */
  writes?: boolean;
  /**
   * The handler reads or writes files or websites: no connection may wait for it, so that it never runs in a transaction, and
   * ends with `commit`.
   */
  external?: boolean;
  /** Takes long or much: an organization may have few of these in work at a time, further ones are 429. */
  costly?: boolean | ((query: Parsed<Q>) => boolean);
  /** `none`: subjects of JWTs need not be members of `{organizationId}` (it is only being made). */
  membership?: 'none';
  /** `bodies`: in place of `body` where there are several, by their names. */
  example?: Readonly<{ body?: unknown; bodies?: Readonly<Record<string, unknown>>; data?: unknown }>;
  /**
   * Of an endpoint that continues a stored text by one of its body: which, and how to read the end of what is stored. A token may
   * come in two pieces.
   */
  continued?(
    given: Pick<Context<A, P, Q, H, BodyOf<B>>, 'params' | 'query' | 'headers' | 'body' | 'db'>,
  ): Readonly<{ field: string; text: string; before: () => Promise<string> }> | undefined;
  /** Owners alone: the call is a decision, and its handler hands `decision` on to `call`. */
  decision?: DecisionDefinition<Parsed<P>, BodyOf<B>>;
  handler(context: Context<A, P, Q, H, BodyOf<B>>): Promise<Result<R>> | Result<R>;
}>;

/** What the router and the OpenAPI document need of a definition; its handler's types are kept inside. */
export type Endpoint = Readonly<
  Omit<
    Definition<Audience, Shape, Shape, Shape, z.ZodType | StreamBody | undefined, JsonResponse | StreamResponse>,
    'handler' | 'params' | 'query' | 'headers' | 'costly' | 'continued' | 'ownerToken'
  > & {
    ownerToken?: boolean | ((body: unknown) => boolean);
    continued?(
      given: Pick<Context, 'params' | 'query' | 'headers' | 'body' | 'db'>,
    ): Readonly<{ field: string; text: string; before: () => Promise<string> }> | undefined;
    costly?: boolean | ((query: Context['query']) => boolean);
    params: z.ZodObject;
    query: z.ZodObject;
    headers: z.ZodObject;
    writes: boolean;
    handler(context: Context): Promise<unknown>;
  }
>;

export function isStream<T extends StreamBody | StreamResponse>(part: unknown): part is T {
  return typeof part === 'object' && part !== null && 'stream' in part;
}

/** The names in a path template. */
export function pathParameters(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\*?\}/g)].map((match) => match[1] ?? '');
}

/**
 * One endpoint: who may call it, what goes in and out, and the handler. `registerEndpoints` makes the Express route of
 * it and `openApi` its documentation, so that the two cannot disagree.
 */
export function endpoint<
  const A extends Audience,
  B extends z.ZodType | StreamBody | undefined = undefined,
  P extends Shape = Record<never, never>,
  Q extends Shape = Record<never, never>,
  H extends Shape = Record<never, never>,
  const R extends JsonResponse | StreamResponse = JsonResponse | StreamResponse,
>(definition: Definition<A, P, Q, H, B, R>): Endpoint {
  const params = definition.params ?? {};
  const named = pathParameters(definition.path);
  const missing = named.filter((name) => !(name in params));
  const foreign = Object.keys(params).filter((name) => !named.includes(name));
  if (missing.length + foreign.length > 0) {
    throw new Error(`${definition.operationId}: path and params differ in ${[...missing, ...foreign].join(', ')}`);
  }
  return {
    ...(definition as unknown as Omit<Endpoint, 'params' | 'query' | 'headers' | 'writes'>),
    params: z.strictObject(params),
    query: z.strictObject(definition.query ?? {}),
    headers: z.object(definition.headers ?? {}),
    writes: definition.writes ?? definition.method !== 'get',
  };
}
