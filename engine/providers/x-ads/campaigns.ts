import { z } from 'zod';
import { CursorMovedError } from '../dataset.ts';
import { ProviderError } from '../outgoing/index.ts';
import { DAY_MS } from '../periods.ts';
import { accountOf, type Collecting } from './account.ts';
import { adsUrl, readAdsMeasured } from './reads.ts';
import { KEY } from './site.ts';

/** Their ids are part of a cursor. */
const PAGE = 100;
/** So long after it was deleted nothing of a campaign is shown any more. */
const ENDS_MS = DAY_MS;

export const campaignId = z.string().regex(/^[a-z0-9]{1,40}$/);
export const currency = z.string().regex(/^[A-Z]{3}$/);
const time = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text))
  .nullish();

const campaigns = z.object({
  data: z.array(
    z.object({
      id: campaignId,
      currency,
      created_at: time,
      updated_at: time,
      deleted: z.boolean().nullish(),
    }),
  ),
  next_cursor: z
    .string()
    .regex(/^[\x21-\x7e]{0,500}$/)
    .nullish(),
});

export type Hours = Readonly<{ start: number; end: number }>;

/**
 * A page of campaigns, deleted ones among them, that may have spent within these hours.
 * @param place of an earlier page; empty: the first one
 * @throws ProviderError, CursorMovedError
 */
export async function readCampaigns(call: Collecting, { start, end }: Hours, place: string) {
  const query = { count: PAGE, with_deleted: 'true', cursor: place || undefined };
  const url = adsUrl(`accounts/${accountOf(call)}/campaigns`, query);
  try {
    const { data: page, bytes } = await readAdsMeasured(call, url, campaigns);
    const spending = page.data.filter((one) => {
      const isLater = (one.created_at ?? start) >= end;
      const isOver = one.deleted === true && (one.updated_at ?? end) + ENDS_MS < start;
      return !isLater && !isOver;
    });
    const next = page.next_cursor || null;
    if (next !== null && next === place) {
      throw new ProviderError(KEY, 'failed', 'The provider says that there is more, and shows no more.');
    }
    return { spending, records: page.data.length, bytes, next };
  } catch (error) {
    // Without the place the same request is good.
    const isPlace = error instanceof ProviderError && error.status === 400 && place !== '';
    throw isPlace ? new CursorMovedError('The provider does not know the place of the page any more.') : error;
  }
}
