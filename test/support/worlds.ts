import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { chatAttachmentKey, runOutputKey } from '../../engine/storage/index.ts';
import { makeUnknown, propose, reject } from './action_fixtures.ts';
import { sqlOf } from './api_fixtures.ts';
import type { TestApp } from './app.ts';
import {
  claimTurn,
  createChat,
  exchange,
  putAttachment,
  send as say,
  startedTurn,
  startTurn,
  text,
} from './chat_fixtures.ts';
import { publishDocuments, storeSource } from './context_files.ts';
import {
  authorizationEpoch,
  claimNext,
  completeRun,
  createSecondProfile,
  createTask,
  createTestOrganization,
  failRun,
  recordOutput,
  runNew,
  type TestOrganization,
} from './fixtures.ts';
import { createItem } from './inbox_fixtures.ts';
import { allow, createConnected, resolveGateway } from './integration_fixtures.ts';
import { type Onboarding, onboardingIn } from './onboarding_fixtures.ts';
import type { Operation } from './openapi.ts';
import { createSchedule } from './schedule_fixtures.ts';
import { type Sql, transition } from './transitions.ts';

/** What exists, under the names that generated requests carry in its place. */
export type World = Readonly<Record<string, string>>;

export const ofOnboarding = ({ path }: Operation) => /^\/organization(s\/\{organizationId\}\/|-)onboarding/.test(path);

/** An onboarding in the state that the operation needs, with a reply under way in its chat where an agent calls. */
async function makeOnboarding(app: TestApp, { operationId }: Operation): Promise<World> {
  const sql = sqlOf(app);
  const state = { retryOnboardingResearch: 'research_failed', completeOnboarding: 'review' }[operationId];
  const onboarding = await onboardingIn(
    sql,
    state ?? (/Source$|^research/.test(operationId) ? 'review' : 'collecting'),
  );
  const { rows } = await sql.owner.query<{ storage_key: string }>(
    'select storage_key from app.context_sources where organization_id = $1',
    [onboarding.organization_id],
  );
  // A completion verifies the bytes of each source.
  for (const { storage_key: key } of rows) await app.services.storage.put(key, Readable.from([Buffer.from('plan')]));
  return {
    organizationId: onboarding.organization_id,
    sourceId: onboarding.sources[0]?.id ?? randomUUID(),
    reviewSha256: onboarding.review?.sha256 ?? '',
    freshId: randomUUID(),
    ...(operationId === 'researchOnboarding' ? { capability: await onboardingCapability(sql, onboarding) } : {}),
  };
}

/** The execution token of the turn that replies in the onboarding chat. */
async function onboardingCapability(sql: Sql, onboarding: Onboarding): Promise<string> {
  const org = { organizationId: onboarding.organization_id, profileId: '', profileKey: 'chat' };
  await say(sql.api, org, String(onboarding.chat_id));
  return (await startTurn(sql.api, await claimTurn(sql, org))).executionToken;
}

/**
 * What a call of the operation may act on: an organization with a run of a profile of this kind that holds its lease, a
 * claim, a failed task, an initiative, and files of each sort; or an onboarding.
 */
export async function makeWorld(app: TestApp, operation: Operation, kind = 'department'): Promise<World> {
  if (/\/onboarding\b/.test(operation.path)) return makeOnboarding(app, operation);
  const sql = sqlOf(app);
  const org = await createTestOrganization(sql, { key: 'growth', kind, maxConcurrentRuns: 9 });
  const failed = await runNew(sql, org);
  await failRun(sql.api, failed);
  const done = await runNew(sql, org);
  const key = runOutputKey(org.organizationId, done.runId);
  await app.services.storage.put(key, Readable.from([Buffer.from('abc')]));
  await recordOutput(sql.api, done, 'a.txt', key, 'abc');
  const documentKey = runOutputKey(org.organizationId, done.runId);
  await app.services.storage.put(documentKey, Readable.from([Buffer.from('{"entries":[]}')]));
  await recordOutput(sql.api, done, 'document.json', documentKey, '{"entries":[]}');
  await completeRun(sql.api, done, { result: { kind: 'completed', summary: 's', artifacts: [{ path: 'a.txt' }] } });
  const initiative = await createTask(sql, org, { kind: 'initiative' });
  const run = await runNew(sql, org, { spec: { inputs: [{ kind: 'inline', path: 'a.txt', text: 'abc' }] } });
  await recordOutput(sql.api, run, 'a.txt');
  const claimed = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const ready = await createTask(sql, org);
  const waiting = await createTask(sql, org, { dependsOn: [failed.taskId] });
  const question = await createItem(sql.api, org, ready.id);
  const notice = await createItem(sql.api, org, claimed.id, { kind: 'notification' });
  const schedule = await createSchedule(sql, org);
  await transition(sql.api, 'organization_member_put', {
    organizationId: org.organizationId,
    subject: 'anna',
    role: 'viewer',
  });
  return {
    organizationId: org.organizationId,
    profileId: org.profileId,
    failedId: failed.taskId,
    doneId: done.taskId,
    doneRunId: done.runId,
    initiativeId: initiative.id,
    runningId: run.taskId,
    runId: run.runId,
    runLease: run.leaseToken,
    capability: run.executionToken,
    claimedId: claimed.id,
    requestId: claim.runRequestId,
    claimLease: claim.leaseToken,
    readyId: ready.id,
    waitingId: waiting.id,
    questionId: question.id,
    noticeId: notice.id,
    scheduleKey: schedule.key,
    ...(await makeChats(app, sql, org)),
    ...(await makeContext(app, sql, org)),
    ...(await makeIntegration(sql, org, run.runId)),
    freshId: randomUUID(),
  };
}

/** A chat that waits for a message, one whose reply waits for a runtime, one whose reply is under way; an attachment. */
async function makeChats(app: TestApp, sql: Sql, org: TestOrganization): Promise<World> {
  await createSecondProfile(sql, org, { kind: 'chat', key: 'talk' });
  const chat = await createChat(sql, org);
  const reply = await exchange(sql, org, chat.id, [text('Yes')]);
  const attachmentId = randomUUID();
  const key = chatAttachmentKey(org.organizationId, chat.id);
  await putAttachment(sql.api, org, chat.id, { id: attachmentId, bytes: 'abc', storageKey: key });
  await app.services.storage.put(key, Readable.from([Buffer.from('abc')]));
  const turn = await startedTurn(sql, org);
  await putAttachment(sql.api, org, turn.chatId, { id: attachmentId, bytes: 'abc', storageKey: key });
  const waiting = await createChat(sql, org);
  const { assistantMessage } = await say(sql.api, org, waiting.id);
  return {
    chatId: chat.id,
    messageId: reply.id,
    attachmentId,
    turnRunId: turn.runId,
    turnLease: turn.leaseToken,
    waitingChatId: waiting.id,
    waitingMessageId: assistantMessage.id,
  };
}

/** A connected integration that the agents may use and that the run has resolved; an action to decide about, and one to reconcile. */
async function makeIntegration(sql: Sql, org: TestOrganization, runId: string): Promise<World> {
  await allow(sql, org, 'integrations.read', 'integrations.propose');
  const integration = await createConnected(sql, org, { key: 'web-shop' });
  const { key } = integration;
  const gatewayCapability = randomBytes(32).toString('hex');
  await resolveGateway(sql, org, key, { runId, token: gatewayCapability });
  const by = { org, integration, run: { runId }, token: gatewayCapability };
  const over = await propose(sql, by, { arguments: { amount: 3 } });
  await reject(sql.api, org, over.id);
  const action = await propose(sql, by);
  const unknown = await makeUnknown(sql, by, { arguments: { amount: 2 } });
  return {
    actionId: action.id,
    unknownActionId: unknown.id,
    overActionId: over.id,
    integrationKey: key,
    integrationId: integration.id,
    gatewayCapability,
    authorizationEpoch: String(await authorizationEpoch(sql, org.organizationId)),
  };
}

/** A published document, and a source. */
async function makeContext(app: TestApp, sql: Sql, org: TestOrganization): Promise<World> {
  await publishDocuments(sql, app.services.storage, org, { 'a.txt': {} });
  return { sourceId: (await storeSource(sql, app.services.storage, org, 'abc')).id };
}
