import { type FragmentSqlToken, sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { scoped } from '../../engine/db/scope.ts';
import { columnBytes } from '../http/pagination.ts';
import { isUuid } from './ids.ts';
import { taskRow, taskSchema, taskSelectWithoutSpec } from './task.ts';
import { dependencySchema } from './task_changes.ts';
import { dependencyRow } from './task_dependencies.ts';

// A limit of the organization may allow a hierarchy that no answer should hold.
const MAX_TASKS = 5_000;
const MAX_RELATED = 1_000;
const MAX_EDGES = 20_000;
/** Of the specs and results, without the text of inline inputs. */
const MAX_BYTES = 8_388_608;

/** Contract 2.9: the graph projection. */
export const taskGraphSchema = z
  .object({
    focusTaskId: z.string(),
    rootTaskId: z.string(),
    tasks: z
      .array(taskSchema)
      .describe('The hierarchy of the focused task, oldest first: parents before their children.'),
    relatedTasks: z
      .array(taskSchema)
      .describe('Tasks of other hierarchies that wait for one of these, or that one of these waits for.'),
    dependencies: z.array(dependencySchema).describe('The edges between all of these, oldest first.'),
    truncated: z
      .boolean()
      .describe(
        `True where tasks or edges are left out: beyond ${MAX_TASKS} tasks, ${MAX_RELATED} related tasks, ${MAX_EDGES} edges or 8 MiB of specs and results. The focused task is always there, and no edge without its ends.`,
      ),
  })
  .meta({ id: 'TaskGraph' });
type TaskGraph = z.output<typeof taskGraphSchema>;

const graphRow = z
  .object({
    focus_task_id: z.string(),
    root_task_id: z.string(),
    tasks: z.array(taskRow),
    related: z.array(taskRow),
    dependencies: z.array(dependencyRow),
    truncated: z.boolean(),
  })
  .transform(
    (row): TaskGraph => ({
      focusTaskId: row.focus_task_id,
      rootTaskId: row.root_task_id,
      tasks: row.tasks,
      relatedTasks: row.related,
      dependencies: row.dependencies,
      truncated: row.truncated,
    }),
  );

/** The columns of a task, with a spec whose inline inputs say what they are and not what they hold. */
const nodeSelect = sql.fragment`
  ${taskSelectWithoutSpec}, case when t.spec -> 'inputs' @> '[{"kind": "inline"}]'
    then jsonb_set(t.spec, '{inputs}', (select jsonb_agg(i - 'text') from jsonb_array_elements(t.spec -> 'inputs') i))
    else t.spec end as spec`;

/** The rows of the tasks that `ids` selects, as one JSON array, oldest first. */
function nodes(ids: FragmentSqlToken) {
  return sql.fragment`
    select coalesce(json_agg(n order by n.created_at, n.depth, n.identifier_number, n.id), '[]') from (
      select ${nodeSelect}
      from app.tasks t
      join app.tasks r on r.organization_id = t.organization_id and r.id = t.root_task_id
      where t.organization_id = scope.organization_id and t.id in (${ids})
    ) n`;
}

/**
 * The hierarchy of a task with its edges and the tasks at their other ends, as one statement sees them (contract 2.9).
 * @throws Problem 404 `task_graph_not_found`
 */
export async function getTaskGraph(db: Queries, organizationId: string, ref: string): Promise<TaskGraph> {
  const match = isUuid(ref)
    ? sql.fragment`t.id = ${ref}::uuid`
    : sql.fragment`t.identifier_scope = ${ref.slice(0, 1)} and t.identifier_number = ${Number(ref.slice(2))}`;
  const graph = await db.maybeOne(
    scoped(
      organizationId,
      graphRow,
      sql.fragment`
        with focus as materialized (
          select t.id, t.root_task_id from app.tasks t
          where t.organization_id = scope.organization_id and ${match}
        ), first as materialized (
          select t.id, t.created_at, ${columnBytes(sql.fragment`t.spec`)} + ${columnBytes(sql.fragment`t.result`)} as bytes
          from focus join app.tasks t on t.organization_id = scope.organization_id and t.root_task_id = focus.root_task_id
          order by t.created_at, t.id
          limit ${MAX_TASKS + 1}
        ), hierarchy as materialized (
          select p.id from (
            select f.id, row_number() over w as place, sum(f.bytes) over w - f.bytes as bytes_before
            from (select id, created_at, bytes, false as focused from first where id not in (select id from focus)
                  union all select id, null, coalesce((select g.bytes from first g where g.id = focus.id), 0), true from focus) f
            window w as (order by f.focused desc, f.created_at, f.id rows unbounded preceding)
          ) p
          where p.place <= ${MAX_TASKS} and p.bytes_before < ${MAX_BYTES}
        ), edges as materialized (
          (select d.* from hierarchy join app.task_dependencies d
             on d.organization_id = scope.organization_id and d.task_id = hierarchy.id
           limit ${MAX_EDGES + 1})
          union all
          (select d.* from focus join app.task_dependencies d
             on d.organization_id = scope.organization_id and d.depends_on_root_task_id = focus.root_task_id
               and d.root_task_id <> d.depends_on_root_task_id
           limit ${MAX_EDGES + 1})
        ), beyond as materialized (
          select distinct case when e.root_task_id = focus.root_task_id then e.depends_on_task_id else e.task_id end as id
          from edges e cross join focus
          where e.root_task_id <> e.depends_on_root_task_id
          limit ${MAX_RELATED + 1}
        ), related as materialized (
          select id from beyond order by id limit ${MAX_RELATED}
        ), shown as materialized (
          select e.id, e.task_id, e.depends_on_task_id, e.required, e.created_at from edges e
          where e.task_id in (select id from hierarchy union all select id from related)
            and e.depends_on_task_id in (select id from hierarchy union all select id from related)
          order by e.created_at, e.id
          limit ${MAX_EDGES}
        )
        select focus.id as focus_task_id, focus.root_task_id,
          (${nodes(sql.fragment`select id from hierarchy`)}) as tasks,
          (${nodes(sql.fragment`select id from related`)}) as related,
          (select coalesce(json_agg(s order by s.created_at, s.id), '[]') from shown s) as dependencies,
          (select count(*) from hierarchy) < (select count(*) from first)
            or (select count(*) from related) < (select count(*) from beyond)
            or (select count(*) from shown) < (select count(*) from edges) as truncated
        from focus`,
    ),
  );
  if (!graph) throw new Problem(404, 'task_graph_not_found', 'There is no task with this id or identifier.');
  return graph;
}
