import { z } from 'zod';
import { type Measured, readMeasured } from '../measured.ts';
import { type Bucket, ProviderError } from '../outgoing/index.ts';
import { accountBucket, type ProviderContext } from '../provider.ts';
import { CursorError, type ReadCall, type ReadResult, type ToolCall } from '../tool.ts';
import type { Credential } from './flow.ts';
import { withAmounts } from './money.ts';
import { ADS, KEY, signed, site } from './site.ts';

type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** An address below an ads account. Lists are one parameter. */
export function adsUrl(path: string, query: Query = {}): URL {
  const url = new URL(`${ADS}/12/${path}`);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}

/** 5 requests in 15 minutes; `discover` is of them. */
export function accountsBucket(context: ProviderContext): Bucket {
  return { key: `${KEY}:accounts:${context.account}`, capacity: 5, perSecond: 5 / 900 };
}

type Asking = Pick<ToolCall<unknown, Credential>, 'context' | 'access'>;

function requestOf({ context, access }: Asking, url: URL, bucket = accountBucket(KEY, context, 60, 1)) {
  const { token, secret } = access.credential;
  return { ...signed(context, { method: 'GET', url, user: { token, secret } }), buckets: [bucket] };
}

export function readAds<S extends z.ZodType>(at: Asking, url: URL, schema: S, bucket?: Bucket): Promise<z.output<S>> {
  return at.context.client.json(site, requestOf(at, url, bucket), schema);
}

/** The same, and how large the response was. */
export function readAdsMeasured<S extends z.ZodType>(
  at: Asking,
  url: URL,
  schema: S,
  bucket?: Bucket,
): Promise<Measured<z.output<S>>> {
  return readMeasured(at.context, site, requestOf(at, url, bucket), schema);
}

/** Statistics: 250 requests in 15 minutes. */
export function statsBucket(context: ProviderContext): Bucket {
  return accountBucket(KEY, context, 50, 0.25);
}

const page = z.object({ data: z.array(z.looseObject({ id: z.string() })), next_cursor: z.string().nullish() });

/** A page of things of an ads account. @throws CursorError */
export async function readPage(
  call: ReadCall<Readonly<{ accountId: string; count?: number | undefined }>, Credential>,
  path: string,
  query: Query = {},
): Promise<ReadResult> {
  const { cursor, args } = call;
  if (cursor !== undefined && !/^[\x21-\x7e]{1,500}$/.test(cursor)) throw new CursorError();
  const url = adsUrl(`accounts/${args.accountId}/${path}`, { ...query, count: args.count, cursor });
  try {
    const { data, next_cursor: next } = await readAds(call, url, page);
    return { data: withAmounts(data), nextCursor: next || null };
  } catch (error) {
    // The same arguments without it were good.
    const isWrong = error instanceof ProviderError && error.status === 400 && cursor !== undefined;
    throw isWrong ? new CursorError() : error;
  }
}

export const campaign = z.object({
  data: z.object({
    id: z.string(),
    entity_status: z.string(),
    currency: z.string(),
    daily_budget_amount_local_micro: z.int().nullish(),
    total_budget_amount_local_micro: z.int().nullish(),
  }),
});
export type Campaign = z.output<typeof campaign>['data'];
