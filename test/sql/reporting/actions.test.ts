import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createAnalyst, openReporting, rowsOf } from '../../support/analysts.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { insertRow, setTimezone } from '../../support/reporting_fixtures.ts';

const sql = await openReporting(t);
const analyst = await createAnalyst(t, sql, { all: true });
const at = (minute: number, day = 1) =>
  `2026-06-${String(day).padStart(2, '0')}T10:${String(minute).padStart(2, '0')}:00+00:00`;

type Fields = Readonly<Record<string, unknown>>;
const approved = { decision: 'approved', decided_by: 'sesame', decision_note: 'sesame', decided_at: at(2) };
const executed = { ...approved, execution_attempts: 1, execution_started_at: at(3) };
const finished = { ...executed, execution_finished_at: at(4) };

/** A row of an action as it would be at this status. */
async function actionOf(org: TestOrganization, status: string, fields: Fields = {}): Promise<string> {
  const id = randomUUID();
  const reconciled = { reconciliation_note: 'sesame', reconciled_by: 'sesame', reconciled_at: at(8) };
  const ofStatus: Record<string, Fields> = {
    awaiting_approval: {},
    rejected: { ...approved, decision: 'rejected' },
    expired: { reason: { code: 'not_decided', message: 'sesame' } },
    cancelled: { reason: { code: 'task_ended', message: 'sesame' } },
    approved: { ...approved, due_at: at(2) },
    succeeded: { ...finished, result: { text: 'sesame' } },
    failed: { ...finished, error: { code: 'provider_failed', message: 'sesame' } },
    unknown: finished,
    not_executed: { ...finished, ...reconciled, reconciliation: 'not_executed' },
  };
  await insertRow(sql, 'actions', {
    organization_id: org.organizationId,
    id,
    integration_id: randomUUID(),
    integration_key: 'shop',
    provider: 'stripe',
    agent_profile_id: org.profileId,
    task_id: randomUUID(),
    run_id: randomUUID(),
    invocation_id: 'sesame',
    kind: 'provider_write',
    tool: 'refunds.create',
    tool_digest: '0'.repeat(64),
    connection_revision: 1,
    summary: 'sesame',
    risk: 'high',
    arguments: { text: 'sesame' },
    arguments_sha256: '0'.repeat(64),
    proposal_sha256: '0'.repeat(64),
    timeout_ms: 1000,
    status,
    version: 1,
    requires_approval: true,
    execution_attempts: 0,
    look_up_count: 0,
    expires_at: at(0, 8),
    created_at: at(1),
    updated_at: at(9),
    ...ofStatus[status],
    ...fields,
  });
  return id;
}

t.test('actions: what was decided and what became of them, without what they were about', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = {
    waits: await actionOf(org, 'awaiting_approval', { created_at: at(0) }),
    failed: await actionOf(org, 'failed', { created_at: at(1) }),
    found: await actionOf(org, 'not_executed', { created_at: at(2) }),
    over: await actionOf(org, 'expired', { created_at: at(3) }),
  };
  const rows = await rowsOf(analyst, org, 'actions', 'created_at');
  test.notMatch(JSON.stringify(rows), /sesame/);
  const still = { decision: null, decided_at: null, decision_seconds: null, execution_attempts: 0 };
  const unexecuted = { execution_started_at: null, execution_finished_at: null, execution_seconds: null };
  test.match(rows, [
    { action_id: ids.waits, status: 'awaiting_approval', ...still, ...unexecuted, ended_at: null, reason_code: null },
    {
      action_id: ids.failed,
      integration_key: 'shop',
      provider: 'stripe',
      agent_profile_id: org.profileId,
      chat_id: null,
      retry_of: null,
      kind: 'provider_write',
      tool: 'refunds.create',
      risk: 'high',
      status: 'failed',
      requires_approval: true,
      decision: 'approved',
      decided_at: at(2),
      decision_seconds: 60,
      execution_attempts: 1,
      execution_started_at: at(3),
      execution_finished_at: at(4),
      execution_seconds: 60,
      error_code: 'provider_failed',
      reconciliation: null,
      reconciled_at: null,
      ended_at: at(9),
      created_at: at(1),
      updated_at: at(9),
    },
    { action_id: ids.found, status: 'not_executed', reconciliation: 'not_executed', reconciled_at: at(8) },
    { action_id: ids.over, status: 'expired', ...still, ...unexecuted, reason_code: 'not_decided', ended_at: at(9) },
  ]);
  test.equal(rows.length, 4);
});

t.test('what became of them, by day, tool and risk', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createTestOrganization(sql);
  await setTimezone(sql, org, 'Asia/Tokyo');
  const all = ['awaiting_approval', 'approved', 'rejected', 'expired', 'cancelled', 'succeeded', 'failed'];
  for (const status of [...all, 'unknown', 'not_executed', 'succeeded']) await actionOf(org, status);
  await actionOf(org, 'succeeded', {
    ...{ decision: null, decided_by: null, decision_note: null, decided_at: null },
    ...{ requires_approval: false, risk: 'low', tool: 'invoices.create', created_at: '2026-06-01T16:00:00Z' },
  });
  await actionOf(other, 'failed');
  const rows = await rowsOf(analyst, org, 'action_outcomes', 'day');
  const common = { timezone: 'Asia/Tokyo', provider: 'stripe' };
  test.same(rows, [
    {
      ...common,
      day: '2026-06-01',
      tool: 'refunds.create',
      risk: 'high',
      actions: 10,
      approvals_required: 10,
      approved: 6,
      rejected: 1,
      expired: 1,
      cancelled: 1,
      succeeded: 2,
      failed: 1,
      not_executed: 1,
      unknown: 1,
      under_way: 2,
      reconciled: 1,
      approval_rate: rows[0]?.['approval_rate'],
      success_rate: 0.5,
      median_decision_seconds: 60,
      longest_decision_seconds: 60,
    },
    {
      ...common,
      day: '2026-06-02',
      tool: 'invoices.create',
      risk: 'low',
      actions: 1,
      approvals_required: 0,
      approved: 0,
      rejected: 0,
      expired: 0,
      cancelled: 0,
      succeeded: 1,
      failed: 0,
      not_executed: 0,
      unknown: 0,
      under_way: 0,
      reconciled: 0,
      approval_rate: null,
      success_rate: 1,
      median_decision_seconds: null,
      longest_decision_seconds: null,
    },
  ]);
  test.equal(Number(rows[0]?.['approval_rate']).toFixed(3), '0.857');
  test.match(await rowsOf(analyst, other, 'action_outcomes', 'day'), [{ actions: 1, failed: 1, approval_rate: 1 }]);
});
