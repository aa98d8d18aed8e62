import { createActionRows } from './action_fixtures.ts';
import { appendEntry } from './audit_fixtures.ts';
import { createChat, createChatOrganization, putAttachment, send, text } from './chat_fixtures.ts';
import { insertSource, promote, recordHealth } from './context_fixtures.ts';
import {
  appendLogs,
  completeRun,
  createTask,
  logEntry,
  OWNER,
  recordOutput,
  runNext,
  sha256,
  stageOutcome,
  type TestOrganization,
} from './fixtures.ts';
import { createInsightRows } from './insight_fixtures.ts';
import { createIntegrationRows } from './integration_fixtures.ts';
import { insertOnboarding } from './onboarding_fixtures.ts';
import { createSchedule } from './schedule_fixtures.ts';
import { type Sql, transition } from './transitions.ts';

/** A tenant with at least one row in every table. */
export async function createTenant(sql: Sql): Promise<TestOrganization> {
  const org = await createChatOrganization(sql);
  const { organizationId } = org;
  const first = await createTask(sql, org, { spec: { inputs: [{ kind: 'inline', path: 'a', text: 'b' }] } });
  const run = await runNext(sql, org);
  await appendLogs(sql.api, run, [logEntry(1)]);
  await recordOutput(sql.api, run, 'out.txt');
  await createIntegrationRows(sql, org, run.runId);
  await createInsightRows(sql, org);
  await createActionRows(sql, org, run);
  await createTask(sql, org, { dependsOn: [first.id] });
  await createSchedule(sql, org);
  await createTask(sql, org);
  const asking = await runNext(sql, org);
  await stageOutcome(sql, asking, { kind: 'needs_input', question: '?' });
  await completeRun(sql.api, asking, { result: { kind: 'needs_input', question: '?' } });
  await transition(sql.api, 'task_input_put', {
    organizationId,
    taskRef: first.id,
    path: 'in.csv',
    storageKey: 'k',
    size: 1,
    sha256: sha256(''),
    mediaType: 'text/csv',
    actor: OWNER,
  });
  const chat = await createChat(sql, org);
  await putAttachment(sql.api, org, chat.id);
  // Long enough for a piece beyond its beginning.
  await send(sql.api, org, chat.id, { parts: [text('.'.repeat(30_001))] });
  await insertSource(sql, org);
  await promote(sql.api, org);
  await recordHealth(sql.jobs, org);
  await insertOnboarding(sql, org);
  const member = { organizationId, subject: 'me', role: 'owner' };
  await transition(sql.api, 'organization_member_put', member);
  await appendEntry(sql.api, organizationId);
  const slot = { organizationId, caller: 'c', method: 'POST', path: '/x', key: 'k', bodyHash: 'h' };
  await transition(sql.api, 'idempotency_begin', slot);
  const reads = { login: 'analyst', organizationIds: [organizationId], all: false, fresh: false };
  await transition(sql.owner, 'analyst_grant', reads);
  return org;
}
