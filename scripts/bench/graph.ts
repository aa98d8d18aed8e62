import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { callWith } from '../../engine/db/function_text.ts';
import { client } from './http_lifecycle.ts';
import { percentile } from './measure.ts';

const OWNER = { kind: 'owner' };
/** Initiatives between the root and its tasks. */
const GROUPS = 40;

export type GraphSize = Readonly<{ tasks: number; edges: number }>;
export type GraphTime = Readonly<{ name: string; p50: number; max: number }>;

/**
 * A root with initiatives below it and tasks below these, as rows that wait for each other; whatever needs nothing is then
 * settled. Every task needs up to a few of those before it, so that the graph has no cycle. @returns the root and the
 * task that fails for the retry.
 */
export async function seedGraph(
  db: pg.Pool,
  organizationId: string,
  size: GraphSize,
): Promise<{ root: string; first: string }> {
  const groups = Math.min(GROUPS, Math.floor(size.tasks / 10));
  const leaves = size.tasks - groups - 1;
  const ids = Array.from({ length: size.tasks }, () => randomUUID());
  const connection = await db.connect();
  try {
    await connection.query('begin');
    await connection.query(
      `insert into app.tasks (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
          owner_agent_profile_id, kind, status, phase, title, spec, blockers, dedupe_key, created_at)
        select $1, t.id, case when t.n <= $3 + 1 then 'I' else 'T' end, i.last_number + t.n,
          case when t.n = 1 then null when t.n <= $3 + 1 then ($2::uuid[])[1] else ($2::uuid[])[2 + t.n % $3] end,
          ($2::uuid[])[1], case when t.n = 1 then 0 when t.n <= $3 + 1 then 1 else 2 end, p.id,
          case when t.n <= $3 + 1 then 'initiative' else 'task' end, 'blocked', 'execute', 'Task ' || t.n,
          app.task_spec_defaults(case when t.n <= $3 + 1 then 'initiative' else 'task' end)
            || case when t.n <= $3 + 1 then '{"budget": {"maxAgentRuns": 500, "maxAttemptsPerPhase": 3, "maxReplans": 0}}'::jsonb
              else '{}' end,
          '[{"kind": "children"}]', t.id::text, clock_timestamp()
        from unnest($2::uuid[]) with ordinality t(id, n),
          (select id from app.agent_profiles where organization_id = $1 order by key limit 1) p,
          (select max(last_number) as last_number from app.task_identifiers where organization_id = $1) i`,
      [organizationId, ids, groups],
    );
    await connection.query(
      'update app.task_identifiers set last_number = last_number + $2 where organization_id = $1',
      [organizationId, size.tasks],
    );
    // Task n needs some of the 40 before it: the k-th edge the one 1 + (7k mod 40) before.
    await connection.query(
      `insert into app.task_dependencies (organization_id, task_id, depends_on_task_id, root_task_id, depends_on_root_task_id)
        select distinct $1::uuid, ($2::uuid[])[n], ($2::uuid[])[n - back], ($2::uuid[])[1], ($2::uuid[])[1]
        from (select $3::int + 2 + 40 + e % ($4::int - 40) as n, 1 + (7 * (e / ($4::int - 40)) + e) % 40 as back
              from generate_series(0, $5::int - 1) e) x`,
      [organizationId, ids, groups, leaves, size.edges],
    );
    await connection.query("select set_config('app.organization_id', $1, true)", [organizationId]);
    await connection.query(
      `select app.task_settle($1, t.id) from app.tasks t where t.organization_id = $1 and t.root_task_id = $2
       order by t.depth desc, t.identifier_number`,
      [organizationId, ids[0]],
    );
    await connection.query('commit');
  } catch (error) {
    await connection.query('rollback');
    throw error;
  } finally {
    connection.release();
  }
  return { root: ids[0] ?? '', first: ids[groups + 1] ?? '' };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Graph and explain over HTTP; cancel of the whole hierarchy and retry of a failure that ended all of it, by SQL. */
export async function measureGraph(
  db: pg.Pool,
  api: string,
  organizationId: string,
  size: GraphSize,
  rounds: number,
): Promise<readonly GraphTime[]> {
  await db.query(
    `update app.organizations set config = jsonb_set(config, '{limits,maxInitiativeDescendants}', '10000') where id = $1`,
    [organizationId],
  );
  const samples: Record<string, number[]> = { graph: [], explain: [], cancel: [], retry: [] };
  const { get, close } = client(api, 1);
  for (let round = 0; round < rounds + 1; round += 1) {
    const { root, first } = await seedGraph(db, organizationId, size);
    await db.query('analyze app.tasks, app.task_dependencies, app.run_requests');
    const read = async (path: string) => {
      const { status } = await get(`/organizations/${organizationId}/tasks/${root}/${path}`, undefined);
      if (status !== 200) throw new Error(`${path}: ${status}`);
    };
    const fail = () =>
      db.query(
        `with scope as materialized (select set_config('app.organization_id', $1::text, true))
       select app.task_fail($1::uuid, $2::uuid, '{"code": "broken", "message": "It broke", "retryable": false}') from scope`,
        [organizationId, first],
      );
    const graph = await timed(() => read('graph'));
    const explain = await timed(() => read('explain'));
    await fail();
    const times = {
      graph,
      explain,
      retry: await timed(() => callWith(db, 'task_retry', { organizationId, taskRef: first, actor: OWNER })),
      cancel: await timed(() => callWith(db, 'task_cancel', { organizationId, taskRef: root, actor: OWNER })),
    };
    // The first round warms everything up.
    if (round > 0) for (const [name, time] of Object.entries(times)) samples[name]?.push(time);
  }
  close();
  return Object.entries(samples).map(([name, all]) => ({ name, p50: percentile(all, 0.5), max: Math.max(...all) }));
}
