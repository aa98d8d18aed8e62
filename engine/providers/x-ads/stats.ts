import { z } from 'zod';
import { fromMicros } from '../../amounts.ts';
import type { Columns, Fact } from '../dataset.ts';
import { ProviderError } from '../outgoing/index.ts';
import { accountOf, type Collecting } from './account.ts';
import type { Hours } from './campaigns.ts';
import { adsUrl, readAdsMeasured, statsBucket } from './reads.ts';
import { KEY } from './site.ts';

export const HOUR_MS = 3_600_000;
/** What one request may ask for. */
export const ENTITIES = 20;
export const LONGEST_MS = 7 * 24 * HOUR_MS;
export const PLACEMENTS = ['ALL_ON_TWITTER', 'SPOTLIGHT', 'TREND'] as const;
export type Placement = (typeof PLACEMENTS)[number];

/** Null is none, as is null within. */
const series = z.array(z.int().nullable()).nullish();
const metrics = z.object({
  impressions: series,
  clicks: series,
  engagements: series,
  billed_charge_local_micro: series,
});
const statistics = z.object({
  data: z.array(z.object({ id: z.string(), id_data: z.array(z.object({ metrics })).max(1) })),
});

export const columns = {
  campaign: 'text',
  placement: 'text',
  impressions: 'count',
  clicks: 'count',
  engagements: 'count',
  billed: 'amount',
  currency: 'text',
} as const satisfies Columns;

const withoutMillis = (time: number) => new Date(time).toISOString().replace('.000', '');

export type Asked = Readonly<{
  /** The currency of each campaign. */
  campaigns: ReadonlyMap<string, string>;
  hours: Hours;
  placement: Placement;
  /** Hours without anything are told too, where the campaign had any: one that was known may have become empty. */
  withEmpty: boolean;
}>;

/** What campaigns did by the hour. @throws ProviderError, the signal's reason */
export async function readStats(call: Collecting, { campaigns, hours: { start, end }, placement, withEmpty }: Asked) {
  const url = adsUrl(`stats/accounts/${accountOf(call)}`, {
    entity: 'CAMPAIGN',
    entity_ids: [...campaigns.keys()],
    start_time: withoutMillis(start),
    end_time: withoutMillis(end),
    granularity: 'HOUR',
    placement,
    metric_groups: ['ENGAGEMENT', 'BILLING'],
  });
  const { data: found, bytes } = await readAdsMeasured(call, url, statistics, statsBucket(call.context));
  const length = (end - start) / HOUR_MS;
  const facts: Fact[] = [];
  let records = 0;
  for (const {
    id,
    id_data: [only],
  } of found.data) {
    const currency = campaigns.get(id);
    const all = only?.metrics;
    const some = [all?.impressions, all?.clicks, all?.engagements, all?.billed_charge_local_micro];
    if (currency === undefined || some.some((one) => one && one.length !== length)) {
      throw new ProviderError(
        KEY,
        'failed',
        'The provider responds with other hours or campaigns than it was asked for.',
      );
    }
    const isEmpty = some.every((one) => !one);
    records += isEmpty ? 1 : length;
    for (let hour = 0; hour < length && !isEmpty; hour += 1) {
      const [impressions = 0, clicks = 0, engagements = 0, micros = 0] = some.map((one) => one?.[hour] ?? 0);
      if (!withEmpty && impressions === 0 && clicks === 0 && engagements === 0 && micros === 0) continue;
      const at = start + hour * HOUR_MS;
      facts.push({
        key: `${id}:${placement}:${withoutMillis(at)}`,
        effectiveAt: at,
        revision: null,
        values: { campaign: id, placement, impressions, clicks, engagements, billed: fromMicros(micros), currency },
      });
    }
  }
  return { facts, records, bytes };
}
