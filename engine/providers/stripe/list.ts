import { z } from 'zod';
import { CursorMovedError, type DiscoverCall } from '../dataset.ts';
import { readMeasured } from '../measured.ts';
import { ProviderError } from '../outgoing/index.ts';
import { type Credential, ORIGIN, requestOf, site } from './site.ts';

const PAGE_SIZE = 100;
/** A hundred subscriptions with all of their items. */
const MAX_BYTES = 16 * 1024 * 1024;

export const stripeId = z.string().regex(/^[A-Za-z0-9_]{1,200}$/);

/** One page of a list, newest first. `next`: the id that the page that follows begins after; undefined: there is no more. */
export type StripeList<R> = Readonly<{ rows: readonly R[]; next: string | undefined; bytes: number }>;

/**
 * @param after id of the last one of the page before
 * @throws ProviderError, CursorMovedError where Stripe knows that id no more
 */
export async function readList<R extends z.ZodType<{ id: string }>>(
  { context, access }: DiscoverCall<Credential>,
  path: string,
  row: R,
  query: Readonly<Record<string, string | number | undefined>>,
  after: string | undefined,
): Promise<StripeList<z.output<R>>> {
  const form = new URLSearchParams({ limit: String(PAGE_SIZE) });
  for (const [name, value] of Object.entries({ ...query, starting_after: after })) {
    if (value !== undefined) form.set(name, String(value));
  }
  const url = `${ORIGIN}/v1/${path}?${form}`;
  const request = { ...requestOf(context, access.credential), effect: 'read', url, maxBytes: MAX_BYTES } as const;
  const schema = z.object({ data: z.array(row), has_more: z.boolean() });
  const { data: list, bytes } = await readMeasured(context, site, request, schema).catch((error: unknown) => {
    const isGone = error instanceof ProviderError && error.code === 'resource_missing';
    throw isGone && after !== undefined ? new CursorMovedError('The id that the list goes on after is gone.') : error;
  });
  const { data, has_more: hasMore } = list;
  const last = data.at(-1)?.id;
  // It would be asked for the same for ever.
  if (hasMore && (last === undefined || last === after)) {
    throw new ProviderError(site.provider, 'failed', 'The provider says that there is more, and shows no more.');
  }
  return { rows: data, next: hasMore ? last : undefined, bytes };
}
