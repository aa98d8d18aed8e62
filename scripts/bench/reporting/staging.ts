// What the rows of a year are computed from: narrow, by ordinals, without chance, so that two machines fill the same tables.

/** Helpers and what is staged lie in a schema that is dropped at the end. */
export const HELPERS = [
  'create schema bench',
  // In [0, 1), evenly, by a text.
  `create function bench.share(p text) returns double precision language sql immutable parallel safe return
    (('x' || substr(md5(p), 1, 8))::bit(32)::bigint) / 4294967296.0`,
  // Seconds that are mostly short and sometimes long.
  `create function bench.wait(p text, p_mean double precision) returns interval language sql immutable parallel safe return
    make_interval(secs => -ln(1 - bench.share(p)) * p_mean)`,
  // As the database makes them: they grow with time.
  `create function bench.id(p timestamptz, p_text text) returns uuid language sql immutable parallel safe return
    (lpad(to_hex((extract(epoch from p) * 1000)::bigint), 12, '0') || '7' || substr(md5(p_text), 1, 3)
      || '8' || substr(md5(p_text), 4, 15))::uuid`,
];

/**
 * $1 organizations, $2 runs of all, $3 the share of the first one. Of each organization's runs seven in ten have a task of
 * their own; the others are second requests of a task (a verdict, or a repair) and second attempts of a request.
 */
export const STAGE_ORGANIZATIONS = `
  create unlogged table bench.organizations as
  select o.id, o.n, s.runs, floor(s.runs * 0.7)::integer as tasks, floor(s.runs * 0.84)::integer as requests,
    (select array_agg(p.id order by p.key) from app.agent_profiles p where p.organization_id = o.id) as profiles,
    (select p.id from app.agent_profiles p where p.organization_id = o.id and p.kind = 'operator') as operator_id
  from unnest($1::uuid[]) with ordinality o(id, n)
  cross join lateral (select case when o.n = 1 then round($2::integer * $3::numeric)
    else floor($2::integer * (1 - $3::numeric) / (cardinality($1::uuid[]) - 1)) end::integer as runs) s`;

/** Of twelve tasks in a row one is an initiative and the next eight are its children. The latest ones are not over yet. */
export const STAGE_TASKS = `
  create unlogged table bench.tasks as
  select o.id as organization_id, o.n, k, bench.id(at, o.n || '/t/' || k) as id, at,
    case when k % 12 = 1 and k + 8 <= o.tasks then 'initiative' else 'task' end as kind,
    case when k % 12 between 2 and 9 and k / 12 * 12 + 9 <= o.tasks then k / 12 * 12 + 1 end as parent_k,
    case when k > o.tasks - open then 'running' when k > o.tasks - open * 4 then 'pending'
      when k > o.tasks - open * 12 then 'blocked' when k > o.tasks - open * 14 then 'waiting'
      when fate < 0.9 then 'completed' when fate < 0.95 then 'failed' else 'cancelled' end as status,
    case when k % 12 = 1 then o.operator_id
      else o.profiles[1 + floor(bench.share(o.n || '/p/' || k) * cardinality(o.profiles))::integer] end as profile_id,
    bench.share(o.n || '/c/' || k) < 0.6 as has_criteria
  from bench.organizations o cross join lateral generate_series(1, o.tasks) k
  cross join lateral (select
    now() - interval '365 days' * (1 - (k - 1 + bench.share(o.n || '/a/' || k)) / o.tasks) - interval '2 hours' as at,
    bench.share(o.n || '/f/' || k) as fate, least(greatest(o.tasks / 2000, 1), 20) as open) x`;

/** The first of a task, then second ones of each fifth task, then what waits for a worker or runs now. */
export const STAGE_REQUESTS = `
  create unlogged table bench.requests as
  select r.*, bench.id(r.at, r.n || '/r/' || r.j) as id,
    r.at + bench.wait(r.n || '/w/' || r.j, 45) as start_at
  from (
    select t.organization_id, t.n, j, t.k, t.id as task_id, t.profile_id, t.has_criteria,
      j > o.requests as is_live, t.status as task_status, j > o.tasks and j <= o.requests as is_second,
      case when t.kind = 'initiative' then 'plan'
        when j > o.tasks and j <= o.requests and j % 2 = 0 then 'verify' else 'execute' end as mode,
      case when j > o.requests then greatest(t.at + interval '1 hour', now() - bench.wait(t.n || '/l/' || t.k, 900))
        when j > o.tasks then t.at + interval '40 minutes' + bench.wait(t.n || '/s/' || t.k, 1800)
        else t.at + case when bench.share(t.n || '/d/' || t.k) < 0.2
          then bench.wait(t.n || '/e/' || t.k, 7200) else interval '0' end end as at
    from bench.organizations o cross join lateral (
      select j, case when j > o.tasks then least((j - o.tasks) * 5, o.tasks) else j end as k from generate_series(1, o.requests) j
      union all
      select o.requests + k, k from bench.tasks where n = o.n and status in ('running', 'pending')) x
    join bench.tasks t on t.n = o.n and t.k = x.k
  ) r`;

/** The first attempt of each request; the second of each fifth one, whose first had failed. */
export const STAGE_RUNS = `
  create unlogged table bench.runs as
  select u.*, bench.id(u.at, u.n || '/u/' || u.i) as id, u.at + bench.wait(u.n || '/g/' || u.i, 400) as end_at,
    case when u.is_live then 'running'
      when u.is_retried then case when u.i % 3 = 0 then 'expired' else 'failed' end
      when u.task_status = 'failed' and not u.is_second then 'failed'
      when u.task_status = 'cancelled' and bench.share(u.n || '/x/' || u.i) < 0.5 then 'cancelled'
      when bench.share(u.n || '/y/' || u.i) < 0.03 then 'failed'
      else 'succeeded' end as status
  from (
    select r.organization_id, r.n, i, r.id as request_id, r.task_id, r.k, r.profile_id, r.mode, r.has_criteria,
      r.is_live, r.is_second, r.task_status, x.attempt, x.attempt = 1 and not r.is_live and r.j % 5 = 0
        and r.j / 5 <= o.runs - o.requests as is_retried,
      case when x.attempt = 1 then r.start_at else r.start_at + interval '20 minutes' end as at
    from bench.organizations o cross join lateral (
      select i, case when i > o.requests then (i - o.requests) * 5 else i end as j,
        case when i > o.requests then 2 else 1 end as attempt from generate_series(1, o.runs) i
      union all
      select o.runs + j, j, 1 from bench.requests where n = o.n and is_live and task_status = 'running') x
    join bench.requests r on r.n = o.n and r.j = x.j
  ) u`;
