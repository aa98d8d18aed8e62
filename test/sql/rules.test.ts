import t from 'tap';
import { createChatOrganization, startedTurn } from '../support/chat_fixtures.ts';
import { appendLogs, createTestOrganization, logEntry, runNew } from '../support/fixtures.ts';
import { openSql } from '../support/transitions.ts';

// The rules of the busiest tables are functions (`app.<table>_check`), each called by the one check of its table.
const sql = await openSql(t);
const org = await createTestOrganization(sql);
const run = await runNew(sql, org);
await appendLogs(sql.api, run, [logEntry(1)]);
const turn = await startedTurn(sql, await createChatOrganization(sql));

const rowOf: Readonly<Record<string, string>> = {
  tasks: `id = '${run.taskId}'`,
  run_requests: `id = '${run.runRequestId}'`,
  runs: `id = '${run.runId}'`,
  run_logs: `run_id = '${run.runId}'`,
  messages: `id = '${turn.sent.assistantMessage.id}'`,
};

/** For each rule, changes to a task that runs, its request, its run, a log entry and a reply that is under way, of which each breaks that rule first. */
const broken: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  tasks: {
    blocked_when_blockers: [`blockers = '[{}]'`, `status = 'blocked', active_run_id = null`],
    blockers: [`status = 'blocked', active_run_id = null, blockers = '{"a": 1}'`],
    closed_when_over: [`phase = 'closed'`, `status = 'cancelled', active_run_id = null`],
    completed_at_when_completed: [
      'completed_at = now()',
      `status = 'completed', phase = 'closed', active_run_id = null`,
    ],
    counters: [
      'version = 0',
      'graph_revision = 0',
      'agent_run_count = -1',
      'replan_count = -1',
      'completion_revision = -1',
      'consumed_agent_run_count = agent_run_count - 1',
    ],
    dedupe_key: [`dedupe_key = ''`, `dedupe_key = repeat('x', 201)`],
    depth: ['depth = -1', 'depth = -1, parent_id = id', 'depth = 1', 'parent_id = id'],
    cancel_origin_when_cancelled: ['cancel_origin_id = id'],
    failure_origin_when_over: ['failure_origin_id = id'],
    origin_when_failed: [`status = 'failed', phase = 'closed', active_run_id = null`],
    plan_of_initiative: [`phase = 'plan'`],
    replan_of_initiative: [`replan = '{}'`],
    root_when_no_parent: ['root_task_id = gen_random_uuid()'],
    running_when_active_run: ['active_run_id = null', `status = 'pending'`],
    scope_of_kind: [`identifier_scope = 'I'`, `kind = 'initiative'`],
    spec: [`spec = '[]'`],
    spend: ['spent_cost_minor_units = -1', 'spent_tokens = -1', 'cost_known_run_count = -1'],
    spend_limited_when_root: ['spend_limited = true, parent_id = id, depth = 1, root_task_id = gen_random_uuid()'],
    title: [`title = ''`, `title = repeat('x', 201)`],
    verification_when_verify: [`phase = 'verify'`],
    waiting_action_ids_when_open: [
      `waiting_action_ids = '[]'`,
      `status = 'pending', active_run_id = null, waiting_action_ids = '{}'`,
    ],
    waiting_when_until: ['waiting_until = now()', `status = 'waiting', active_run_id = null`],
  },
  run_requests: {
    cancel_requested_when_started: [`cancel_requested_at = now(), state = 'published', lease_expires_at = null`],
    chat_when_chat: [`kind = 'chat'`, 'message_id = gen_random_uuid()', 'chat_id = gen_random_uuid()'],
    counters: ['attempt = -1', 'fence = -1'],
    finished_at_when_over: ['finished_at = now()', `state = 'finished'`, `state = 'cancelled'`],
    lease_when_held: ['lease_expires_at = null', 'lease_secret_hash = null', `state = 'published'`],
    parked_when_queued: ['parked = true'],
    published_at: [`state = 'published', lease_expires_at = null, lease_secret_hash = null, published_at = null`],
    run_when_started: ['run_id = null', 'execution_token_hash = null'],
    task_when_task: ['task_id = null'],
  },
  runs: {
    chat_when_chat: [`kind = 'chat'`, 'message_id = gen_random_uuid()', 'chat_id = gen_random_uuid()'],
    counters: [
      'attempt = 0',
      'log_count = -1',
      'input_tokens = -1',
      'output_tokens = -1',
      'tool_calls = -1',
      'cost_minor_units = -1',
    ],
    finish: [`finish_call = 'complete'`, `finish_hash = 'x'`],
    finished_at_when_over: ['finished_at = now()', `status = 'succeeded'`],
    task_when_task: ['task_id = null'],
  },
  run_logs: {
    detail: [`detail = repeat('x', 2001)`],
    label: [`label = ''`, `label = repeat('x', 201)`],
    sequence: ['sequence = -1'],
  },
  messages: {
    complete_when_user: [`role = 'user'`],
    completed_at_when_final: ['completed_at = now()', `status = 'complete'`],
    error_when_failed: [`error = '{}'`],
    parts: [`parts = '{}'`],
    reply_when_assistant: ['reply_to_message_id = null'],
    revision: ['revision = 0'],
    search_text_when_final: [`search_text = 'x'`],
  },
};

t.test('each rule of the busiest tables refuses what breaks it, under its name', async (test) => {
  for (const [table, rules] of Object.entries(broken)) {
    for (const [rule, changes] of Object.entries(rules)) {
      for (const change of changes) {
        const name = `${table}: ${change}`;
        // Without triggers, which would come before the checks.
        const refused = await sql.owner
          .query(
            `do $do$ begin
               set local session_replication_role = replica;
               update app.${table} set ${change} where ${rowOf[table]};
             end $do$`,
          )
          .then(
            () => ({}),
            (error: unknown) => error,
          );
        const constraint = `${table}_${rule}_check`;
        const message = `new row for relation "${table}" violates check constraint "${constraint}"`;
        test.match(refused, { code: '23514', schema: 'app', table, constraint, message }, name);
      }
    }
  }
});

t.test('each state refuses what is none, under the name of its domain', async (test) => {
  const { rows } = await sql.owner.query<{ table: string; column: string; domain: string }>(
    `select c.relname as table, a.attname as column, t.typname as domain
     from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind = 'r' join pg_type t on t.oid = a.atttypid
     where t.typnamespace = 'app'::regnamespace and t.typtype = 'd' and not a.attisdropped and c.relname = any ($1)`,
    [Object.keys(rowOf)],
  );
  test.ok(rows.length > 15);
  for (const { table, column, domain } of rows) {
    await test.rejects(
      sql.owner.query(`update app.${table} set ${column} = 'nonsense' where ${rowOf[table]}`),
      { code: '23514', schema: 'app', dataType: domain, constraint: `${domain}_check` },
      `${table}.${column}`,
    );
  }
});

t.test('every rule of those functions is broken above', async (test) => {
  for (const [table, rules] of Object.entries(broken)) {
    const { rows } = await sql.owner.query<{ rules: string }>(
      `select prosrc as rules from pg_proc where oid = to_regprocedure($1)`,
      [`app.${table}_check(app.${table})`],
    );
    const named = [...(rows[0]?.rules.matchAll(/then '(\w+)'/g) ?? [])].map((match) => match[1]);
    test.same(
      named.toSorted(),
      Object.keys(rules)
        .map((rule) => `${table}_${rule}_check`)
        .toSorted(),
      table,
    );
  }
});

t.test('which changes of state count', async (test) => {
  const states = ['queued', 'published', 'leased', 'started', 'finished', 'cancelled'];
  const { rows } = await sql.owner.query<{ old: string; new: string; counts: boolean }>(
    `select o as old, n as new, app.run_requests_counts(o, n) as counts from unnest($1::text[]) o, unnest($1::text[]) n`,
    [states],
  );
  const share = (state: string) =>
    state === 'published' ? 'ready' : ['leased', 'started'].includes(state) ? 'held' : '';
  test.equal(rows.length, 36);
  for (const row of rows) {
    const counts = share(row.old) !== share(row.new) && !(row.old === 'published' && row.new === 'leased');
    test.equal(row.counts, counts, `${row.old} → ${row.new}`);
  }
});
