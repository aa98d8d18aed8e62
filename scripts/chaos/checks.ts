import type pg from 'pg';
import type { Facts } from './facts.ts';

export type Violations = Record<string, readonly unknown[]>;

export type Rule<F> = Readonly<{
  /** Finds the rows that break it. */
  query: string;
  /** `$1`: a JSON array of what this side knows. */
  known?: (facts: F) => readonly unknown[];
}>;
export type Rules<F> = Readonly<Record<string, Rule<F>>>;

export type Queries = Pick<pg.Pool, 'query'>;

const capacity = (table: 'dispatch' | 'dispatch_lanes', columns: string, same: string) => `
  select ${columns}, c.capacity, count(*)::int as runs
  from app.${table} c
  join app.run_requests r on r.organization_id = c.organization_id and r.kind = c.kind ${same}
    and r.state = 'started' and r.lease_expires_at > clock_timestamp()
  join app.runs u on u.organization_id = r.organization_id and u.id = r.run_id and u.status in ('starting', 'running')
  group by ${columns}, c.capacity having count(*) > c.capacity`;

/** At any moment, also between a kill and its recovery. */
const always: Rules<unknown> = {
  'an organization holds no more than its capacity': {
    query: 'select organization_id, kind, held, capacity from app.dispatch where held > capacity',
  },
  'a profile holds no more than its capacity': {
    query: `select organization_id, agent_profile_id, kind, held, capacity from app.dispatch_lanes where held > capacity`,
  },
  'an organization runs no more than its capacity': {
    query: capacity('dispatch', 'c.organization_id', ''),
  },
  'a profile runs no more than its capacity': {
    query: capacity(
      'dispatch_lanes',
      'c.organization_id, c.agent_profile_id',
      'and r.agent_profile_id = c.agent_profile_id',
    ),
  },
};

/** When all work is done, whatever it was. */
export const atRest: Rules<unknown> = {
  'the attempts of a request are 1 to n, each once': {
    query: `select r.organization_id, r.id, r.attempt, array_agg(u.attempt order by u.attempt) as runs
      from app.run_requests r
      left join app.runs u on u.organization_id = r.organization_id and u.run_request_id = r.id
      group by r.organization_id, r.id, r.attempt
      having coalesce(array_agg(u.attempt order by u.attempt) filter (where u.id is not null), '{}')
        <> array(select generate_series(1, r.attempt))`,
  },
  'no run is active': {
    query: `select organization_id, id, task_id, status from app.runs where status in ('starting', 'running')`,
  },
  'no request, claim or lease is left': {
    query: `select organization_id, id, task_id, state, attempt, worker_id, lease_expires_at from app.run_requests
      where state not in ('finished', 'cancelled') or lease_expires_at is not null or lease_secret_hash is not null`,
  },
  'nothing is counted as ready or held': {
    query: `select organization_id, kind, agent_profile_id, ready, held from app.dispatch_lanes where ready + held > 0
      union all select organization_id, kind, null, open_lanes, held from app.dispatch where open_lanes + held > 0`,
  },
  'no job has failed for good': {
    query: `select id, task_identifier, attempts, last_error from graphile_worker.jobs
      where attempts >= max_attempts and locked_at is null`,
  },
};

/** When all tasks are done. */
const afterwards: Rules<Facts> = {
  ...atRest,
  'every task is completed': {
    query: `select t.organization_id, t.id, t.title, t.status, t.blockers, t.error, r.state, r.attempt, r.due_at,
        r.lease_expires_at, r.parked
      from app.tasks t
      left join app.run_requests r on r.organization_id = t.organization_id and r.task_id = t.id
        and r.state not in ('finished', 'cancelled')
      where t.status <> 'completed'`,
  },
  'a task has exactly one successful run, an initiative none': {
    query: `select t.organization_id, t.id, t.kind, n.succeeded
      from app.tasks t
      cross join lateral (select count(*)::int as succeeded, array_agg(u.id) as run_ids from app.runs u
        where u.organization_id = t.organization_id and u.task_id = t.id and u.status = 'succeeded') n
      where n.succeeded <> case t.kind when 'task' then 1 else 0 end`,
  },
  'the result of a task is that of its successful run, which passed': {
    query: `select t.organization_id, t.id, u.id as run_id, t.result, u.output
      from app.tasks t
      join app.runs u on u.organization_id = t.organization_id and u.task_id = t.id and u.status = 'succeeded'
      where t.result is distinct from u.output -> 'result'
        or t.result #>> '{completion,disposition}' is distinct from 'passed'
        or t.result #> '{completion,runIds}' is distinct from jsonb_build_array(u.id)`,
  },
  'no attempt is counted twice': {
    query: `select t.organization_id, t.id, t.agent_run_count, n.runs, n.starts
      from app.tasks t
      cross join lateral (
        select (select count(*)::int from app.runs u where u.organization_id = t.organization_id and u.task_id = t.id) as runs,
          (select coalesce(sum(r.attempt), 0)::int from app.run_requests r
             where r.organization_id = t.organization_id and r.task_id = t.id) as starts) n
      where t.agent_run_count <> n.runs or n.runs <> n.starts`,
  },
  'an accepted task is made, exactly once, and no other': {
    known: (facts) => facts.created,
    query: `with known as (
        select * from jsonb_to_recordset($1) k("organizationId" uuid, title text, kind text, id uuid))
      select coalesce(k."organizationId", t.organization_id) as organization_id, coalesce(k.title, t.title) as title,
        k.id as confirmed, t.id as made
      from known k
      full join app.tasks t on t.organization_id = k."organizationId" and t.title = k.title
        and t.kind = k.kind and t.id = k.id
      where k.id is null or t.id is null`,
  },
  'a confirmed start is kept': {
    known: (facts) => facts.starts,
    query: `select k.*, u.attempt as kept
      from jsonb_to_recordset($1) k("organizationId" uuid, "runId" uuid, attempt int)
      left join app.runs u on u.organization_id = k."organizationId" and u.id = k."runId"
      where u.attempt is distinct from k.attempt`,
  },
  'a confirmed end is kept': {
    known: (facts) => facts.ends,
    query: `select k.*, u.status as kept
      from jsonb_to_recordset($1) k("organizationId" uuid, "runId" uuid, status text)
      left join app.runs u on u.organization_id = k."organizationId" and u.id = k."runId"
      where u.status is distinct from k.status`,
  },
};

/** What breaks the rules, by rule. `sql`: above row security. */
export async function broken<F>(sql: Queries, rules: Rules<F>, facts?: F): Promise<Violations> {
  const found: Violations = {};
  for (const [name, { query, known }] of Object.entries(rules)) {
    const values = known && facts ? [JSON.stringify(known(facts))] : [];
    const { rows } = await sql.query(query, values);
    if (rows.length > 0) found[name] = rows;
  }
  return found;
}

/** What holds at any moment and does not now, by rule. `sql`: above row security. */
export function checkNow(sql: Queries): Promise<Violations> {
  return broken(sql, always);
}

/** What has to be so when all work is done and is not, by rule. */
export function checkEnd(sql: Queries, facts: Facts): Promise<Violations> {
  return broken(sql, { ...always, ...afterwards }, facts);
}
