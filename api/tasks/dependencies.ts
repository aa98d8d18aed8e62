import { sql } from 'slonik';
import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import { scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { keyColumns, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { dependencySchema } from './changes.ts';
import { getTask } from './list.ts';

type Dependency = z.output<typeof dependencySchema>;

const columns = z.object({
  id: z.string(),
  task_id: z.string(),
  depends_on_task_id: z.string(),
  required: z.boolean(),
});

function toDependency(row: z.output<typeof columns>): Dependency {
  return { id: row.id, taskId: row.task_id, dependsOnTaskId: row.depends_on_task_id, required: row.required };
}

/** A row of `app.task_dependencies` → the edge as it goes out. */
export const dependencyRow = columns.pipe(mapping(toDependency));
/** What a transition of an edge returns. */
export const dependencyResult = z.object({ dependency: dependencyRow });

const pageRow = columns.extend(keyColumns);
export const dependencyListQuery = pageQuery();
const querySchema = z.object(dependencyListQuery);

/**
 * One page of what a task waits for, newest edge first.
 * @throws Problem 404 `task_not_found`; 400 for a cursor that does not fit
 */
export async function listDependencies(
  db: Queries,
  organizationId: string,
  ref: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: Dependency[]; pagination: Pagination }> {
  const task = await getTask(db, organizationId, ref);
  const page = keyset({
    list: `task_dependencies:${task.id}`,
    sort: { name: 'createdAt', key: sql.fragment`d.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`d.id`,
    filters: {},
    cursor: query.cursor,
    limit: query.limit,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      pageRow,
      sql.fragment`
        select d.id, d.task_id, d.depends_on_task_id, d.required, ${page.columns}
        from app.task_dependencies d
        where d.organization_id = scope.organization_id and d.task_id = ${task.id}::uuid and ${page.where}
        ${page.orderAndLimit}`,
    ),
  );
  return page.finish(rows, toDependency);
}

/** `DELETE …/tasks/{taskRef}/dependencies/{dependsOnRef}`. `may`: which agents may do it, for the description. */
export function deleteDependencyEndpoint(audience: 'owner' | 'agent', path: `/${string}`, may = ''): Endpoint {
  return endpoint({
    method: 'delete',
    path,
    audience,
    tag: audience === 'owner' ? 'Tasks' : 'Agent tools',
    operationId: audience === 'owner' ? 'deleteTaskDependency' : 'deleteTaskDependencyAsAgent',
    summary: 'Remove a dependency',
    description:
      `The task no longer waits for the prerequisite; if that was its last blocker, it is ready. A repeat is 404. ${may}`.trim(),
    params: { organizationId, taskRef, dependsOnRef: taskRef.describe('The prerequisite.') },
    response: { data: dependencySchema },
    errors: [
      {
        status: 404,
        code: 'task_not_found',
        when: 'there is no such task here, or it does not have this prerequisite',
      },
      { status: 409, code: 'state_conflict', when: 'the task is running or no longer open' },
    ],
    ...(audience === 'owner'
      ? { decision: { action: 'dependency.delete', subject: 'task', id: ['dependency', 'task_id'] } as const }
      : {}),
    async handler({ db, params, caller, decision }) {
      const { dependsOnRef: dependsOn, ...where } = params;
      const args = { ...where, dependsOn, actor: actorOf(caller) };
      const { dependency } = await call(db, 'task_dependency_delete', args, dependencyResult, decision);
      return dependency;
    },
  });
}
