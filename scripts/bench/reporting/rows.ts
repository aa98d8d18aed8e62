// The rows as the transitions would have left them, in the order of time, so that those of an organization lie between those
// of all others.

const TASKS = `
  insert into app.tasks (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
      owner_agent_profile_id, kind, status, phase, title, priority, agent_run_count, consumed_agent_run_count, spec, blockers,
      active_run_id, waiting_until, waiting_reason, error, result, failure_origin_id, dedupe_key, started_at, completed_at,
      created_at, updated_at)
    select t.organization_id, t.id, case t.kind when 'task' then 'T' else 'I' end, t.k, p.id, coalesce(p.id, t.id),
      (p.id is not null)::integer, t.profile_id, t.kind, t.status,
      case when t.status in ('completed', 'failed', 'cancelled') then 'closed' when t.kind = 'initiative' then 'plan'
        else 'execute' end,
      'Task ' || t.k || ' of the year, with a title of the usual length', t.k % 7, u.runs, u.runs,
      app.task_spec_defaults(t.kind) || jsonb_build_object('objective', repeat('Do what the title says. ', 5))
        || case when t.has_criteria then '{"acceptanceCriteria": [{"kind": "output_file", "path": "report.json", "checks":
          [{"kind": "json_pointer", "pointer": "/total", "operator": "eq", "value": 42}]}, {"kind": "output_file",
          "path": "report.md", "checks": [{"kind": "media_type", "anyOf": ["text/markdown"]}]}]}'::jsonb else '{}' end,
      case t.status when 'blocked' then '[{"kind": "human"}]' else '[]' end::jsonb,
      case t.status when 'running' then u.live_id end,
      case t.status when 'waiting' then now() + interval '1 day' end, case t.status when 'waiting' then 'Not yet' end,
      case t.status when 'failed' then '{"code": "broken", "message": "It broke"}'::jsonb end,
      case t.status when 'completed' then '{"kind": "completed", "summary": "Done as asked", "artifacts": []}'::jsonb end,
      case t.status when 'failed' then t.id end, t.id::text, u.first_at,
      case t.status when 'completed' then least(greatest(u.last_at, t.at), now()) end, t.at,
      least(greatest(coalesce(u.last_at, t.at), t.at), now())
    from bench.tasks t
    left join bench.tasks p on p.n = t.n and p.k = t.parent_k
    left join (select n, k, count(*) as runs, min(at) as first_at, max(end_at) as last_at,
        max(id::text) filter (where status = 'running') :: uuid as live_id
      from bench.runs group by n, k) u on u.n = t.n and u.k = t.k
    order by t.at`;

const REQUESTS = `
  insert into app.run_requests (organization_id, id, kind, task_id, agent_profile_id, mode, state, priority, attempt, fence,
      lease_secret_hash, lease_expires_at, worker_id, run_id, execution_token_hash, due_at, published_at, finished_at, created_at)
    select r.organization_id, r.id, 'task', r.task_id, r.profile_id, r.mode, s.state, r.k % 7, coalesce(u.attempt, 0),
      coalesce(u.attempt, 0), case s.state when 'started' then sha256(r.id::text::bytea) end,
      case s.state when 'started' then now() + interval '10 years' end, case when u.id is not null then 'worker-' || r.k % 50 end,
      u.id, case s.state when 'started' then encode(sha256(u.id::text::bytea), 'hex') end, r.at, r.at,
      case s.state when 'finished' then least(u.end_at, now()) end, r.at
    from bench.requests r
    left join lateral (select case when not r.is_live then 'finished' when r.task_status = 'running' then 'started'
      else 'published' end as state) s on true
    left join (select distinct on (request_id) request_id, id, attempt, end_at from bench.runs order by request_id, attempt desc) u
      on u.request_id = r.id
    order by r.at`;

const RUNS = `
  insert into app.runs (organization_id, id, kind, task_id, run_request_id, agent_profile_id, attempt, mode, status, fence,
      lease_secret_hash, worker_id, harness, model, workspace_uri, log_state, log_count, output, error, receipts, input_tokens,
      output_tokens, tool_calls, cost_minor_units, cost_known, finish_call, finish_hash, started_at, finished_at, created_at,
      updated_at)
    select u.organization_id, u.id, 'task', u.task_id, u.request_id, u.profile_id, u.attempt, u.mode, u.status, u.attempt,
      sha256(u.request_id::text::bytea), 'worker-' || u.k % 50, 'exec', case u.i % 3 when 0 then 'large' else 'small' end,
      'org://' || u.organization_id || '/runs/' || u.id, 'complete', 4,
      case when u.status = 'succeeded' or x.refused then jsonb_build_object('kind', 'task_result', 'result',
        jsonb_build_object('kind', 'completed', 'summary', repeat('What was done, and how. ', 4), 'artifacts', '[]'::jsonb,
          'completion', jsonb_build_object('version', 1, 'taskVersion', 3, 'taskGraphRevision', 1, 'completionRevision', 1,
            'runIds', jsonb_build_array(u.id), 'disposition', case when x.refused then 'failed' else 'passed' end,
            'checks', case when u.has_criteria then jsonb_build_array(
              jsonb_build_object('criterionIndex', 0, 'evaluator', 'backend', 'status',
                case when x.refused and u.i % 4 > 0 then 'failed' else 'passed' end,
                'summary', 'report.json: expected /total to be 42', 'evidence', jsonb_build_array(jsonb_build_object(
                  'kind', 'file', 'runId', u.id, 'path', 'report.json', 'size', 120, 'mediaType', 'application/json',
                  'sha256', encode(sha256(u.id::text::bytea), 'hex')))),
              jsonb_build_object('criterionIndex', 1, 'evaluator', 'backend', 'status',
                case when x.refused and u.i % 4 = 0 then 'failed' else 'passed' end,
                'summary', 'report.md: its check holds', 'evidence', case when x.refused and u.i % 4 = 0 then '[]'
                else jsonb_build_array(jsonb_build_object('kind', 'file', 'runId', u.id, 'path', 'report.md', 'size', 900,
                  'mediaType', 'text/markdown', 'sha256', encode(sha256(u.id::text::bytea), 'hex'))) end)) else '[]'::jsonb end))) end,
      case when x.refused then '{"code": "acceptance_failed", "message": "The output does not meet the acceptance criteria of the task", "retryable": true}'
        when u.status = 'expired' then '{"code": "run_lease_expired", "message": "The lease of the run ended", "retryable": true}'
        when u.status = 'failed' then '{"code": "broken", "message": "It broke", "retryable": false}' end::jsonb,
      case when x.is_over then jsonb_build_array(jsonb_build_object('kind', 'command', 'id', '1', 'status', 'completed',
        'commandHash', encode(sha256(u.id::text::bytea), 'hex'), 'exitCode', 0)) end,
      case when x.is_over then (bench.share('in' || u.id) * 90000)::bigint else 0 end,
      case when x.is_over then (bench.share('out' || u.id) * 9000)::bigint else 0 end, u.i % 40,
      case when x.is_over and x.cost_known then (bench.share('cost' || u.id) * 400)::bigint else 0 end,
      x.is_over and x.cost_known,
      case when x.is_over then case u.status when 'succeeded' then 'complete' else 'fail' end end,
      case when x.is_over then md5(u.id::text) end, least(u.at, now()),
      case when u.status <> 'running' then least(greatest(u.end_at, u.at), now()) end, least(u.at, now()), least(u.end_at, now())
    from bench.runs u cross join lateral (select u.status in ('succeeded', 'failed') as is_over,
      u.status = 'failed' and u.has_criteria and u.mode = 'execute' and u.i % 2 = 0 as refused,
      bench.share('known' || u.id) < 0.85 as cost_known) x
    order by u.at`;

/** Of the latest fifth of the runs alone: they are many, and no summary reads them. */
const RUN_LOGS = `
  insert into app.run_logs (organization_id, run_id, sequence, category, status, label, detail, occurred_at)
    select organization_id, id, s, 'execution', 'completed', 'Step ' || s, repeat('detail ', 8), least(at + s * interval '1 second', now())
    from bench.runs cross join generate_series(1, 4) s where at > now() - interval '73 days' order by at`;

/** A question for one task in fourteen and for each that is blocked, and a notification for one in thirty. */
const INBOX_ITEMS = `
  insert into app.human_inbox_items (organization_id, id, kind, status, purpose, blocking, title, body, options, task_id,
      response, responded_at, created_at, updated_at)
    select t.organization_id, bench.id(x.at, t.n || '/q/' || t.k || x.kind), x.kind, x.status,
      case when x.kind = 'notification' then 'agent' when t.k % 3 = 0 then 'repair' else 'needs_input' end, x.kind = 'question',
      'Question about: task ' || t.k, repeat('What is to be done here? ', 4), '[]', t.id,
      case x.status when 'responded' then 'Yes' end, case when x.status in ('responded', 'acknowledged') then x.end_at end, x.at, x.end_at
    from bench.tasks t cross join lateral (
      select 'question' as kind, least(t.at + interval '30 minutes', now()) as at,
        case t.status when 'blocked' then 'open' when 'cancelled' then 'cancelled' else 'responded' end as status,
        least(t.at + interval '30 minutes' + bench.wait(t.n || '/h/' || t.k, 14400), now()) as end_at
      where t.k % 14 = 3 or t.status = 'blocked'
      union all
      select 'notification', least(t.at + interval '1 hour', now()), case when t.k % 60 = 7 then 'acknowledged' else 'open' end,
        least(t.at + interval '2 hours', now()) where t.k % 30 = 7) x
    order by x.at`;

const COUNTERS = [
  `update app.task_identifiers i set last_number = o.tasks from bench.organizations o where i.organization_id = o.id`,
  `update app.dispatch_lanes l set ready = r.ready, held = r.held from (
      select organization_id, agent_profile_id, count(*) filter (where state = 'published') as ready,
        count(*) filter (where state in ('leased', 'started')) as held
      from app.run_requests where kind = 'task' and state in ('published', 'leased', 'started') group by 1, 2) r
    where l.organization_id = r.organization_id and l.agent_profile_id = r.agent_profile_id and l.kind = 'task'`,
  `update app.dispatch d set held = l.held, open_lanes = l.open_lanes from (
      select organization_id, sum(held) as held, count(*) filter (where open) as open_lanes from app.dispatch_lanes
      where kind = 'task' group by 1) l
    where d.organization_id = l.organization_id and d.kind = 'task'`,
];

export const ROWS = [TASKS, REQUESTS, RUNS, RUN_LOGS, INBOX_ITEMS, ...COUNTERS];
