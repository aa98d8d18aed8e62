import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { organizationNotFound, requireOrganization, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { keyColumns, keyset, type Pagination, pageQuery } from '../http/pagination.ts';

export const INBOX_KINDS = ['question', 'notification', 'approval', 'reconciliation'] as const;
export const INBOX_STATUSES = ['open', 'responded', 'acknowledged', 'resolved', 'cancelled'] as const;

/** Contract 2.11, decisions 7. */
export const inboxItemSchema = z
  .object({
    id: z.string(),
    organizationId: z.string(),
    kind: z.enum(INBOX_KINDS),
    status: z.enum(INBOX_STATUSES).describe('resolved: by its action; cancelled: its task ended.'),
    purpose: z
      .string()
      .describe(
        'What an answer does: `repair` (a result was refused twice), `budget`, `needs_input` and `agent` (questions of a run); `prerequisite`, `schedule` and `agent` for notifications.',
      ),
    blocking: z.boolean().describe('Its task waits for the answer.'),
    title: z.string(),
    body: z.string(),
    options: z.array(z.string()),
    allowFreeText: z.boolean().describe('False: the response is one of the options.'),
    taskId: z.string().nullable(),
    runId: z.string().nullable(),
    actionId: z.string().nullable(),
    chatId: z.string().nullable(),
    scheduleId: z.string().nullable(),
    response: z.string().nullable(),
    note: z.string().nullable(),
    respondedAt: dateTime.nullable().describe('When it was responded to or acknowledged.'),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'HumanInboxItem' });
export type InboxItem = z.output<typeof inboxItemSchema>;

/** A row of `app.human_inbox_items`, as `to_jsonb` writes it. */
const inboxItemRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    kind: z.enum(INBOX_KINDS),
    status: z.enum(INBOX_STATUSES),
    purpose: z.string(),
    blocking: z.boolean(),
    title: z.string(),
    body: z.string(),
    options: z.array(z.string()),
    allow_free_text: z.boolean(),
    task_id: z.string().nullable(),
    run_id: z.string().nullable(),
    action_id: z.string().nullable(),
    chat_id: z.string().nullable(),
    schedule_id: z.string().nullable(),
    response: z.string().nullable(),
    note: z.string().nullable(),
    responded_at: nullableTimestamp,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): InboxItem => ({
        id: row.id,
        organizationId: row.organization_id,
        kind: row.kind,
        status: row.status,
        purpose: row.purpose,
        blocking: row.blocking,
        title: row.title,
        body: row.body,
        options: row.options,
        allowFreeText:
          row.kind === 'question' && row.allow_free_text && row.purpose !== 'repair' && row.purpose !== 'budget',
        taskId: row.task_id,
        runId: row.run_id,
        actionId: row.action_id,
        chatId: row.chat_id,
        scheduleId: row.schedule_id,
        response: row.response,
        note: row.note,
        respondedAt: row.responded_at,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

/** What a transition of an item returns. */
export const inboxItemAnswer = z.object({ item: inboxItemRow });
const inboxItemPageRow = z.object({ item: inboxItemRow, ...keyColumns });

/** Query of the list (contract 4.8, decisions 7). */
export const inboxListQuery = {
  ...pageQuery(),
  status: z.enum(INBOX_STATUSES).default('open'),
  kind: z.enum(INBOX_KINDS).optional(),
};
const querySchema = z.object(inboxListQuery);

/**
 * One page of an organization's inbox, newest first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listInboxItems(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: InboxItem[]; pagination: Pagination }> {
  const { cursor, limit, status, kind } = query;
  const page = keyset({
    list: `human_inbox_items:${organizationId}`,
    sort: { name: 'createdAt', key: sql.fragment`i.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`i.id`,
    filters: { status, kind },
    cursor,
    limit,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      inboxItemPageRow,
      sql.fragment`
        select to_jsonb(i) as item, ${page.columns}
        from app.human_inbox_items i
        where i.organization_id = scope.organization_id and ${conditions('i', { status, kind })} and ${page.where}
        ${page.orderAndLimit}`,
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.item);
}

/** @throws Problem 404 `organization_not_found` or `human_inbox_item_not_found` */
export async function getInboxItem(db: Queries, organizationId: string, id: string): Promise<InboxItem> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      inboxItemAnswer,
      sql.fragment`
        select to_jsonb(i) as item
        from app.human_inbox_items i
        where i.organization_id = scope.organization_id and i.id = ${id}::uuid`,
    ),
  );
  if (found) return found.item;
  await requireOrganization(db, organizationId);
  throw new Problem(404, 'human_inbox_item_not_found', 'There is no inbox item with this id.');
}

/** Open items by kind (contract 2.11). */
export const inboxSummarySchema = z
  .object({
    questions: z.int(),
    notifications: z.int(),
    approvals: z.int(),
    reconciliation: z.int(),
    total: z.int(),
  })
  .meta({ id: 'InboxSummary' });

/** @throws Problem 404 `organization_not_found` */
export async function summarizeInbox(
  db: Queries,
  organizationId: string,
): Promise<z.output<typeof inboxSummarySchema>> {
  const counted = await db.maybeOne(
    scoped(
      organizationId,
      inboxSummarySchema,
      sql.fragment`
        select
          count(*) filter (where i.kind = 'question')::int as questions,
          count(*) filter (where i.kind = 'notification')::int as notifications,
          count(*) filter (where i.kind = 'approval')::int as approvals,
          count(*) filter (where i.kind = 'reconciliation')::int as reconciliation,
          count(*)::int as total
        from app.human_inbox_items i
        where i.organization_id = scope.organization_id and i.status = 'open'`,
    ),
  );
  if (!counted) throw organizationNotFound();
  return counted;
}

export const inboxItemExample = {
  id: '0199f2f8-3c4d-7e5f-8a6b-7c8d9e0f1a2b',
  organizationId: '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e',
  kind: 'question',
  status: 'open',
  purpose: 'agent',
  blocking: true,
  title: 'Which of the two price lists holds?',
  body: 'prices.csv and prices-2026.csv differ in 14 rows.',
  options: ['prices.csv', 'prices-2026.csv'],
  allowFreeText: true,
  taskId: '0199f2f7-5b2e-7f43-9c1d-0a8e4d6b7c21',
  runId: '0199f2f7-6c3f-7a54-8d2e-1b9f5e7c8d32',
  actionId: null,
  chatId: null,
  scheduleId: null,
  response: null,
  note: null,
  respondedAt: null,
  createdAt: '2026-01-31T09:30:00.000Z',
  updatedAt: '2026-01-31T09:30:00.000Z',
} satisfies InboxItem;
