import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createAnalyst, openReporting, rowsOf } from '../../support/analysts.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { insertRow, runRow, setTimezone } from '../../support/reporting_fixtures.ts';

// The views of records: every column of known rows.
const sql = await openReporting(t);
const analyst = await createAnalyst(t, sql, { all: true });

const rows = (org: TestOrganization, view: string, order: string) => rowsOf(analyst, org, view, order);

const at = (minute: number) => `2026-06-01T10:${String(minute).padStart(2, '0')}:00+00:00`;

t.test('chats and messages, without what is said', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId: organization_id } = org;
  const [chat, archived, removed] = [randomUUID(), randomUUID(), randomUUID()];
  const common = { organization_id, title: 'A chat', settings: { pinnedTaskIds: [] } };
  const times = { created_at: at(0), updated_at: at(9) };
  await insertRow(sql, 'chats', { ...common, ...times, id: chat, last_message_at: at(3), is_onboarding: true });
  const over = { status: 'archived', last_message_at: at(1), created_at: at(1), updated_at: at(2), archived_at: at(2) };
  await insertRow(sql, 'chats', { ...common, ...over, id: archived });
  await insertRow(sql, 'chats', { ...common, ...over, id: removed, removed_at: at(3) });
  for (const size_bytes of [10, 32]) {
    await insertRow(sql, 'chat_attachments', {
      organization_id,
      chat_id: chat,
      id: randomUUID(),
      file_name: 'a.txt',
      media_type: 'text/plain',
      size_bytes,
      sha256: '0'.repeat(64),
      storage_key: 'x',
    });
  }
  const said = async (fields: Readonly<Record<string, unknown>>) => {
    const id = randomUUID();
    const over = fields['completed_at'] !== null;
    const text = { parts: [], search_text: over ? '' : null };
    await insertRow(sql, 'messages', { organization_id, chat_id: chat, id, revision: 1, ...text, ...fields });
    return id;
  };
  const final = (minute: number) => ({ created_at: at(minute), updated_at: at(minute), completed_at: at(minute) });
  const first = await said({ role: 'user', status: 'complete', ...final(0) });
  const second = await said({ role: 'user', status: 'complete', ...final(2) });
  const reply = { role: 'assistant', created_at: at(1), updated_at: at(3), completed_at: at(3) };
  const failed = await said({
    ...reply,
    status: 'failed',
    reply_to_message_id: first,
    revision: 4,
    error: { code: 'model_failed', message: 'no' },
  });
  const pending = await said({
    ...reply,
    status: 'pending',
    reply_to_message_id: second,
    created_at: at(4),
    updated_at: at(5),
    completed_at: null,
  });
  test.same(await rows(org, 'chats', 'created_at'), [
    {
      chat_id: chat,
      status: 'open',
      is_onboarding: true,
      messages: 4,
      replies: 2,
      failed_replies: 1,
      attachments: 2,
      attachment_bytes: 42,
      cost_minor_units: 0,
      known_cost_minor_units: 0,
      turns_with_unknown_cost: 0,
      last_message_at: at(3),
      archived_at: null,
      created_at: at(0),
      updated_at: at(9),
    },
    {
      chat_id: archived,
      status: 'archived',
      is_onboarding: false,
      messages: 0,
      replies: 0,
      failed_replies: 0,
      attachments: 0,
      attachment_bytes: 0,
      cost_minor_units: 0,
      known_cost_minor_units: 0,
      turns_with_unknown_cost: 0,
      last_message_at: at(1),
      archived_at: at(2),
      created_at: at(1),
      updated_at: at(2),
    },
  ]);
  const none = { chat_id: chat, reply_to_message_id: null, revision: 1, error_code: null, reply_seconds: null };
  test.same(await rows(org, 'messages', 'created_at'), [
    { ...none, message_id: first, role: 'user', status: 'complete', ...final(0) },
    {
      ...none,
      message_id: failed,
      role: 'assistant',
      status: 'failed',
      reply_to_message_id: first,
      revision: 4,
      error_code: 'model_failed',
      reply_seconds: 120,
      created_at: at(1),
      updated_at: at(3),
      completed_at: at(3),
    },
    { ...none, message_id: second, role: 'user', status: 'complete', ...final(2) },
    {
      ...none,
      message_id: pending,
      role: 'assistant',
      status: 'pending',
      reply_to_message_id: second,
      created_at: at(4),
      updated_at: at(5),
      completed_at: null,
    },
  ]);
});

t.test('the onboarding, by how far it came', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId: organization_id } = org;
  const source = (origin: string, status: string) =>
    insertRow(sql, 'context_sources', {
      organization_id,
      id: randomUUID(),
      origin,
      status,
      kind: 'page',
      file_name: 'a.html',
      media_type: 'text/html',
      size_bytes: 1,
      sha256: '0'.repeat(64),
      storage_key: 'x',
      provenance_urls: [],
      error: status === 'failed' ? { code: 'unreadable' } : null,
      created_at: at(0),
    });
  await source('onboarding', 'ingested');
  await source('research', 'failed');
  await source('research', 'stored');
  await source('chat', 'failed');
  await insertRow(sql, 'research_findings', {
    organization_id,
    id: randomUUID(),
    origin: 'job',
    claim: 'They sell lamps',
    source_ids: [randomUUID()],
    created_at: at(0),
  });
  const shown = {
    status: 'research_failed',
    generation: 7,
    research_status: 'failed',
    research_attempts: 2,
    research_started_at: at(1),
    research_finished_at: at(2),
    created_at: at(0),
    updated_at: at(2),
  };
  await insertRow(sql, 'onboardings', {
    organization_id,
    ...shown,
    setup: {},
    integrations: [],
    research_error: { code: 'research_failed', message: 'no' },
    research_warnings: [
      { code: 'a', message: '' },
      { code: 'b', message: '' },
    ],
  });
  test.same(await rows(org, 'onboarding', 'created_at'), [
    { ...shown, sources: 3, failed_sources: 1, findings: 1, warnings: 2, research_error_code: 'research_failed' },
  ]);
});

t.test('schedules, without what their tasks are about', async (test) => {
  const org = await createTestOrganization(sql);
  const shown = {
    key: 'weekly',
    title: 'Weekly report',
    cron: '0 9 * * 1',
    timezone: 'Asia/Tokyo',
    status: 'active',
    overlap: 'allow',
    next_run_at: at(9),
    last_run_at: at(2),
    last_task_id: randomUUID(),
    failing_since: at(3),
    created_at: at(0),
    updated_at: at(4),
  };
  const id = randomUUID();
  await insertRow(sql, 'schedules', {
    organization_id: org.organizationId,
    id,
    ...shown,
    task_template: { title: 'secret' },
  });
  test.same(await rows(org, 'schedules', 'created_at'), [{ schedule_id: id, ...shown }]);
});

t.test('revisions of the context, and which one is published', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId: organization_id } = org;
  const runId = randomUUID();
  const made = [{ kind: 'owner' }, { kind: 'agent', runId }];
  for (const [index, created_by] of made.entries()) {
    const revision = index + 1;
    await insertRow(sql, 'context_revisions', {
      organization_id,
      scope: 'growth',
      revision,
      base_revision: index,
      created_by,
      created_at: at(index),
    });
  }
  for (const [path, size_bytes] of Object.entries({ 'a.md': 100, 'b.md': 23 })) {
    await insertRow(sql, 'context_documents', {
      organization_id,
      scope: 'growth',
      revision: 2,
      path,
      kind: 'facts',
      storage_key: 'x',
      size_bytes,
      sha256: '0'.repeat(64),
      source_ids: [],
    });
  }
  await insertRow(sql, 'context_publications', {
    organization_id,
    scope: 'growth',
    revision: 2,
    published_at: at(5),
    unreadable: [],
  });
  test.same(await rows(org, 'context_revisions', 'revision'), [
    {
      scope: 'growth',
      revision: 1,
      base_revision: 0,
      published: false,
      published_at: null,
      documents: 0,
      size_bytes: 0,
      created_by_kind: 'owner',
      created_by_run_id: null,
      created_at: at(0),
    },
    {
      scope: 'growth',
      revision: 2,
      base_revision: 1,
      published: true,
      published_at: at(5),
      documents: 2,
      size_bytes: 123,
      created_by_kind: 'agent',
      created_by_run_id: runId,
      created_at: at(1),
    },
  ]);
});

t.test('the audit log, without the contents of decisions', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId: organization_id } = org;
  await sql.owner.query(
    `begin; set local session_replication_role = replica;
     delete from app.audit_entries where organization_id = '${organization_id}'; commit`,
  );
  const done = {
    created_at: at(0),
    actor_kind: 'owner',
    actor: 'ada',
    action: 'task.cancel',
    subject_kind: 'task',
    subject_id: randomUUID(),
    outcome: 'done',
    code: null,
    request_id: 'req-1',
  };
  const refused = { ...done, created_at: at(1), outcome: 'refused', code: 'state_conflict', subject_id: null };
  const ids = [randomUUID(), randomUUID()];
  for (const [index, entry] of [done, refused].entries()) {
    const contents = { arguments: { reason: 'secret' }, result: { secret: true } };
    await insertRow(sql, 'audit_entries', { organization_id, id: ids[index], ...entry, ...contents });
  }
  test.same(await rows(org, 'audit', 'created_at'), [
    { audit_entry_id: ids[0], ...done },
    { audit_entry_id: ids[1], ...refused },
  ]);
});

t.test('entries of the logs of runs, without their texts', async (test) => {
  const org = await createTestOrganization(sql);
  const run_id = await runRow(sql, org);
  const shown = [
    { run_id, sequence: 0, category: 'tool', status: 'completed', occurred_at: at(0) },
    { run_id, sequence: 1, category: 'system', status: 'failed', occurred_at: at(1) },
  ];
  for (const entry of shown) {
    const texts = { label: 'secret', detail: 'secret' };
    await insertRow(sql, 'run_logs', { organization_id: org.organizationId, ...entry, ...texts });
  }
  test.same(await rows(org, 'run_logs', 'sequence'), shown);
});

t.test('the zone of an organization is the one whose days are counted', async (test) => {
  const org = await createTestOrganization(sql);
  for (const [set, counted] of Object.entries({ 'Asia/Tokyo': 'Asia/Tokyo', 'Atlantis/Capital': 'UTC' })) {
    await setTimezone(sql, org, set);
    test.match(await rows(org, 'organizations', '1'), [{ timezone: counted }], set);
  }
});
