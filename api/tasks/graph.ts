import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { isUuid, uuid } from '../fields/ids.ts';
import { ids } from '../http/openapi/example_values.ts';
import { columnBytes } from '../http/pagination.ts';
import { dependencySchema } from './changes.ts';
import { taskColumns, taskSchema, taskSelectWithoutSpec, toTask } from './schema.ts';

// A limit of the organization may allow a hierarchy that no response should hold.
const MAX_TASKS = 5_000;
const MAX_RELATED = 1_000;
const MAX_EDGES = 20_000;
/** Of the specs and results, without the text of inline inputs. */
const MAX_BYTES = 8_388_608;

/** The graph projection. */
export const taskGraphSchema = z
  .object({
    focusTaskId: uuid.describe('The task that was asked for.'),
    rootTaskId: uuid.describe('The top of its hierarchy.'),
    tasks: z.array(taskSchema).describe('The hierarchy, oldest first: parents before their children.'),
    relatedTasks: z
      .array(taskSchema)
      .describe('Tasks of other hierarchies that wait for one of `tasks`, or that one of `tasks` waits for.'),
    dependencies: z.array(dependencySchema).describe('Dependencies between all of these tasks, oldest first.'),
    truncated: z
      .boolean()
      .describe(
        `True if something is left out: beyond ${MAX_TASKS} tasks, ${MAX_RELATED} related tasks, ${MAX_EDGES} dependencies or 8 MiB of specs and results. The focused task is always included, and no dependency without its two tasks.`,
      ),
  })
  .meta({
    id: 'TaskGraph',
    example: {
      relatedTasks: [],
      dependencies: [{ id: ids.dependency, taskId: ids.task, dependsOnTaskId: ids.prerequisite, required: true }],
      truncated: false,
    },
  });
type TaskGraph = z.output<typeof taskGraphSchema>;

/** Edges column by column: Postgres writes such JSON several times faster than an object an edge. */
const edgeColumns = z
  .object({
    ids: z.array(z.string()),
    task_ids: z.array(z.string()),
    depends_on_task_ids: z.array(z.string()),
    required: z.array(z.boolean()),
  })
  .pipe(
    mapping((edges) =>
      edges.ids.map((id, place) => ({
        id,
        taskId: edges.task_ids[place] ?? '',
        dependsOnTaskId: edges.depends_on_task_ids[place] ?? '',
        required: edges.required[place] ?? false,
      })),
    ),
  );

/** A task of the graph. With the focused one comes what there is beside the tasks. */
const nodeRow = taskColumns
  .extend({ is_related: z.boolean(), edges: edgeColumns.nullable(), truncated: z.boolean().nullable() })
  .pipe(
    mapping((row) => ({
      task: toTask(row),
      related: row.is_related,
      focus: row.edges === null ? undefined : { dependencies: row.edges, truncated: row.truncated === true },
    })),
  );

/** The columns of a task, with a spec whose inline inputs say what they are and not what they hold. */
const nodeSelect = sql.fragment`
  ${taskSelectWithoutSpec}, case when t.spec -> 'inputs' @> '[{"kind": "inline"}]'
    then jsonb_set(t.spec, '{inputs}', (select jsonb_agg(i - 'text') from jsonb_array_elements(t.spec -> 'inputs') i))
    else t.spec end as spec`;

/**
 * The hierarchy of a task with its edges and the tasks at their other ends, as one statement sees them (docs/interface.md 2.9.10).
 * @throws Problem 404 `task_graph_not_found`
 */
export async function getTaskGraph(db: Queries, organizationId: string, ref: string): Promise<TaskGraph> {
  const match = isUuid(ref)
    ? sql.fragment`t.id = ${ref}::uuid`
    : sql.fragment`t.identifier_scope = ${ref.slice(0, 1)} and t.identifier_number = ${Number(ref.slice(2))}`;
  const nodes = await db.any(
    scoped(
      organizationId,
      nodeRow,
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
        ), nodes as materialized (
          select id, false as is_related from hierarchy union all select id, true from related
        ), roots as materialized (
          select r.id, r.graph_revision, r.spend_limited
          from (select root_task_id as id from focus
                union select unnest(array[e.root_task_id, e.depends_on_root_task_id]) from edges e
                where e.root_task_id <> e.depends_on_root_task_id) u
          join app.tasks r on r.organization_id = scope.organization_id and r.id = u.id
        )
        select ${nodeSelect}, nodes.is_related,
          case when t.id = focus.id then (
            select json_build_object('ids', coalesce(array_agg(s.id), '{}'), 'task_ids', coalesce(array_agg(s.task_id), '{}'),
              'depends_on_task_ids', coalesce(array_agg(s.depends_on_task_id), '{}'),
              'required', coalesce(array_agg(s.required), '{}'))
            from (select * from shown order by created_at, id) s) end as edges,
          case when t.id = focus.id then (select count(*) from hierarchy) < (select count(*) from first)
            or (select count(*) from related) < (select count(*) from beyond)
            or (select count(*) from shown) < (select count(*) from edges) end as truncated
        from focus
        cross join nodes
        join app.tasks t on t.organization_id = scope.organization_id and t.id = nodes.id
        join roots r on r.id = t.root_task_id
        order by t.created_at, t.depth, t.identifier_number, t.id`,
    ),
  );
  const focused = nodes.find((node) => node.focus);
  if (!focused?.focus) throw new Problem(404, 'task_graph_not_found', 'There is no task with this id or identifier.');
  return {
    focusTaskId: focused.task.id,
    rootTaskId: focused.task.rootTaskId ?? focused.task.id,
    tasks: nodes.filter((node) => !node.related).map((node) => node.task),
    relatedTasks: nodes.filter((node) => node.related).map((node) => node.task),
    ...focused.focus,
  };
}
