import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { organizationNotFound, requireOrganization, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';
import { keyColumns, keyset, type Pagination, pageQuery } from '../http/pagination.ts';

export const INBOX_KINDS = ['question', 'notification', 'approval', 'reconciliation'] as const;
export const INBOX_STATUSES = ['open', 'responded', 'acknowledged', 'resolved', 'cancelled'] as const;

export const inboxItemSchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    kind: z
      .enum(INBOX_KINDS)
      .describe('Questions are answered, notifications acknowledged; the others are decided at their action.'),
    status: z
      .enum(INBOX_STATUSES)
      .describe('`resolved`: its action was decided. `cancelled`: its task ended or was retried.'),
    purpose: z
      .string()
      .describe(
        'Why the item exists. Questions: `repair` (a result failed twice), `budget` (a budget is used up), `needs_input` and `agent` (an agent asks), `prerequisite` (the task waits for one that was cancelled or failed). Notifications: `failure` (a task failed and is not tried again), `schedule`, `agent`.',
      ),
    blocking: z.boolean().describe('True: the task waits for the answer.'),
    title: z.string(),
    body: z.string(),
    options: z.array(z.string()).describe('Answers to choose from.'),
    allowFreeText: z.boolean().describe('False: the response is one of the options.'),
    taskId: uuid.nullable(),
    runId: uuid.nullable().describe('The run that asks.'),
    actionId: uuid.nullable(),
    chatId: uuid.nullable(),
    scheduleId: uuid.nullable(),
    response: z.string().nullable(),
    note: z.string().nullable().describe('The note that came with the response.'),
    respondedAt: dateTime.nullable().describe('When the item was answered or acknowledged.'),
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
export const inboxItemResult = z.object({ item: inboxItemRow });
const inboxItemPageRow = z.object({ item: inboxItemRow, ...keyColumns });

/** Query of the list. */
export const inboxListQuery = {
  ...pageQuery(),
  status: z.enum(INBOX_STATUSES).default('open').describe('Items with this status.'),
  kind: z.enum(INBOX_KINDS).optional().describe('Items of this kind.'),
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
      inboxItemResult,
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

/** Open items by kind. */
export const inboxSummarySchema = z
  .object({
    questions: z.int(),
    notifications: z.int(),
    approvals: z.int(),
    reconciliation: z.int(),
    total: z.int(),
  })
  .meta({
    id: 'InboxSummary',
    description: 'Numbers of open items.',
    example: { questions: 2, notifications: 1, approvals: 0, reconciliation: 0, total: 3 },
  });

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
  id: ids.inboxItem,
  organizationId: ids.organization,
  kind: 'question',
  status: 'open',
  purpose: 'agent',
  blocking: true,
  title: 'Should the report count returns as negative sales?',
  body: 'The export has a column for returns. The last report left them out.',
  options: ['Count returns', 'Leave returns out'],
  allowFreeText: true,
  taskId: ids.task,
  runId: ids.run,
  actionId: null,
  chatId: null,
  scheduleId: null,
  response: null,
  note: null,
  respondedAt: null,
  createdAt: '2026-11-27T09:20:42.001Z',
  updatedAt: '2026-11-27T09:20:42.001Z',
} satisfies InboxItem;
