import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { callWith } from '../../engine/db/function_text.ts';

export type Seeded = Readonly<{ organizationIds: readonly string[] }>;

/** Organizations with `profiles` profiles each, with capacity for any number of workers. */
export async function seedOrganizations(db: pg.Pool, count: number, profiles = 3): Promise<Seeded> {
  const organizationIds: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    organizationIds.push(id);
    const fields = { slug: `bench-${id}`, name: `Bench ${index}`, config: { limits: { maxConcurrentRuns: 1000 } } };
    await callWith(db, 'organization_create', { organizationId: id, fields, subject: null });
    for (let profile = 0; profile < profiles; profile += 1) {
      const body = { key: `p${profile}`, name: `P${profile}`, kind: 'operator', config: { maxConcurrentRuns: 1000 } };
      await callWith(db, 'agent_profile_create', { organizationId: id, fields: body });
    }
  }
  return { organizationIds };
}

/**
 * Tasks in bulk, as rows: pending with a published request each, or completed without one. Counters and identifiers are set
 * as the transitions would have left them.
 */
export async function seedTasks(
  db: pg.Pool,
  organizationId: string,
  count: number,
  status: 'pending' | 'completed',
): Promise<void> {
  const client = await db.connect();
  try {
    await client.query('begin');
    // The counters are set below at once; per-row triggers would take minutes for a million.
    await client.query('alter table app.run_requests disable trigger user');
    await client.query(
      `insert into app.tasks (organization_id, id, identifier_scope, identifier_number, root_task_id,
          owner_agent_profile_id, kind, status, phase, title, priority, spec, dedupe_key, due_at, created_at, updated_at,
          completed_at)
        select $1, t.id, 'T', i.last_number + t.n, t.id, p.ids[1 + t.n % cardinality(p.ids)], 'task', $3::text,
          case $3::text when 'pending' then 'execute' else 'closed' end, 'Task ' || t.n, t.n % 7,
          app.task_spec_defaults('task'), t.id::text,
          case when t.n % 3 = 0 then now() + t.n * interval '1 second' end,
          now() - ($2::integer - t.n) * interval '1 second', now() - (t.n::bigint * 7919 % $2::integer) * interval '1 second',
          case $3::text when 'completed' then now() end
        from (select n, app.uuid_v7() as id from generate_series(1, $2::integer) n) t,
          (select array_agg(id) as ids from app.agent_profiles where organization_id = $1) p,
          (select last_number from app.task_identifiers where organization_id = $1 and scope = 'T') i`,
      [organizationId, count, status],
    );
    await client.query(
      `update app.task_identifiers set last_number = last_number + $2 where organization_id = $1 and scope = 'T'`,
      [organizationId, count],
    );
    if (status === 'pending') {
      await client.query(
        `insert into app.run_requests (organization_id, kind, task_id, agent_profile_id, mode, state, published_at)
          select t.organization_id, 'task', t.id, t.owner_agent_profile_id, 'execute', 'published', t.created_at
          from app.tasks t where t.organization_id = $1 and t.status = 'pending' and not exists (
            select 1 from app.run_requests r where r.organization_id = $1 and r.task_id = t.id)`,
        [organizationId],
      );
      await client.query(
        `update app.dispatch_lanes l set ready = (select count(*) from app.run_requests r
            where r.organization_id = l.organization_id and r.agent_profile_id = l.agent_profile_id
              and r.kind = l.kind and r.state = 'published')
          where organization_id = $1`,
        [organizationId],
      );
      await client.query(
        `update app.dispatch d set open_lanes = (select count(*) from app.dispatch_lanes l
            where l.organization_id = d.organization_id and l.kind = d.kind and l.open)
          where organization_id = $1`,
        [organizationId],
      );
    }
    await client.query('alter table app.run_requests enable trigger user');
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}
