import { z } from 'zod';
import type { CollectCall, DiscoverCall, FoundSource } from '../dataset.ts';
import { ProviderError } from '../outgoing/index.ts';
import { type Credential, KEY, read, readSized, type Settings } from './api.ts';

export type Call = CollectCall<Credential, Settings>;

const PAGE_SIZE = 100;
/** No shop has ten million of anything: behind it lies a list that does not end. */
const LAST_PAGE = 100_000;

export const recordId = z.string().regex(/^\d{1,20}$/);
/** As attributes write those of other records. */
export const reference = z
  .int()
  .min(1)
  .transform((id) => String(id));

export type List<R, I> = Readonly<{
  rows: readonly R[];
  included: readonly I[];
  hasMore: boolean;
  /** How many there are, by the provider's word. */
  total: number | undefined;
  bytes: number;
}>;

const me = z.object({ meta: z.object({ test_mode: z.boolean() }) });

/** The stores of the settings, in the mode of the key. */
export async function sources(call: DiscoverCall<Credential, Settings>): Promise<readonly FoundSource[]> {
  const { storeIds = [] } = call.access.settings ?? {};
  if (storeIds.length === 0) return [];
  const { meta } = await read(call.context, call.access.credential, '/v1/users/me', me);
  const environment = meta.test_mode ? 'test' : 'live';
  return storeIds.map((resourceId) => ({ resourceId, environment, timezone: null }));
}

/** What a row says of where it belongs. */
export type Placed = Readonly<{ store_id: string; test_mode: boolean }>;
export const placed = { store_id: reference, test_mode: z.boolean() };

export const isOf = ({ source }: Call, { store_id: store, test_mode: isTest }: Placed) =>
  store === source.resourceId && isTest === (source.environment === 'test');

/** A page of a list, from 1. It ends by the link to the next page and by what was sent, not by the counts in `meta`. */
export async function readList<R extends z.ZodType, I extends z.ZodType>(
  { context, access }: Call,
  number: number,
  asked: Readonly<{ path: string; row: R; included: I; query: Readonly<Record<string, string>> }>,
): Promise<List<z.output<R>, z.output<I>>> {
  if (number > LAST_PAGE) throw new ProviderError(KEY, 'failed', 'The list of the provider does not end.');
  const page = { 'page[number]': String(number), 'page[size]': String(PAGE_SIZE) };
  const query = new URLSearchParams({ ...asked.query, ...page });
  const schema = z.object({
    data: z.array(asked.row),
    included: z.array(asked.included).nullish(),
    links: z.object({ next: z.string().nullish() }).nullish(),
    meta: z.object({ page: z.object({ total: z.int().min(0) }) }),
  });
  const { data: body, bytes } = await readSized(context, access.credential, `${asked.path}?${query}`, schema);
  const { data, included, links, meta } = body;
  return {
    rows: data,
    included: included ?? [],
    hasMore: data.length >= PAGE_SIZE || (data.length > 0 && Boolean(links?.next)),
    total: meta.page.total,
    bytes,
  };
}
