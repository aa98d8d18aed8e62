import { randomUUID } from 'node:crypto';
import type { TestOrganization } from './fixtures.ts';
import type { Sql } from './transitions.ts';

type Row = Readonly<Record<string, unknown>>;

/**
 * A row as it is, at a time of the test's choosing. Transitions take the time from the clock, and summaries are about time:
 * triggers and foreign keys are off, constraints hold.
 */
export async function insertRow(sql: Sql, table: string, row: Row): Promise<void> {
  const client = await sql.owner.connect();
  try {
    await client.query('begin; set local session_replication_role = replica');
    const columns = Object.keys(row);
    const list = columns.join(', ');
    await client.query(
      `insert into app.${table} (${list}) select ${list} from jsonb_populate_record(null::app.${table}, $1)`,
      [JSON.stringify(row)],
    );
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

let number = 1000;

/** A completed task, or an initiative; its id. */
export async function taskRow(sql: Sql, org: TestOrganization, fields: Row = {}): Promise<string> {
  const id = randomUUID();
  number += 1;
  const kind = fields['kind'] ?? 'task';
  const at = fields['completed_at'] ?? '2026-01-01T00:00:00Z';
  await insertRow(sql, 'tasks', {
    organization_id: org.organizationId,
    id,
    identifier_scope: kind === 'task' ? 'T' : 'I',
    identifier_number: number,
    root_task_id: id,
    depth: 0,
    owner_agent_profile_id: org.profileId,
    kind,
    status: 'completed',
    phase: 'closed',
    title: 'A task',
    priority: 0,
    version: 1,
    graph_revision: 1,
    agent_run_count: 0,
    consumed_agent_run_count: 0,
    replan_count: 0,
    completion_revision: 0,
    spec: { verification: 'backend', acceptanceCriteria: [] },
    blockers: [],
    answers: [],
    dedupe_key: id,
    spend_limited: false,
    spent_cost_minor_units: 0,
    spent_tokens: 0,
    cost_known_run_count: 0,
    created_at: at,
    updated_at: at,
    completed_at: at,
    ...fields,
  });
  return id;
}

/** A run that succeeded without any cost known, with its request, made `waited` seconds before the start. */
export async function runRow(sql: Sql, org: TestOrganization, fields: Row = {}, waited = 0): Promise<string> {
  const id = randomUUID();
  const requestId = randomUUID();
  const startedAt = String(fields['started_at'] ?? fields['finished_at'] ?? '2026-01-01T00:00:00Z');
  const madeAt = new Date(Date.parse(startedAt) - waited * 1000).toISOString();
  const kind = fields['kind'] ?? 'task';
  const chat = {
    task_id: null,
    chat_id: fields['chat_id'] ?? randomUUID(),
    message_id: fields['message_id'] ?? randomUUID(),
  };
  const common = {
    organization_id: org.organizationId,
    agent_profile_id: org.profileId,
    kind,
    ...(kind === 'chat' ? chat : { task_id: fields['task_id'] ?? randomUUID() }),
  };
  await insertRow(sql, 'run_requests', {
    ...common,
    id: requestId,
    mode: 'execute',
    state: 'finished',
    priority: 0,
    attempt: 1,
    fence: 1,
    due_at: madeAt,
    parked: false,
    published_at: madeAt,
    finished_at: startedAt,
    created_at: madeAt,
  });
  await insertRow(sql, 'runs', {
    ...common,
    id,
    run_request_id: requestId,
    attempt: 1,
    mode: 'execute',
    status: 'succeeded',
    fence: 1,
    lease_secret_hash: '\\x00',
    worker_id: 'w',
    log_state: 'complete',
    log_count: 0,
    input_tokens: 0,
    output_tokens: 0,
    tool_calls: 0,
    cost_minor_units: 0,
    cost_known: false,
    spend_limited: false,
    started_at: startedAt,
    finished_at: startedAt,
    created_at: startedAt,
    updated_at: startedAt,
    ...fields,
  });
  return id;
}

/** An open question. */
export async function inboxRow(sql: Sql, org: TestOrganization, fields: Row): Promise<void> {
  await insertRow(sql, 'human_inbox_items', {
    organization_id: org.organizationId,
    id: randomUUID(),
    kind: 'question',
    status: 'open',
    purpose: 'agent',
    blocking: true,
    title: '?',
    body: '',
    options: [],
    allow_free_text: true,
    updated_at: fields['created_at'],
    ...fields,
  });
}

/** Sets the time zone as nobody could who asks the API, which knows which names are zones. */
export async function setTimezone(sql: Sql, org: TestOrganization, timezone: string): Promise<void> {
  await sql.owner.query(
    `update app.organizations set config = jsonb_set(config, '{timezone}', to_jsonb($2::text)) where id = $1`,
    [org.organizationId, timezone],
  );
}

/** `times` more rows like the ones of each place, an hour apart; `fresh` are columns that have to differ, `at` the
 * points in time that move. */
export async function multiply(
  sql: Sql,
  table: string,
  times: number,
  fresh: Readonly<Record<string, string>>,
  at: readonly string[],
): Promise<void> {
  const client = await sql.owner.connect();
  try {
    await client.query('begin; set local session_replication_role = replica');
    const { rows } = await client.query<{ name: string }>(
      `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped
         and attgenerated = ''`,
      [`app.${table}`],
    );
    const values = rows.map(({ name }) => {
      if (at.includes(name)) return `${name} - n * interval '1 hour'`;
      return fresh[name] ?? name;
    });
    await client.query(
      `insert into app.${table} (${rows.map(({ name }) => name).join(', ')})
        select ${values.join(', ')} from app.${table}, generate_series(1, ${times}) n`,
    );
    await client.query('commit');
  } finally {
    client.release();
  }
}
