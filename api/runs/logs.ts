import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { timestamp } from '../fields/timestamp.ts';
import { invalid } from '../http/errors.ts';
import { integerText, queryInteger } from '../http/query.ts';
import { runNotFound } from './list.ts';
import { LOG_STATES, RUN_STATUSES } from './schema.ts';

export const LOG_CATEGORIES = ['planning', 'execution', 'tool', 'verification', 'sync', 'system'] as const;
export const LOG_STATUSES = ['running', 'completed', 'failed', 'skipped'] as const;

/** Largest sequence of an entry: what a query can name too. */
export const MAX_SEQUENCE = 999_999_999_999_999;

const sequence = integerText({ minimum: 0, maximum: MAX_SEQUENCE, description: 'The sequence of an entry.' });

/** Query of a log page. */
export const runLogsQuery = {
  before: sequence.optional().describe('Entries before this sequence.'),
  after: sequence.optional().describe('Entries after this sequence. 400 together with `before`.'),
  limit: queryInteger({ minimum: 1, maximum: 100, default: 50, description: 'Most entries in the page.' }),
};
const querySchema = z.object(runLogsQuery);

const itemSchema = z.object({
  sequence: z.int(),
  category: z.enum(LOG_CATEGORIES),
  status: z.enum(LOG_STATUSES),
  label: z.string().describe('What the step is, in a few words.'),
  detail: z.string(),
  occurredAt: z.iso.datetime().describe('By the clock of the worker.'),
});

export const runLogPageSchema = z
  .object({
    runStatus: z.enum(RUN_STATUSES),
    logState: z.enum(LOG_STATES),
    items: z.array(itemSchema),
    pagination: z.object({
      oldestSequence: z.int().nullable().describe('For `before`. Null if the page is empty.'),
      newestSequence: z.int().nullable().describe('For `after`. Null if the page is empty.'),
      hasOlder: z.boolean(),
      hasNewer: z.boolean(),
    }),
  })
  .meta({
    id: 'RunLogPage',
    example: {
      runStatus: 'succeeded',
      logState: 'complete',
      items: [
        {
          sequence: 0,
          category: 'planning',
          status: 'completed',
          label: 'Read the task',
          detail: '1 input, 1 acceptance criterion',
          occurredAt: '2026-11-27T09:12:11.402Z',
        },
        {
          sequence: 1,
          category: 'execution',
          status: 'completed',
          label: 'Count the orders by region',
          detail: 'sales.csv, 800 orders',
          occurredAt: '2026-11-27T09:14:27.580Z',
        },
      ],
      pagination: { oldestSequence: 0, newestSequence: 1, hasOlder: false, hasNewer: false },
    },
  });
export type RunLogPage = z.output<typeof runLogPageSchema>;

const itemRow = z
  .object({
    sequence: z.int(),
    category: z.enum(LOG_CATEGORIES),
    status: z.enum(LOG_STATUSES),
    label: z.string(),
    detail: z.string(),
    occurred_at: timestamp,
  })
  .pipe(mapping(({ occurred_at, ...row }) => ({ ...row, occurredAt: occurred_at })));

const pageRow = z.object({
  status: z.enum(RUN_STATUSES),
  log_state: z.enum(LOG_STATES),
  items: z.array(itemRow),
  has_older: z.boolean(),
  has_newer: z.boolean(),
});

/**
 * One page of a run's log, ascending: the latest, or the nearest before or after a sequence. One statement, so that the
 * page, the states and what lies around it are of one moment.
 * @throws Problem 404 `run_not_found`; 400 for before together with after
 */
export async function getRunLogs(
  db: Queries,
  organizationId: string,
  runId: string,
  query: z.output<typeof querySchema>,
): Promise<RunLogPage> {
  const { before, after, limit } = query;
  if (before !== undefined && after !== undefined) {
    throw invalid('after', 'is not possible together with before', 'before_with_after');
  }
  const bound =
    after !== undefined
      ? sql.fragment`and l.sequence > ${after}::bigint`
      : sql.fragment`and (${before ?? null}::bigint is null or l.sequence < ${before ?? null}::bigint)`;
  const order = after !== undefined ? sql.fragment`asc` : sql.fragment`desc`;
  const row = await db.maybeOne(
    scoped(
      organizationId,
      pageRow,
      sql.fragment`
        select u.status, u.log_state, page.items,
          exists (select 1 from app.run_logs l where l.organization_id = u.organization_id and l.run_id = u.id
            and l.sequence < coalesce(page.oldest, ${before ?? (after === undefined ? null : after + 1)}::bigint)) as has_older,
          exists (select 1 from app.run_logs l where l.organization_id = u.organization_id and l.run_id = u.id
            and l.sequence > coalesce(page.newest, ${after ?? (before === undefined ? null : before - 1)}::bigint)) as has_newer
        from app.runs u
        join app.organizations o on o.id = u.organization_id
        cross join lateral (
          select coalesce(jsonb_agg(to_jsonb(e) order by e.sequence), '[]') as items, min(e.sequence) as oldest,
            max(e.sequence) as newest
          from (
            select l.sequence, l.category, l.status, l.label, l.detail, l.occurred_at
            from app.run_logs l
            where l.organization_id = u.organization_id and l.run_id = u.id ${bound}
            order by l.sequence ${order}
            limit ${limit}
          ) e
        ) page
        where u.organization_id = scope.organization_id and u.id = ${runId}::uuid and u.kind = 'task'`,
    ),
  );
  if (!row) throw runNotFound();
  return {
    runStatus: row.status,
    logState: row.log_state,
    items: row.items,
    pagination: {
      oldestSequence: row.items[0]?.sequence ?? null,
      newestSequence: row.items.at(-1)?.sequence ?? null,
      hasOlder: row.has_older,
      hasNewer: row.has_newer,
    },
  };
}
