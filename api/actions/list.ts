import { type FragmentSqlToken, sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { uuid } from '../fields/ids.ts';
import { columnBytes, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { queryBoolean } from '../http/query.ts';
import { type Action, actionPageRow, actionResult, actionRisk, actionStatus } from './schema.ts';
import { ACTION_KINDS } from './states.ts';

/** Query of the action lists. */
export const actionListQuery = {
  ...pageQuery(),
  status: actionStatus.optional().describe('Actions with this status.'),
  integrationId: uuid.optional().describe('Actions of this integration.'),
  taskId: uuid.optional().describe('Actions of this task.'),
  runId: uuid.optional().describe('Actions that this run proposed.'),
  agentProfileId: uuid.optional().describe('Actions that this profile proposed.'),
  kind: z.enum(ACTION_KINDS).optional().describe('Actions of this kind.'),
  risk: actionRisk.optional().describe('Actions of this risk.'),
  decided: queryBoolean('Whether an owner has approved or rejected it.').optional(),
};
const querySchema = z.object(actionListQuery);

/** Whose actions are read: those of the task or else of the chat, and none where it has neither. Undefined: all. */
export type ActionScope = Readonly<{ taskId: string | null; chatId: string | null }> | undefined;

function ofScope(scope: ActionScope): FragmentSqlToken {
  if (scope === undefined) return sql.fragment`true`;
  const { taskId, chatId } = scope;
  return taskId === null ? sql.fragment`a.chat_id = ${chatId}::uuid` : sql.fragment`a.task_id = ${taskId}::uuid`;
}

const record = sql.fragment`
  to_jsonb(a) || jsonb_build_object('files', (
    select coalesce(jsonb_agg(jsonb_build_object('argument', f.argument, 'name', f.name, 'contentType', f.content_type,
        'sizeBytes', f.size_bytes, 'sha256', f.sha256) order by f.argument), '[]')
    from app.action_files f
    where f.organization_id = a.organization_id and f.action_id = a.id)) as action`;

/**
 * One page of an organization's actions, newest first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listActions(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
  scope?: ActionScope,
): Promise<{ data: Action[]; pagination: Pagination }> {
  const filters = {
    status: query.status,
    integration_id: query.integrationId,
    task_id: query.taskId,
    run_id: query.runId,
    agent_profile_id: query.agentProfileId,
    kind: query.kind,
    risk: query.risk,
  };
  const decided =
    query.decided === undefined
      ? sql.fragment`true`
      : query.decided
        ? sql.fragment`a.decision is not null`
        : sql.fragment`a.decision is null`;
  const page = keyset({
    list: `actions:${organizationId}:${scope?.taskId ?? scope?.chatId ?? ''}`,
    sort: { name: 'createdAt', key: sql.fragment`a.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`a.id`,
    filters: { ...filters, decided: query.decided === undefined ? undefined : String(query.decided) },
    cursor: query.cursor,
    limit: query.limit,
    bytes: sql.fragment`${columnBytes(sql.fragment`a.arguments`)} + ${columnBytes(sql.fragment`a.arguments_schema`)} + ${columnBytes(sql.fragment`a.result`)}`,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      actionPageRow,
      page.bounded(sql.fragment`
        select ${record}, ${page.columns}
        from app.actions a
        where a.organization_id = scope.organization_id and ${conditions('a', filters)} and ${ofScope(scope)}
          and ${decided} and ${page.where}
        ${page.orderAndLimit}`),
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.action);
}

/** @throws Problem 404 `organization_not_found` or `action_not_found` */
export async function getAction(
  db: Queries,
  organizationId: string,
  actionId: string,
  scope?: ActionScope,
): Promise<Action> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      actionResult,
      sql.fragment`
        select ${record}
        from app.actions a
        where a.organization_id = scope.organization_id and a.id = ${actionId}::uuid and ${ofScope(scope)}`,
    ),
  );
  if (found) return found.action;
  await requireOrganization(db, organizationId);
  throw new Problem(404, 'action_not_found', 'There is no action with this id.');
}
