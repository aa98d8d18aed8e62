import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import { INSIGHT_REFRESH_REASONS } from '../../engine/insight_states.ts';
import { providers } from '../../engine/providers/index.ts';
import { storedUuid } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import type { Caller } from '../http/caller.ts';
import { ids } from '../http/openapi/example_values.ts';
import { SLUG, WORDS } from '../organizations/changes.ts';

const MAX_KEY = 63;

export const refreshBody = z
  .strictObject({
    connectorKey: z
      .string()
      .max(MAX_KEY)
      .regex(SLUG, WORDS)
      .optional()
      .describe('The key of the integration. Without it: all of them.')
      .meta({ examples: ['web-shop'] }),
  })
  .meta({ id: 'InsightRefreshRequest' });

export const refreshSchema = z
  .object({
    moved: z.array(storedUuid).describe('Sources that are due now.'),
    unchanged: z.array(
      z.object({
        sourceId: storedUuid,
        reason: z
          .enum(INSIGHT_REFRESH_REASONS)
          .describe('The first that holds. `recent`: completed within the last minute, or nothing of it can be moved.'),
      }),
    ),
    discovery: z.array(z.string()).describe('Integrations whose sources are looked for now.'),
  })
  .meta({ id: 'InsightRefresh' });

export const refreshExample = {
  body: { connectorKey: 'web-shop' },
  data: { moved: [ids.source], unchanged: [], discovery: [] },
};

/** Those that have facts to collect. */
const collected = [...providers.values()]
  .filter(({ datasets }) => datasets.some(({ adapter }) => adapter))
  .map(({ key }) => key);

type Asked = Readonly<{
  db: Queries;
  params: Readonly<{ organizationId: string }>;
  body: z.output<typeof refreshBody>;
  caller: Caller;
}>;

/** @throws Problem of the transition */
export function refreshInsights({ db, params, body, caller }: Asked) {
  const args = { ...params, connectorKey: body.connectorKey, providers: collected, actor: actorOf(caller) };
  return call(db, 'insight_refresh', args, refreshSchema);
}
