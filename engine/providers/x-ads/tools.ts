import { z } from 'zod';
import { ProviderError, undone } from '../outgoing/index.ts';
import { accountBucket } from '../provider.ts';
import { type ArgumentIssue, CursorError, type LookUpResult, toolsOf, type WriteCall } from '../tool.ts';
import type { Credential } from './flow.ts';
import { amount, microsOf, withAmounts } from './money.ts';
import { accountsBucket, adsUrl, type Campaign, campaign, readAds, readPage, statsBucket } from './reads.ts';
import { accountId as account, checkAccount, type Settings } from './settings.ts';
import { KEY, signed, site } from './site.ts';

const { read, write } = toolsOf<Credential, Settings>();

const accountId = account.describe('id of an ads account of the settings');
const id = z.string().regex(/^[a-z0-9]{1,40}$/);
const ids = z.array(id).min(1).max(200).optional();
const page = { accountId, count: z.int().min(1).max(200).optional() };
const hour = z.iso.datetime().describe('a whole hour, in UTC');

const HOUR_MS = 3_600_000;
const LONGEST_MS = 7 * 24 * HOUR_MS;
/** So many accounts can be named in one request. */
const ACCOUNTS_AT_ONCE = 200;

const accounts = z.object({ data: z.array(z.looseObject({ id: z.string() })) });
const statistics = z.object({ time_series_length: z.int().nullish(), data: z.array(z.unknown()) });

function checkHours({ startTime, endTime }: Readonly<{ startTime: string; endTime: string }>): ArgumentIssue[] {
  const start = Date.parse(startTime);
  const end = Date.parse(endTime);
  const issue = (field: string, message: string): ArgumentIssue => ({ path: [field], message, code: 'invalid_value' });
  if (start % HOUR_MS !== 0) return [issue('startTime', 'must be a whole hour')];
  if (end % HOUR_MS !== 0) return [issue('endTime', 'must be a whole hour')];
  if (end <= start) return [issue('endTime', 'must be later than startTime')];
  return end - start > LONGEST_MS ? [issue('endTime', 'must be at most seven days after startTime')] : [];
}

type OfCampaign = Readonly<{ accountId: string; campaignId: string }>;

async function readCampaign<A extends OfCampaign>(call: WriteCall<A, Credential, Settings>): Promise<Campaign> {
  const { accountId: of, campaignId } = call.args;
  return (await readAds(call, adsUrl(`accounts/${of}/campaigns/${campaignId}`), campaign)).data;
}

/** X has no idempotency keys. Its parameters stand in the query, where they are signed. */
async function change<A extends OfCampaign>(
  { context, access, args }: WriteCall<A, Credential, Settings>,
  changes: Readonly<Record<string, string | undefined>>,
): Promise<Campaign> {
  const { token, secret } = access.credential;
  const url = adsUrl(`accounts/${args.accountId}/campaigns/${args.campaignId}`, changes);
  const request = signed(context, { method: 'PUT', url, user: { token, secret } });
  const buckets = [accountBucket(KEY, context, 30, 0.5)];
  return (await context.client.json(site, { ...request, buckets }, campaign)).data;
}

const statusOf = ({ id: of, entity_status: status }: Campaign) => ({ id: of, entityStatus: status });

type Budget = Readonly<{
  currency: string;
  dailyBudgetAmountLocal?: string | undefined;
  totalBudgetAmountLocal?: string | undefined;
}>;

const budgetParameters = ({ dailyBudgetAmountLocal: daily, totalBudgetAmountLocal: total }: Budget) => ({
  daily_budget_amount_local_micro: daily && microsOf(daily),
  total_budget_amount_local_micro: total && microsOf(total),
});

const budgetOf = ({ id: of, currency, ...found }: Campaign) =>
  withAmounts({
    id: of,
    currency,
    daily_budget_amount_local_micro: found.daily_budget_amount_local_micro ?? null,
    total_budget_amount_local_micro: found.total_budget_amount_local_micro ?? null,
  });

/** The currency that a person decided by is that of the campaign. @throws ProviderError */
async function requireCurrency(call: WriteCall<OfCampaign & Budget, Credential, Settings>): Promise<void> {
  const { currency } = await readCampaign(call).catch((error: unknown) => {
    throw undone(error, KEY, call.context.signal);
  });
  if (currency === call.args.currency) return;
  throw new ProviderError(KEY, 'failed', 'The campaign is in another currency than that of the arguments.', {
    isRefusal: true,
  });
}

async function lookUpCampaign<A extends OfCampaign>(
  call: WriteCall<A, Credential, Settings>,
  isDone: (found: Campaign) => boolean,
  result: (found: Campaign) => unknown,
): Promise<LookUpResult> {
  const found = await readCampaign(call);
  return isDone(found) ? { outcome: 'found', result: result(found) } : { outcome: 'none' };
}

export const tools = [
  read({
    key: 'x_ads.accounts.list',
    title: 'List ads accounts',
    description: 'Lists the ads accounts of the settings, with name, time zone and approval.',
    input: {},
    async read(call) {
      const { cursor = '0', access } = call;
      const from = /^\d{1,4}$/.test(cursor) ? Number(cursor) : Number.NaN;
      const chosen = access.settings?.accountIds ?? [];
      if (from % ACCOUNTS_AT_ONCE !== 0 || (from > 0 && from >= chosen.length)) throw new CursorError();
      const some = chosen.slice(from, from + ACCOUNTS_AT_ONCE);
      // Without ids it would list all that the token reaches.
      if (some.length === 0) return { data: [] };
      const url = adsUrl('accounts', { account_ids: some, count: ACCOUNTS_AT_ONCE });
      const { data } = await readAds(call, url, accounts, accountsBucket(call.context));
      const next = from + ACCOUNTS_AT_ONCE;
      return {
        data: data.filter((one) => some.includes(one.id)),
        nextCursor: next < chosen.length ? String(next) : null,
      };
    },
  }),
  read({
    key: 'x_ads.campaigns.list',
    title: 'List campaigns',
    description: 'Lists the campaigns of an ads account. Amounts are decimals.',
    input: { ...page, campaignIds: ids, fundingInstrumentIds: ids },
    check: checkAccount,
    read: (call) => {
      const { campaignIds, fundingInstrumentIds } = call.args;
      return readPage(call, 'campaigns', { campaign_ids: campaignIds, funding_instrument_ids: fundingInstrumentIds });
    },
  }),
  read({
    key: 'x_ads.line_items.list',
    title: 'List line items',
    description: 'Lists the ad groups of an ads account. Amounts are decimals.',
    input: { ...page, campaignIds: ids, lineItemIds: ids },
    check: checkAccount,
    read: (call) => {
      const { campaignIds, lineItemIds } = call.args;
      return readPage(call, 'line_items', { campaign_ids: campaignIds, line_item_ids: lineItemIds });
    },
  }),
  read({
    key: 'x_ads.funding_instruments.list',
    title: 'List funding',
    description: 'Lists how an ads account is paid, with its currency.',
    input: page,
    check: checkAccount,
    read: (call) => readPage(call, 'funding_instruments'),
  }),
  read({
    key: 'x_ads.stats.read',
    title: 'Read statistics',
    description: 'Reads impressions, clicks, engagements and spend of at most seven days, by the hour or in total.',
    input: {
      accountId,
      entity: z.enum(['ACCOUNT', 'CAMPAIGN', 'FUNDING_INSTRUMENT', 'LINE_ITEM', 'PROMOTED_TWEET']),
      entityIds: z.array(id).min(1).max(20),
      startTime: hour,
      endTime: hour.describe('a whole hour, in UTC, itself not included'),
      // X cuts days by today's offset from UTC, which is not that of each day.
      granularity: z.enum(['HOUR', 'TOTAL']),
      placement: z.enum(['ALL_ON_TWITTER', 'SPOTLIGHT', 'TREND']),
      metricGroups: z
        .array(z.enum(['ENGAGEMENT', 'BILLING', 'VIDEO', 'MEDIA', 'WEB_CONVERSION', 'MOBILE_CONVERSION']))
        .min(1)
        .max(6)
        .optional()
        .describe('by default ENGAGEMENT and BILLING'),
    },
    check: (args, given) => [...checkAccount(args, given), ...checkHours(args)],
    async read(call) {
      const { accountId: of, entity, granularity, placement } = call.args;
      const url = adsUrl(`stats/accounts/${of}`, {
        entity,
        entity_ids: call.args.entityIds,
        start_time: call.args.startTime,
        end_time: call.args.endTime,
        granularity,
        placement,
        metric_groups: call.args.metricGroups ?? ['ENGAGEMENT', 'BILLING'],
      });
      const found = await readAds(call, url, statistics, statsBucket(call.context));
      return { data: withAmounts({ timeSeriesLength: found.time_series_length ?? null, data: found.data }) };
    },
  }),
  write({
    key: 'x_ads.campaigns.status.update',
    title: 'Pause or resume a campaign',
    description: 'Pauses a campaign, or lets it spend again.',
    risk: 'high',
    input: { accountId, campaignId: id, entityStatus: z.enum(['ACTIVE', 'PAUSED']) },
    check: checkAccount,
    summary: ({ args }) =>
      `${args.entityStatus === 'PAUSED' ? 'Pause' : 'Resume'} campaign ${args.campaignId} of ads account ${args.accountId} of X${
        args.entityStatus === 'PAUSED' ? '' : ', so that it spends money again'
      }`,
    execute: async (call) => statusOf(await change(call, { entity_status: call.args.entityStatus })),
    lookUp: (call) => lookUpCampaign(call, (found) => found.entity_status === call.args.entityStatus, statusOf),
  }),
  write({
    key: 'x_ads.campaigns.budget.update',
    title: 'Change a budget',
    description: 'Changes what a campaign may spend a day, or in all.',
    risk: 'high',
    input: {
      accountId,
      campaignId: id,
      currency: z
        .string()
        .regex(/^[A-Z]{3}$/)
        .describe('that of the campaign: with another one nothing is changed'),
      dailyBudgetAmountLocal: amount.optional().describe('a decimal, such as 12.50'),
      totalBudgetAmountLocal: amount.optional().describe('a decimal, such as 500'),
    },
    check: (args, given) => [
      ...checkAccount(args, given),
      ...(args.dailyBudgetAmountLocal === undefined && args.totalBudgetAmountLocal === undefined
        ? [{ path: [], message: 'changes nothing', code: 'required' }]
        : []),
    ],
    summary: ({ args: { accountId: of, campaignId, currency, ...to } }) => {
      const changes = [
        ...(to.dailyBudgetAmountLocal ? [`${to.dailyBudgetAmountLocal} ${currency} a day`] : []),
        ...(to.totalBudgetAmountLocal ? [`${to.totalBudgetAmountLocal} ${currency} in all`] : []),
      ];
      return `Let campaign ${campaignId} of ads account ${of} of X spend at most ${changes.join(' and ')}, whatever its budget is now`;
    },
    async execute(call) {
      await requireCurrency(call);
      return budgetOf(await change(call, budgetParameters(call.args)));
    },
    lookUp(call) {
      const wanted = Object.entries(budgetParameters(call.args)).filter(([, micros]) => micros !== undefined);
      const isDone = (found: Campaign) =>
        found.currency === call.args.currency &&
        wanted.every(([name, micros]) => String(found[name as keyof Campaign]) === micros);
      return lookUpCampaign(call, isDone, budgetOf);
    },
  }),
];
