import type { Test } from 'tap';
import type { Sql } from './transitions.ts';

/**
 * What is true between transactions, whatever happened: one query each, which finds what breaks it. Deleted
 * organizations are left out: their rows are on their way out.
 */
const invariants: Readonly<Record<string, string>> = {
  'a lane counts what is ready and held': `
    select l.organization_id, l.agent_profile_id, l.ready, l.held, n.ready as facts_ready, n.held as facts_held
    from app.dispatch_lanes l
    join app.organizations o on o.id = l.organization_id and o.deleted_at is null
    cross join lateral (
      select count(*) filter (where r.state = 'published')::int as ready,
             count(*) filter (where r.state in ('leased', 'started'))::int as held
      from app.run_requests r
      where r.organization_id = l.organization_id and r.agent_profile_id = l.agent_profile_id and r.kind = l.kind) n
    where (l.ready, l.held) <> (n.ready, n.held)`,
  'an organization counts what is held and its open lanes': `
    select d.organization_id, d.kind, d.held, d.open_lanes, n.held as facts_held, n.open_lanes as facts_open_lanes
    from app.dispatch d
    join app.organizations o on o.id = d.organization_id and o.deleted_at is null
    cross join lateral (
      select coalesce(sum(l.held), 0)::int as held, count(*) filter (where l.open)::int as open_lanes
      from app.dispatch_lanes l where l.organization_id = d.organization_id and l.kind = d.kind) n
    where (d.held, d.open_lanes) <> (n.held, n.open_lanes)`,
  'the dispatch row says what the organization says': `
    select d.organization_id from app.dispatch d
    join app.organizations o on o.id = d.organization_id and o.deleted_at is null
    where d.suspended <> (o.status = 'suspended')
       or d.kind = 'task' and (d.stopped <> (o.work_dispatch_stopped_at is not null or o.status = 'onboarding' or exists (
                                 select 1 from app.onboardings b where b.organization_id = o.id and b.status <> 'completed'))
                               or d.capacity <> (o.config #>> '{limits,maxConcurrentRuns}')::int)`,
  'a ready task has one live request that is not started, a running one a started one, others none': `
    select t.organization_id, t.id, t.status, n.live, n.waiting, n.started
    from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    cross join lateral (
      select count(*)::int as live, count(*) filter (where r.state <> 'started')::int as waiting,
             count(*) filter (where r.state = 'started' and r.run_id = t.active_run_id)::int as started
      from app.run_requests r
      where r.organization_id = t.organization_id and r.task_id = t.id and r.cancel_requested_at is null
        and r.state in ('queued', 'published', 'leased', 'started')) n
    where (n.live, n.waiting, n.started) <> case t.status
      when 'pending' then (1, 1, 0) when 'running' then (1, 0, 1) else (0, 0, 0) end`,
  // A sibling's start may use up the budget of a parent: that shows at the next start, and so is no cause yet.
  'a blocked task has exactly its causes as blockers, and a ready one has no cause': `
    select t.organization_id, t.id, t.status, t.blockers, n.causes
    from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    cross join lateral (select b.blockers as causes from app.tasks_blockers(t.organization_id, array[t.id]) b) n
    where t.status in ('pending', 'blocked') and (
      not t.blockers <@ n.causes
      or not coalesce((select jsonb_agg(c) from jsonb_array_elements(n.causes) c where c ->> 'kind' <> 'budget'), '[]')
        <@ t.blockers)
      and not t.blockers @> '[{"kind": "schedule"}]'`,
  'a task is blocked by questions that are open': `
    select t.organization_id, t.id, b.blocker
    from app.tasks t cross join lateral jsonb_array_elements(t.blockers) b(blocker)
    left join app.human_inbox_items i on i.organization_id = t.organization_id and i.task_id = t.id
      and i.id = (b.blocker ->> 'inboxItemId')::uuid and i.status = 'open' and i.blocking
    where b.blocker ->> 'kind' = 'human' and i.id is null`,
  'a task whose open question is about its budget is blocked by it': `
    select i.organization_id, i.task_id from app.human_inbox_items i
    join app.tasks t on t.organization_id = i.organization_id and t.id = i.task_id
    where i.purpose = 'budget' and i.status = 'open' and not t.blockers @> '[{"kind": "budget"}]'`,
  'a task that is over has no open item': `
    select t.organization_id, t.id, i.purpose from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    join app.human_inbox_items i on i.organization_id = t.organization_id and i.task_id = t.id and i.status = 'open'
    where t.phase = 'closed' and i.purpose <> 'failure' and i.action_id is null`,
  'an open notice of a failure is about the task that failed first': `
    select i.organization_id, i.task_id from app.human_inbox_items i
    join app.tasks t on t.organization_id = i.organization_id and t.id = i.task_id
    where i.purpose = 'failure' and i.status = 'open' and (t.status, t.failure_origin_id) is distinct from ('failed', t.id)`,
  'people are told of each failure that no initiative plans around': `
    select t.organization_id, t.id from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    left join app.tasks p on p.organization_id = t.organization_id and p.id = t.parent_id
    where t.status = 'failed' and t.failure_origin_id = t.id and (p.id is null or p.failure_origin_id = t.id)
      and not exists (select 1 from app.human_inbox_items i
        where i.organization_id = t.organization_id and i.task_id = t.id and i.purpose = 'failure'
          and i.status in ('open', 'acknowledged'))`,
  'an active run is the one that a started request names, and its task too': `
    select u.organization_id, u.id, u.status, r.state, t.status
    from app.runs u
    join app.organizations o on o.id = u.organization_id and o.deleted_at is null
    join app.run_requests r on r.organization_id = u.organization_id and r.id = u.run_request_id
    join app.tasks t on t.organization_id = u.organization_id and t.id = u.task_id
    where (u.status in ('starting', 'running'))
      <> (r.state = 'started' and r.run_id = u.id and r.cancel_requested_at is null
          and t.status = 'running' and t.active_run_id = u.id)`,
  'what is published of a scope is its last revision': `
    select p.organization_id, p.scope, p.revision from app.context_publications p
    join app.organizations o on o.id = p.organization_id and o.deleted_at is null
    where p.revision is distinct from (
      select max(r.revision) from app.context_revisions r
      where r.organization_id = p.organization_id and r.scope = p.scope)`,
  'a request counts its starts': `
    select r.organization_id, r.id, r.attempt, n.runs
    from app.run_requests r
    join app.organizations o on o.id = r.organization_id and o.deleted_at is null
    cross join lateral (select count(*) as runs from app.runs u
      where u.organization_id = r.organization_id and u.run_request_id = r.id) n
    where r.attempt <> n.runs`,
  'a task counts its runs': `
    select t.organization_id, t.id, t.agent_run_count, n.runs
    from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    cross join lateral (select count(*) as runs from app.runs u
      where u.organization_id = t.organization_id and u.task_id = t.id) n
    where t.agent_run_count <> n.runs`,
  'a task has consumed its own runs and those below it': `
    select t.organization_id, t.id, t.consumed_agent_run_count, n.consumed
    from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    cross join lateral (select t.agent_run_count + coalesce(sum(c.consumed_agent_run_count), 0)::int as consumed
      from app.tasks c where c.organization_id = t.organization_id and c.parent_id = t.id) n
    where t.consumed_agent_run_count <> n.consumed`,
  'where a spend limit is, a task has spent what its runs and those below it have reported': `
    select t.organization_id, t.id, t.spent_cost_minor_units, t.spent_tokens, t.cost_known_run_count, n.*
    from app.tasks t
    join app.tasks r on r.organization_id = t.organization_id and r.id = t.root_task_id and r.spend_limited
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    cross join lateral (
      select coalesce(sum(u.cost_minor_units), 0) + (select coalesce(sum(c.spent_cost_minor_units), 0) from app.tasks c
               where c.organization_id = t.organization_id and c.parent_id = t.id) as facts_cost,
             coalesce(sum(u.input_tokens + u.output_tokens), 0) + (select coalesce(sum(c.spent_tokens), 0) from app.tasks c
               where c.organization_id = t.organization_id and c.parent_id = t.id) as facts_tokens,
             count(*) filter (where u.cost_known) + (select coalesce(sum(c.cost_known_run_count), 0) from app.tasks c
               where c.organization_id = t.organization_id and c.parent_id = t.id) as facts_known
      from app.runs u where u.organization_id = t.organization_id and u.task_id = t.id) n
    where (t.spent_cost_minor_units, t.spent_tokens, t.cost_known_run_count)
      <> (n.facts_cost, n.facts_tokens, n.facts_known)`,
  'a hierarchy with a spend limit counts what it spends': `
    select t.organization_id, t.id from app.tasks t
    join app.tasks r on r.organization_id = t.organization_id and r.id = t.root_task_id
    where t.spec -> 'budget' ?| array['maxCostMinorUnits', 'maxTokens'] and not r.spend_limited`,
  'a budget is used up exactly when one can be named': `
    select t.organization_id, t.id from app.tasks t
    where t.phase <> 'closed' and app.task_budget_exhausted(t.organization_id, t.id)
      <> (app.task_budgets_exhausted(t.organization_id, t.id) <> '[]')`,
  'a task has at most one successful run that closed it': `
    select u.organization_id, u.task_id, count(*) from app.runs u
    -- A verdict may want another one.
    join app.tasks t on t.organization_id = u.organization_id and t.id = u.task_id
      and t.spec ->> 'verification' is distinct from 'agent'
    where u.status = 'succeeded' and u.output #>> '{result,kind}' = 'completed'
      -- What it asked came first.
      and not exists (select 1 from app.human_inbox_items i
        where i.organization_id = u.organization_id and i.run_id = u.id and i.blocking and i.purpose = 'agent')
    group by u.organization_id, u.task_id having count(*) > 1`,
  'nothing open is below what is closed': `
    select c.organization_id, c.id, c.status, p.status
    from app.tasks c
    join app.organizations o on o.id = c.organization_id and o.deleted_at is null
    join app.tasks p on p.organization_id = c.organization_id and p.id = c.parent_id
    where c.phase <> 'closed' and p.phase = 'closed'`,
  'a failure is remembered with an origin that failed': `
    select t.organization_id, t.id from app.tasks t
    join app.tasks f on f.organization_id = t.organization_id and f.id = t.failure_origin_id
    where f.status <> 'failed'`,
  'a live request is of the phase of its task': `
    select r.organization_id, r.id, r.mode, t.phase
    from app.run_requests r
    join app.organizations o on o.id = r.organization_id and o.deleted_at is null
    join app.tasks t on t.organization_id = r.organization_id and t.id = r.task_id
    where r.state in ('queued', 'published', 'leased', 'started') and r.cancel_requested_at is null and r.mode <> t.phase`,
  'no one verifies what they made, and who owns a task does the rest of it': `
    select r.organization_id, r.id, r.mode, r.agent_profile_id, t.owner_agent_profile_id, t.verification
    from app.run_requests r
    join app.organizations o on o.id = r.organization_id and o.deleted_at is null
    join app.tasks t on t.organization_id = r.organization_id and t.id = r.task_id
    where r.state in ('queued', 'published', 'leased', 'started') and r.cancel_requested_at is null
      and case r.mode when 'verify' then r.agent_profile_id = (t.verification ->> 'executorProfileId')::uuid
          else r.agent_profile_id <> t.owner_agent_profile_id end`,
  'an outcome is applied exactly when its run has succeeded': `
    select o.organization_id, o.run_id, o.kind, o.applied_at, u.status
    from app.task_outcomes o
    join app.runs u on u.organization_id = o.organization_id and u.id = o.run_id
    where o.kind <> 'execution' and (o.applied_at is not null) <> (u.status = 'succeeded')`,
  'the request of an active run says that it has staged an outcome': `
    select o.organization_id, o.run_id from app.task_outcomes o
    join app.runs u on u.organization_id = o.organization_id and u.id = o.run_id and u.status in ('starting', 'running')
    join app.run_requests r on r.organization_id = u.organization_id and r.id = u.run_request_id
    where r.staged_run_id is distinct from o.run_id`,
  'an initiative takes the replans that it may, and waits for more exactly when there is none': `
    select t.organization_id, t.id, t.phase, t.replan, t.replan_count, t.spec
    from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    where t.replan_count > (t.spec #>> '{budget,maxReplans}')::integer
       or t.replan ? 'asked' and t.phase <> 'closed'
          and (t.phase <> 'plan' or t.replan_count < (t.spec #>> '{budget,maxReplans}')::integer)`,
  'an initiative that was planned waits for what is open below it, and is over when nothing is': `
    select t.organization_id, t.id, t.status, t.blockers, n.open
    from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    cross join lateral (select count(*) as open from app.tasks c where c.organization_id = t.organization_id
      and c.parent_id = t.id and c.phase <> 'closed') n
    where t.kind = 'initiative' and t.phase = 'execute'
      and (t.status <> 'blocked' or t.blockers @> '[{"kind": "children"}]' <> (n.open > 0))`,
  'a chat has at most one reply under way, and it is the last message': `
    select m.organization_id, m.chat_id, m.id, m.status
    from app.messages m
    join app.organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.status in ('pending', 'cancelling') and exists (
      select 1 from app.messages n where n.organization_id = m.organization_id and n.chat_id = m.chat_id
        and n.id <> m.id and (n.status in ('pending', 'cancelling') or n.created_at >= m.created_at))`,
  'a reply under way has a live request, a cancelled one that is being ended a held one, a final one neither': `
    select m.organization_id, m.id, m.status, r.state, r.cancel_requested_at
    from app.messages m
    join app.organizations o on o.id = m.organization_id and o.deleted_at is null
    left join app.run_requests r on r.organization_id = m.organization_id and r.message_id = m.id
    where m.role = 'assistant' and r.id is null
       or m.role = 'user' and r.id is not null
       or m.role = 'assistant' and not case m.status
         when 'pending' then r.state in ('published', 'leased', 'started') and r.cancel_requested_at is null
         when 'cancelling' then r.state = 'started' and r.cancel_requested_at is not null
         else r.state in ('finished', 'cancelled') or r.state = 'started' and r.cancel_requested_at is not null end`,
  'an active run of a chat turn is the one that its started request names, and its reply is pending': `
    select u.organization_id, u.id, u.status, r.state, m.status
    from app.runs u
    join app.organizations o on o.id = u.organization_id and o.deleted_at is null
    join app.run_requests r on r.organization_id = u.organization_id and r.id = u.run_request_id
    join app.messages m on m.organization_id = u.organization_id and m.id = u.message_id
    where u.kind = 'chat' and ((u.status in ('starting', 'running'))
      <> (r.state = 'started' and r.run_id = u.id and r.cancel_requested_at is null and m.status = 'pending')
      or r.message_id <> u.message_id or r.chat_id <> m.chat_id or u.chat_id <> m.chat_id)`,
  'every reply follows the message that it replies to': `
    select m.organization_id, m.id from app.messages m
    join app.messages u on u.organization_id = m.organization_id and u.id = m.reply_to_message_id
    where u.role <> 'user' or u.chat_id <> m.chat_id or u.created_at >= m.created_at`,
  'the pieces of a long message follow each other, none is missing, and the last one alone may wait to be cut': `
    select k.organization_id, k.message_id from app.message_chunks k
    join app.messages m on m.organization_id = k.organization_id and m.id = k.message_id
    group by k.organization_id, k.message_id
    having count(*) <> max(k.number) or count(*) filter (where k.search_text is null) > 1
      or max(k.number) <> coalesce(max(k.number) filter (where k.search_text is null), max(k.number))
      or bool_or(m.completed_at is null or m.chat_id <> k.chat_id)`,
  'what is archived has no reply under way': `
    select c.organization_id, c.id from app.chats c
    join app.organizations o on o.id = c.organization_id and o.deleted_at is null
    join app.messages m on m.organization_id = c.organization_id and m.chat_id = c.id and m.status in ('pending', 'cancelling')
    where c.status = 'archived'`,
  'secrets are bound to the connection that is current': `
    select s.organization_id, s.integration_id, s.field, s.revision, i.connection_revision
    from app.integration_secrets s
    join app.integrations i on i.organization_id = s.organization_id and i.id = s.integration_id
    where s.revision <> i.connection_revision`,
  'a tool that writes is on only with full access': `
    select t.organization_id, t.integration_id, t.key
    from app.integration_tools t
    join app.integrations i on i.organization_id = t.organization_id and i.id = t.integration_id
    where t.enabled and t.effect = 'write' and i.access_mode <> 'full'`,
  'an action has an open item exactly while a person decides about it': `
    select a.organization_id, a.id, a.status, n.kinds
    from app.actions a
    join app.organizations o on o.id = a.organization_id and o.deleted_at is null
    cross join lateral (select array_agg(i.kind::text) as kinds from app.human_inbox_items i
      where i.organization_id = a.organization_id and i.action_id = a.id and i.status = 'open') n
    where n.kinds is distinct from case a.status
      when 'awaiting_approval' then array['approval'] when 'unknown' then array['reconciliation'] end`,
  'what a task waits for is its own, and not all of it is over': `
    select t.organization_id, t.id, t.status, t.waiting_action_ids
    from app.tasks t
    join app.organizations o on o.id = t.organization_id and o.deleted_at is null
    cross join lateral (
      select count(*) as own, count(*) filter (where a.status in ('awaiting_approval', 'approved', 'executing', 'unknown')) as open
      from app.actions a
      where a.organization_id = t.organization_id and a.task_id = t.id and t.waiting_action_ids ? a.id::text) n
    where t.waiting_action_ids is not null
      and (t.status <> 'blocked' or n.own <> jsonb_array_length(t.waiting_action_ids) or n.open = 0)`,
  'an open item about an action is about one that is there': `
    select i.organization_id, i.id from app.human_inbox_items i
    where i.action_id is not null and not exists (select 1 from app.actions a
      where a.organization_id = i.organization_id and a.id = i.action_id)`,
  'what was cancelled or has failed has no action that waits': `
    select a.organization_id, a.id, a.status, t.status as task, m.status as message
    from app.actions a
    left join app.tasks t on t.organization_id = a.organization_id and t.id = a.task_id
    left join app.messages m on m.organization_id = a.organization_id and m.id = a.message_id
    where a.status in ('awaiting_approval', 'approved')
      and (t.status in ('cancelled', 'failed') or m.status in ('cancelling', 'cancelled', 'failed'))`,
  'an action waits for the connection alone that it was proposed for': `
    select a.organization_id, a.id, a.connection_revision, i.connection_revision as current
    from app.actions a
    join app.organizations o on o.id = a.organization_id and o.deleted_at is null
    left join app.integrations i on i.organization_id = a.organization_id and i.id = a.integration_id
    left join app.integration_connections c on c.organization_id = i.organization_id and c.integration_id = i.id
    where a.status in ('awaiting_approval', 'approved')
      and (c.integration_id is null or i.connection_revision <> a.connection_revision)`,
};

/** All of them as one statement, which a connection plans once. */
const ALL = Object.entries(invariants)
  .map(([name, query]) => `select '${name}' as name, (select jsonb_agg(to_jsonb(q)) from (${query}\n) q) as rows`)
  .join(' union all ');

/** Every broken invariant of every organization in the database, by its name. */
export async function brokenInvariants(sql: Pick<Sql, 'owner'>): Promise<Record<string, unknown[]>> {
  const { rows } = await sql.owner.query<{ name: string; rows: unknown[] | null }>({ name: 'invariants', text: ALL });
  return Object.fromEntries(rows.flatMap(({ name, rows: found }) => (found === null ? [] : [[name, found]])));
}

/** Tests that end with a look at every invariant, over all that the file's tests have left in the database. */
export function scenarios(t: Test, sql: Sql): (name: string, body: (test: Test) => Promise<void>) => void {
  return (name, body) =>
    void t.test(name, async (test) => {
      await body(test);
      test.same(await brokenInvariants(sql), {}, 'no invariant is broken');
    });
}
