import { createChat, createChatOrganization, putAttachment, send } from './chat_fixtures.ts';
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
  await createTask(sql, org, { dependsOn: [first.id] });
  await createSchedule(sql, org);
  await createTask(sql, org);
  const asking = await runNext(sql, org);
  await stageOutcome(sql, asking, { kind: 'needs_input', question: '?' });
  await completeRun(sql.api, asking, { result: { kind: 'needs_input', question: '?' } });
  await transition(sql.api, 'task_input_put', {
    p_organization_id: organizationId,
    p_task_ref: first.id,
    p_path: 'in.csv',
    p_storage_key: 'k',
    p_size: 1,
    p_sha256: sha256(''),
    p_media_type: 'text/csv',
    p_actor: OWNER,
  });
  const chat = await createChat(sql, org);
  await putAttachment(sql.api, org, chat.id);
  await send(sql.api, org, chat.id);
  await insertSource(sql, org);
  await promote(sql.api, org);
  await recordHealth(sql.jobs, org);
  await insertOnboarding(sql, org);
  const member = { p_organization_id: organizationId, p_subject: 'me', p_role: 'owner' };
  await transition(sql.api, 'organization_member_put', member);
  await sql.api.query(`select app.audit_append($1, 'owner', 'me', 'task.create', 'task', 'x', '{}')`, [organizationId]);
  await sql.api.query(`select app.idempotency_begin($1, 'c', 'POST', '/x', 'k', 'h')`, [organizationId]);
  await sql.owner.query(`select app.analyst_grant('analyst', array[$1::uuid], false, false)`, [organizationId]);
  return org;
}
