import { z } from 'zod';
import { type ProviderRequest, parsed } from '../outgoing/index.ts';
import { accountBucket, type ProviderContext } from '../provider.ts';
import { CursorError, type ReadCall, type ToolCall } from '../tool.ts';
import { type Credential, type Settings, secretOf } from './connection.ts';
import { API, apiHeaders, site } from './site.ts';

const MAX_BYTES = 8 * 1024 * 1024;
const PER_PAGE = 30;
const LAST_PAGE = 10_000;

export type Query = Readonly<Record<string, string | number | undefined>>;
export type Call<A = unknown> = ToolCall<A, Credential, Settings>;

function requestOf(context: ProviderContext, given: Credential) {
  return {
    headers: apiHeaders(`Bearer ${secretOf(given)}`),
    // 5,000 an hour.
    buckets: [accountBucket('github', context, 100, 1.3)],
    signal: context.signal,
    maxBytes: MAX_BYTES,
  };
}

function urlOf(path: string, query: Query = {}): string {
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

/** One page of a list, whose cursor is its number. `itemsOf`: what of it is for the caller. */
export async function readPage<S extends z.ZodType>(
  { context, access, args, cursor = '1' }: ReadCall<{ perPage?: number | undefined }, Credential, Settings>,
  path: string,
  query: Query,
  schema: S,
  itemsOf: (page: z.output<S>) => readonly unknown[],
  more: Partial<Pick<ProviderRequest, 'buckets'>> & Readonly<{ lastPage?: number }> = {},
) {
  const { lastPage = LAST_PAGE, ...over } = more;
  const page = /^[1-9]\d{0,4}$/.test(cursor) ? Number(cursor) : 0;
  if (page < 1 || page > lastPage) throw new CursorError();
  const url = urlOf(path, { ...query, per_page: args.perPage ?? PER_PAGE, page });
  const request = { ...requestOf(context, access.credential), ...over, effect: 'read', url } as const;
  const response = await context.client.send(site, request);
  const data = itemsOf(parsed(site.provider, response, schema)).map(compact);
  const isLast = page >= lastPage || !/<[^<>]*>; ?rel="next"/.test(response.headers['link'] ?? '');
  return { data, nextCursor: isLast ? null : String(page + 1) };
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
