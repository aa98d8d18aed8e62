import { z } from 'zod';
import { type Effect, inputSchema, type Risk, type Tool } from '../provider.ts';

const accountId = z
  .string()
  .regex(/^[a-z0-9]{1,40}$/)
  .describe('id of an ads account of the settings');
const id = z.string().regex(/^[a-z0-9]{1,40}$/);
const page = { accountId, cursor: z.string().max(500).optional(), count: z.int().min(1).max(1_000).optional() };
const hour = z.iso.datetime().describe('a whole hour');

type Row = readonly [key: string, title: string, description: string, effect: Effect, risk: Risk, input: z.ZodRawShape];

const rows: readonly Row[] = [
  ['campaigns.list', 'List campaigns', 'Lists the campaigns of an ads account.', 'read', 'low', page],
  ['line_items.list', 'List line items', 'Lists the ad groups of an ads account.', 'read', 'low', page],
  [
    'funding_instruments.list',
    'List funding',
    'Lists how an ads account is paid, with its currency.',
    'read',
    'low',
    page,
  ],
  [
    'stats.read',
    'Read statistics',
    'Reads impressions, clicks, engagements and spend by the hour, for at most seven days.',
    'read',
    'low',
    {
      accountId,
      entity: z.enum(['ACCOUNT', 'CAMPAIGN', 'LINE_ITEM', 'PROMOTED_TWEET']),
      entityIds: z.array(id).min(1).max(20),
      placement: z.enum(['ALL_ON_TWITTER', 'SPOTLIGHT', 'TREND']),
      start: hour,
      end: hour.describe('a whole hour, itself not included'),
    },
  ],
  [
    'campaigns.status.update',
    'Pause or resume a campaign',
    'Pauses a campaign, or lets it spend again.',
    'write',
    'high',
    { accountId, campaignId: id, status: z.enum(['ACTIVE', 'PAUSED']) },
  ],
  [
    'campaigns.budget.update',
    'Change a budget',
    'Changes what a campaign may spend a day.',
    'write',
    'high',
    { accountId, campaignId: id, dailyBudgetMicros: z.int().min(1).max(1_000_000_000_000) },
  ],
];

export const tools: readonly Tool[] = rows.map(([key, title, description, effect, risk, input]) => ({
  key: `x_ads.${key}`,
  title,
  description,
  effect,
  risk,
  scopes: [],
  inputSchema: inputSchema(input),
}));
