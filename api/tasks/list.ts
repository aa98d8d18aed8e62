import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { isUuid, uuid } from '../fields/ids.ts';
import { columnBytes, keyset, type Pagination, pageQuery, type Sort } from '../http/pagination.ts';
import { TASK_KINDS, type Task, taskPageRow, taskPhase, taskRow, taskSelect, taskStatus } from './schema.ts';

const sorts = {
  createdAt: { key: sql.fragment`t.created_at`, type: 'timestamptz' },
  updatedAt: { key: sql.fragment`t.updated_at`, type: 'timestamptz' },
  priority: { key: sql.fragment`t.priority`, type: 'integer' },
  dueAt: { key: sql.fragment`t.due_order`, type: 'timestamptz' },
  identifierNumber: { key: sql.fragment`t.identifier_number`, type: 'integer' },
} as const satisfies Record<string, Pick<Sort, 'key' | 'type'>>;

/** Query of a task list. */
export const taskListQuery = {
  ...pageQuery(),
  sortBy: z
    .enum(['createdAt', 'updatedAt', 'priority', 'dueAt', 'identifierNumber'])
    .default('createdAt')
    .describe('The field to sort by; ties are broken by id.'),
  sortDirection: z
    .enum(['asc', 'desc'])
    .default('desc')
    .describe('Sorted by `dueAt`, tasks without a due date count as latest.'),
  status: taskStatus.optional().describe('Tasks with this status.'),
  kind: z.enum(TASK_KINDS).optional().describe('Tasks, or initiatives.'),
  phase: taskPhase.optional().describe('Tasks in this phase.'),
  ownerAgentProfileId: uuid.optional().describe('Tasks of this profile.'),
  parentId: uuid.optional().describe('Tasks directly below this initiative.'),
  rootTaskId: uuid.optional().describe('The task with this id and all tasks below it, if it is a root.'),
  sourceChatId: uuid.optional().describe('Tasks that come from this chat.'),
};
const querySchema = z.object(taskListQuery);

/**
 * One page of an organization's tasks.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listTasks(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: Task[]; pagination: Pagination }> {
  const filters = {
    status: query.status,
    kind: query.kind,
    phase: query.phase,
    owner_agent_profile_id: query.ownerAgentProfileId,
    parent_id: query.parentId,
    root_task_id: query.rootTaskId,
    source_chat_id: query.sourceChatId,
  };
  const page = keyset({
    list: `tasks:${organizationId}`,
    sort: { name: query.sortBy, ...sorts[query.sortBy], direction: query.sortDirection },
    id: sql.fragment`t.id`,
    filters,
    cursor: query.cursor,
    limit: query.limit,
    bytes: sql.fragment`${columnBytes(sql.fragment`t.spec`)} + ${columnBytes(sql.fragment`t.result`)} + ${columnBytes(sql.fragment`t.contract`)}`,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      taskPageRow,
      page.bounded(sql.fragment`
        select ${taskSelect}, ${page.columns}
        from app.tasks t
        join app.organizations o on o.id = t.organization_id
        join app.tasks r on r.organization_id = t.organization_id and r.id = t.root_task_id
        where t.organization_id = scope.organization_id and ${conditions('t', filters)} and ${page.where}
        ${page.orderAndLimit}`),
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.task);
}

/**
 * One task by its UUID or identifier.
 * @throws Problem 404 `task_not_found`
 */
export async function getTask(db: Queries, organizationId: string, ref: string): Promise<Task> {
  const match = isUuid(ref)
    ? sql.fragment`t.id = ${ref}::uuid`
    : sql.fragment`t.identifier_scope = ${ref.slice(0, 1)} and t.identifier_number = ${Number(ref.slice(2))}`;
  const task = await db.maybeOne(
    scoped(
      organizationId,
      taskRow,
      sql.fragment`
        select ${taskSelect}
        from app.tasks t
        join app.tasks r on r.organization_id = t.organization_id and r.id = t.root_task_id
        join app.organizations o on o.id = t.organization_id
        where t.organization_id = scope.organization_id and ${match}`,
    ),
  );
  if (!task) throw new Problem(404, 'task_not_found', 'There is no task with this id or identifier.');
  return task;
}
