import { type PgSelectSingleStep, TYPES } from 'postgraphile/@dataplan/pg';
import { context, loadMany } from 'postgraphile/grafast';
import { type SQL, sql } from 'postgraphile/pg-sql2';
import { extendSchema } from 'postgraphile/utils';

import { functionText } from '../../../engine/db/function_text.ts';
import './grafast_context.ts';

type Row = PgSelectSingleStep;

/** Seconds from one moment to another, to the millisecond, as the database clock has it. */
function seconds($row: Row, from: SQL, to: SQL) {
  return $row.select(sql`round(extract(epoch from ${to} - ${from}), 3)::float8`, TYPES.float);
}

function column($row: Row, name: string): SQL {
  return sql`${$row.getClassStep().alias}.${sql.identifier(name)}`;
}

const clock = sql`clock_timestamp()`;

const EXPLAIN = functionText('task_explain', {
  organizationId: 'one.organization_id',
  taskRef: 'one.id::text',
  limit: '1',
});

type Cause = Readonly<{ kind: string; details: Readonly<Record<string, unknown>> }>;
type Explained = Readonly<{
  place: number;
  explanation: { tasks: { causes: ({ kind: string } & Record<string, unknown>)[] }[] };
}>;

/**
 * Why tasks do not run, in a statement of its own: task_explain sets the tenant of its transaction, and what the same
 * statement read after that would be read as that tenant. So those that are still there are found before the first is
 * explained (the aggregate reads them all); those that are not, as their organization was deleted meanwhile, have no causes.
 */
export async function explain(
  ids: readonly (readonly [string, string])[],
  { shared: withPgClient }: { shared: Grafast.Context['withPgClient'] },
): Promise<readonly (readonly Cause[])[]> {
  const { rows } = await withPgClient(null, (client) =>
    client.query<Explained>({
      text: `with seen as materialized (
               select array_agg(t.organization_id) as organizations, array_agg(t.id) as ids, array_agg(t.place) as places
               from unnest($1::uuid[], $2::uuid[]) with ordinality t(organization_id, id, place)
               join app.tasks k on k.organization_id = t.organization_id and k.id = t.id)
             select one.place::int, ${EXPLAIN} as explanation
             from seen, unnest(seen.organizations, seen.ids, seen.places) one(organization_id, id, place)`,
      values: [ids.map(([organizationId]) => organizationId), ids.map(([, id]) => id)],
    }),
  );
  const explained = new Map(rows.map(({ place, explanation }) => [place, explanation.tasks[0]?.causes ?? []]));
  return ids.map((_, index) => (explained.get(index + 1) ?? []).map(({ kind, ...details }) => ({ kind, details })));
}

/** What an operator wants to know of a row, and no column says. */
export const computedPlugin = extendSchema(
  {
    typeDefs: `
    """One reason why a task does not run at this moment, or how far it has come."""
    type TaskCause {
      """dependency, children, schedule, human, action, budget, profile, waiting, backoff, onboarding, stopped, suspended, organization_capacity, profile_capacity, worker, claimed, dispatch, running, failed or cancelled."""
      kind: String!
      """What belongs to the kind: ids, times, counts."""
      details: JSON!
    }
    extend type Task {
      """Scope and number, as people say it: T-12, I-3."""
      identifier: String!
      """Why it does not run, computed from the facts as they are now; empty once it is completed."""
      causes: [TaskCause!]!
    }
    extend type Run {
      """From its start to its end, or to now, in seconds."""
      durationSeconds: Float!
    }
    extend type RunRequest {
      """How long its lease lasts without a heartbeat, in seconds; negative when it is over and not swept yet, null without one."""
      leaseRemainingSeconds: Float
      """How long it has been waiting for a worker, in seconds: since it was published or, while it is queued, since it became due. Null when it does not wait."""
      queueAgeSeconds: Float
    }`,
    objects: {
      Task: {
        plans: {
          identifier($task: Row) {
            const [scope, number] = [column($task, 'identifier_scope'), column($task, 'identifier_number')];
            return $task.select(sql`${scope} || '-' || ${number}`, TYPES.text);
          },
          causes($task: Row) {
            return loadMany([$task.get('organization_id'), $task.get('id')], {
              load: explain as never,
              shared: context().get('withPgClient'),
            });
          },
        },
      },
      Run: {
        plans: {
          durationSeconds($run: Row) {
            return seconds($run, column($run, 'started_at'), sql`coalesce(${column($run, 'finished_at')}, ${clock})`);
          },
        },
      },
      RunRequest: {
        plans: {
          leaseRemainingSeconds($request: Row) {
            return seconds($request, clock, column($request, 'lease_expires_at'));
          },
          queueAgeSeconds($request: Row) {
            const since = sql`case ${column($request, 'state')} when 'published' then ${column($request, 'published_at')}
            when 'queued' then case when ${column($request, 'due_at')} <= ${clock} then ${column($request, 'due_at')} end end`;
            return seconds($request, since, clock);
          },
        },
      },
    },
  },
  'AdminComputedFields',
);
