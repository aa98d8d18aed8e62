import fc from 'fast-check';
import type { Operation } from './openapi.ts';
import type { Hints } from './schema_arbitrary.ts';
import type { World } from './worlds.ts';

/** A name of the world, in place of what it stands for. */
const placeholder = (...names: string[]) => fc.constantFrom(...names.map((name) => `@${name}@`));
/** Puts what the world has in place of the names. */
export const filled = (text: string, world: World) => text.replace(/@(\w+)@/g, (whole, name) => world[name] ?? whole);

function idOf(path: string): fc.Arbitrary<string> {
  if (path.includes('/agent-profiles')) return placeholder('profileId');
  if (path.includes('/chats')) return placeholder('chatId');
  return path.includes('/messages') ? placeholder('messageId') : placeholder('doneRunId', 'runId');
}

/** What a value of this name should mostly be, in calls of this path. */
export function hintsOf({ path, operationId }: Operation): Hints {
  const ofOutcome = path.endsWith('/outcomes');
  const taskRef = ofOutcome
    ? placeholder('runningId')
    : placeholder('readyId', 'readyId', 'readyId', 'failedId', 'runningId', 'claimedId', 'initiativeId');
  const ofTurn = /\/(message|conversation)$|^\/internal\/runs\/.*\/attachments\//.test(path);
  const lease = placeholder(path.includes('run-requests') ? 'claimLease' : ofTurn ? 'turnLease' : 'runLease');
  const ofRun = ofTurn ? placeholder('turnRunId') : placeholder('runId', 'runId', 'doneRunId');
  const outcome = {
    // Those of the task that runs, as it was started.
    taskVersion: fc.constant(2),
    graphRevision: fc.constant(1),
    outcome: fc.record({ kind: fc.constant('needs_input'), question: fc.constant('Which?'), options: fc.constant([]) }),
  };
  const graphql = {
    query: fc.constantFrom('{ organizations(first: 1) { nodes { id } } }', '{ tasks { nodes { nothing } } }'),
    operationName: fc.constant(null),
  };
  return {
    ...(ofOutcome ? outcome : {}),
    ...(operationId === 'postAdminGraphql' ? graphql : {}),
    organizationId: placeholder(operationId === 'createOrganization' ? 'freshId' : 'organizationId'),
    slug: fc.constant('s-@freshId@'),
    organizationIds: fc.array(placeholder('organizationId'), { minLength: 1, maxLength: 2 }),
    taskRef: path.endsWith('/promote')
      ? placeholder('doneId')
      : path.endsWith('/{dependsOnRef}')
        ? placeholder('waitingId')
        : taskRef,
    dependsOnRef: placeholder('failedId'),
    taskId: taskRef,
    dependsOn: path.endsWith('/dependencies') ? taskRef : fc.array(taskRef, { maxLength: 2 }),
    parentId: placeholder('initiativeId'),
    runRequestId: placeholder('requestId'),
    runId: path.includes('run-requests')
      ? placeholder('freshId')
      : /\/promote$|\/sources$/.test(path)
        ? placeholder('doneRunId')
        : ofRun,
    id: idOf(path),
    chatId: path.endsWith('/cancel') ? placeholder('waitingChatId') : placeholder('chatId'),
    messageId: path.endsWith('/cancel') ? placeholder('waitingMessageId') : placeholder('messageId'),
    attachmentId: operationId === 'putChatAttachment' ? placeholder('freshId') : placeholder('attachmentId'),
    attachmentIds: fc.constantFrom([], ['@attachmentId@']),
    actionId: placeholder(
      path.endsWith('/reconcile') ? 'unknownActionId' : path.endsWith('/receipt') ? 'overActionId' : 'actionId',
    ),
    ...(/^\/internal\/(cli|git)\//.test(path) ? { integrationId: placeholder('integrationId') } : {}),
    inboxItemId: placeholder(path.endsWith('/acknowledge') ? 'noticeId' : 'questionId'),
    scheduleRef: placeholder('scheduleKey'),
    ...(path.includes('/integrations') && !path.includes('/onboarding')
      ? { integrationRef: placeholder('integrationKey'), integrationKey: placeholder('integrationKey') }
      : {}),
    authorizationEpoch: placeholder('authorizationEpoch'),
    ...(path.includes('/integrations/')
      ? { settings: fc.constant({ kind: 'stripe' }), tools: fc.constant(['items.list']) }
      : {}),
    ...(path.endsWith('/integrations') ? { key: fc.constant('k-@freshId@') } : {}),
    cron: fc.constantFrom('0 9 * * MON', '*/15 * * * *'),
    taskTemplate: fc.constant({ title: 'x', ownerProfileKey: 'growth' }),
    ...(path.endsWith('/schedules') ? { key: fc.constant('k-@freshId@') } : {}),
    pinnedTaskIds: fc.constantFrom([], ['@readyId@']),
    answers: fc.constant([]),
    parts: fc.constant([{ kind: 'text', text: 'Hello' }]),
    baseRevision: fc.constant(1),
    removePaths: fc.constant([]),
    scope: fc.constant('organization'),
    documents: fc.constant([
      path.endsWith('/promote')
        ? { kind: 'notes', path: 'a.txt', outputPath: 'document.json' }
        : { kind: 'facts', path: 'a.txt', entries: [{ key: 'k', evidence: ['@sourceId@'] }] },
    ]),
    fileName: fc.constantFrom('a.txt', 'ä "b".TXT'),
    mediaType: fc.constant('text/plain'),
    agentProfileId: placeholder('profileId'),
    ownerProfileKey: fc.constant('growth'),
    leaseToken: lease,
    'X-Lease-Token': lease,
    'X-Organization-Id': placeholder('organizationId'),
    artifactIndex: fc.constant('0'),
    artifacts: fc.constantFrom([], [{ path: 'a.txt' }]),
    output: fc.constant({
      kind: 'task_result',
      result: { kind: 'completed', summary: 's', artifacts: [{ path: 'a.txt' }] },
    }),
    path: fc.constantFrom('a.txt', 'a.txt', 'dir/ä b.txt'),
    file: fc.constantFrom('reference.js', 'index.css'),
    sourceId: operationId === 'putOnboardingSource' ? placeholder('freshId') : placeholder('sourceId'),
    reviewSha256: placeholder('reviewSha256'),
    expectedGeneration: fc.constantFrom(1, 1, 4),
    website: fc.constant('https://x.example/'),
    urls: fc.constant(['http://127.0.0.1/']),
    expectedVersion: fc.constantFrom(1, 1, 1, 2),
    sub: fc.constant('anna'),
    timezone: fc.constantFrom('Europe/Berlin', 'UTC'),
    ...Object.fromEntries(
      ['rootUri', 'instructionsUri', 'memoryRootUri', 'storageRootUri', 'workspaceUri'].map((name) => [
        name,
        fc.constant('org://@organizationId@/a/b'),
      ]),
    ),
    // Nobody waits for a generator.
    waitMs: fc.integer({ min: 0, max: 5 }),
  };
}
