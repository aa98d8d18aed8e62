import { z } from 'zod';
import { type Bucket, parsed } from '../outgoing/index.ts';
import { accountBucket, type ProviderContext } from '../provider.ts';
import { CursorError, type ReadCall, type ToolCall } from '../tool.ts';
import { type Credential, type Settings, secretOf } from './connection.ts';
import { API, apiHeaders, site } from './site.ts';

const MAX_BYTES = 8 * 1024 * 1024;
export const PER_PAGE = 30;
const MAX_PAGES = 10_000;

export type Query = Readonly<Record<string, string | number | undefined>>;
export type Call<A = unknown> = ToolCall<A, Credential, Settings>;

export function requestOf(context: ProviderContext, given: Credential) {
  return {
    headers: apiHeaders(`Bearer ${secretOf(given)}`),
    // 5,000 an hour.
    buckets: [accountBucket('github', context, 100, 1.3)],
    signal: context.signal,
    maxBytes: MAX_BYTES,
  };
}

export function urlOf(path: string, query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? `${API}${path}` : `${API}${path}?${new URLSearchParams(given)}`;
}

/** @throws ProviderError, the signal's reason */
export function read<S extends z.ZodType>(
  context: ProviderContext,
  given: Credential,
  path: string,
  schema: S,
  query?: Query,
): Promise<z.output<S>> {
  const request = { ...requestOf(context, given), effect: 'read', url: urlOf(path, query) } as const;
  return context.client.json(site, request, schema);
}

/** Addresses of the API itself, which can hold a token of their own, and what only its programs need. */
const isPlumbing = (name: string) =>
  (name.endsWith('url') && name !== 'html_url') || name === 'node_id' || name === '_links' || name === 'gravatar_id';

/** What GitHub says, without addresses and ids that are of no use to who reads it: more than half of it. */
export function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !isPlumbing(name));
  return Object.fromEntries(kept.map(([name, one]) => [name, compact(one)]));
}

export const record = z.looseObject({});

export async function readOne({ context, access }: Call, path: string, query?: Query) {
  return { data: compact(await read(context, access.credential, path, record, query)) };
}

/** How much of a list GitHub shows, or is asked for. */
type Bound<T> = Readonly<{
  lastPage: number;
  /** Of what there is no more. */
  shown: string;
  /** Whether the last page is not the end of what there is, though GitHub names no next one. */
  isCut?(page: T): boolean;
}>;

type Paging<T> = Readonly<{
  buckets?: readonly Bucket[];
  bound?: Bound<T>;
  /** Default: that of the arguments. Null: GitHub's own, which goes without a number for the first page. */
  perPage?: null;
}>;

/** One page of a list, whose cursor is its number. `dataOf`: what of it is for the caller. */
export async function readPage<S extends z.ZodType>(
  { context, access, args, cursor = '1' }: ReadCall<{ perPage?: number | undefined }, Credential, Settings>,
  path: string,
  query: Query,
  schema: S,
  dataOf: (page: z.output<S>) => unknown,
  { bound = { lastPage: MAX_PAGES, shown: '10,000 pages' }, perPage, ...over }: Paging<z.output<S>> = {},
) {
  const number = /^[1-9]\d{0,4}$/.test(cursor) ? Number(cursor) : 0;
  if (number < 1) throw new CursorError();
  if (number > bound.lastPage) throw new CursorError(`leads further than ${bound.shown}: narrow the arguments`);
  const place =
    perPage === null ? { page: number > 1 ? number : undefined } : { per_page: args.perPage ?? PER_PAGE, page: number };
  const url = urlOf(path, { ...query, ...place });
  const request = { ...requestOf(context, access.credential), ...over, effect: 'read', url } as const;
  const response = await context.client.send(site, request);
  const page = parsed(site.provider, response, schema);
  const isNamed = /<[^<>]*>; ?rel="next"/.test(response.headers['link'] ?? '');
  // The cursor behind the last page says that there is more: the read that uses it fails with the reason.
  const hasMore = isNamed || (number >= bound.lastPage && (bound.isCut?.(page) ?? false));
  return { data: compact(dataOf(page)), nextCursor: hasMore ? String(number + 1) : null };
}

/** Sent once. @throws ProviderError, the signal's reason */
export function write<S extends z.ZodType>(
  { context, access }: Call,
  method: 'POST' | 'PATCH' | 'PUT',
  path: string,
  body: Readonly<Record<string, unknown>>,
  schema: S,
): Promise<z.output<S>> {
  const { headers, ...rest } = requestOf(context, access.credential);
  return context.client.json(
    site,
    {
      ...rest,
      effect: 'write',
      method,
      url: urlOf(path),
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    },
    schema,
  );
}
