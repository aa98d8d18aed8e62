import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import t from 'tap';
import { errorEnvelopeSchema } from '../../api/http/envelope.ts';
import { publishBuiltinCatalog } from '../../engine/catalog/index.ts';
import { chatAttachmentKey, runOutputKey } from '../../engine/storage/index.ts';
import { expectSuccess, runTask, sqlOf, workerOf } from '../support/api_fixtures.ts';
import { ADMIN_TOKEN, SERVICE_TOKEN, startTestApp } from '../support/app.ts';
import {
  claimTurn,
  createChat,
  exchange,
  putAttachment,
  send as say,
  startedTurn,
  startTurn,
  text,
} from '../support/chat_fixtures.ts';
import { publishDocuments, storeSource } from '../support/context_files.ts';
import {
  claimNext,
  completeRun,
  createPlace,
  createSecondProfile,
  createTask,
  failRun,
  type Place,
  recordOutput,
  runNew,
} from '../support/fixtures.ts';
import { createItem } from '../support/inbox_fixtures.ts';
import { type Onboarding, onboardingIn } from '../support/onboarding_fixtures.ts';
import { type Operation, readOpenApi } from '../support/openapi.ts';
import { type GeneratedRequest, requestArbitrary } from '../support/request_arbitrary.ts';
import { createSchedule } from '../support/schedule_fixtures.ts';
import type { Hints, JsonSchema } from '../support/schema_arbitrary.ts';
import { transition } from '../support/transitions.ts';

// The same requests in every run. To dig: node test/api/openapi_fuzz.test.ts 500 7 (rounds of each operation, seed).
const [rounds, seed] = process.argv.slice(2).map(Number);
const ROUNDS = rounds ?? 25;
const SEED = seed ?? 20_261_128;
/** Fresh organizations for an operation that ends what it acts on. */
const WORLDS = 6;

const app = await startTestApp(t, { config: { logLevel: 'error', retryBackoffSeconds: 1 } });
const sql = sqlOf(app);
await publishBuiltinCatalog(app.services.db);
const { operations, components } = await readOpenApi(app.owner);

/** What exists, under the names that generated requests carry in its place. */
type World = Readonly<Record<string, string>>;

const ofOnboarding = ({ path }: Operation) => /^\/organization(s\/\{organizationId\}\/|-)onboarding/.test(path);

/** An onboarding in the state that the operation needs, with an answer under way in its chat where an agent calls. */
async function makeOnboarding({ operationId }: Operation): Promise<World> {
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
    ...(operationId === 'researchOnboarding' ? { capability: await onboardingCapability(onboarding) } : {}),
  };
}

/** The execution token of the turn that answers in the onboarding chat. */
async function onboardingCapability(onboarding: Onboarding): Promise<string> {
  const place = { organizationId: onboarding.organization_id, profileId: '', profileKey: 'chat' };
  await say(sql.api, place, String(onboarding.chat_id));
  return (await startTurn(sql.api, await claimTurn(sql, place))).executionToken;
}

/** An organization with a run that holds its lease, a claim, a failed task, an initiative, and files of each sort. */
async function makeWorld(operation: Operation): Promise<World> {
  if (/\/onboarding\b/.test(operation.path)) return makeOnboarding(operation);
  const place = await createPlace(sql, { key: 'growth', kind: 'department', maxConcurrentRuns: 9 });
  const failed = await runNew(sql, place);
  await failRun(sql.api, failed);
  const done = await runNew(sql, place);
  const key = runOutputKey(place.organizationId, done.runId);
  await app.services.storage.put(key, Readable.from([Buffer.from('abc')]));
  await recordOutput(sql.api, done, 'a.txt', key, 'abc');
  const documentKey = runOutputKey(place.organizationId, done.runId);
  await app.services.storage.put(documentKey, Readable.from([Buffer.from('{"entries":[]}')]));
  await recordOutput(sql.api, done, 'document.json', documentKey, '{"entries":[]}');
  await completeRun(sql.api, done, { result: { kind: 'completed', summary: 's', artifacts: [{ path: 'a.txt' }] } });
  const initiative = await createTask(sql, place, { kind: 'initiative' });
  const run = await runNew(sql, place, { spec: { inputs: [{ kind: 'inline', path: 'a.txt', text: 'abc' }] } });
  await recordOutput(sql.api, run, 'a.txt');
  const claimed = await createTask(sql, place);
  const claim = await claimNext(sql, place);
  const ready = await createTask(sql, place);
  const question = await createItem(sql.api, place, ready.id);
  const notice = await createItem(sql.api, place, claimed.id, { kind: 'notification' });
  const schedule = await createSchedule(sql, place);
  await transition(sql.api, 'organization_member_put', {
    p_organization_id: place.organizationId,
    p_subject: 'anna',
    p_role: 'viewer',
  });
  return {
    organizationId: place.organizationId,
    profileId: place.profileId,
    failedId: failed.taskId,
    doneId: done.taskId,
    doneRunId: done.runId,
    initiativeId: initiative.id,
    runningId: run.taskId,
    runId: run.runId,
    runLease: run.leaseToken,
    claimedId: claimed.id,
    requestId: claim.runRequestId,
    claimLease: claim.leaseToken,
    readyId: ready.id,
    questionId: question.id,
    noticeId: notice.id,
    scheduleKey: schedule.key,
    ...(await makeChats(place)),
    ...(await makeContext(place)),
    freshId: randomUUID(),
  };
}

/** A chat that waits for a message, one whose answer waits for a runtime, one that is being answered; an attachment. */
async function makeChats(place: Place): Promise<World> {
  await createSecondProfile(sql, place, { kind: 'chat', key: 'talk' });
  const chat = await createChat(sql, place);
  const answer = await exchange(sql, place, chat.id, [text('Yes')]);
  const attachmentId = randomUUID();
  const key = chatAttachmentKey(place.organizationId, chat.id);
  await putAttachment(sql.api, place, chat.id, { id: attachmentId, bytes: 'abc', storageKey: key });
  await app.services.storage.put(key, Readable.from([Buffer.from('abc')]));
  const turn = await startedTurn(sql, place);
  await putAttachment(sql.api, place, turn.chatId, { id: attachmentId, bytes: 'abc', storageKey: key });
  const waiting = await createChat(sql, place);
  const { assistantMessage } = await say(sql.api, place, waiting.id);
  return {
    chatId: chat.id,
    messageId: answer.id,
    attachmentId,
    turnRunId: turn.runId,
    turnLease: turn.leaseToken,
    waitingChatId: waiting.id,
    waitingMessageId: assistantMessage.id,
  };
}

/** A published document, and a source. */
async function makeContext(place: Place): Promise<World> {
  await publishDocuments(sql, app.services.storage, place, { 'a.txt': {} });
  return { sourceId: (await storeSource(sql, app.services.storage, place, 'abc')).id };
}

const placeholder = (...names: string[]) => fc.constantFrom(...names.map((name) => `@${name}@`));
const filled = (text: string, world: World) => text.replace(/@(\w+)@/g, (whole, name) => world[name] ?? whole);

function idOf(path: string): fc.Arbitrary<string> {
  if (path.includes('/agent-profiles')) return placeholder('profileId');
  if (path.includes('/chats')) return placeholder('chatId');
  return path.includes('/messages') ? placeholder('messageId') : placeholder('doneRunId', 'runId');
}

/** What a value of this name should mostly be, in calls of this path. */
function hintsOf({ path, operationId }: Operation): Hints {
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
    taskRef: path.endsWith('/promote') ? placeholder('doneId') : taskRef,
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
    inboxItemId: placeholder(path.endsWith('/acknowledge') ? 'noticeId' : 'questionId'),
    scheduleRef: placeholder('scheduleKey'),
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
    file: fc.constantFrom('swagger-ui.css', 'index.css'),
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

const agent = new Agent({ keepAlive: true });
t.teardown(async () => agent.destroy());

type Answer = Readonly<{ status: number; type: string; body: Buffer }>;

const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
/** Header values hold Latin-1 without controls; the client itself would refuse others. */
const headerText = (value: unknown) =>
  asText(value)
    .replace(/[^\t\x20-\x7e\xa0-\xff]/g, '?')
    .slice(0, 3000);

/** A path segment: encoded, but for percent signs that are there to be broken. */
function segment(value: string): string {
  return /^%(?:zz|c3%28|00|)$/.test(value) ? value : encodeURIComponent(value.toWellFormed());
}

function pathOf(operation: Operation, given: GeneratedRequest, world: World): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_whole, name) => {
    const value = filled(asText(given.params[name]), world);
    return name === 'path' ? value.split('/').map(segment).join('/') : segment(value);
  });
  const pairs = given.query.map(([name, value]) =>
    [name, filled(asText(value), world)].map((text) => encodeURIComponent(text.toWellFormed())).join('='),
  );
  return (pairs.length === 0 ? path : `${path}?${pairs.join('&')}`).slice(0, 8000);
}

async function send(operation: Operation, given: GeneratedRequest, world: World): Promise<Answer> {
  const { hostname, port } = new URL(app.url);
  const body =
    given.body &&
    (given.body.kind === 'raw'
      ? given.body.bytes
      : Buffer.from(filled(JSON.stringify(given.body.value) ?? 'null', world)));
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given.headers)) headers[name] = headerText(filled(asText(value), world));
  if (given.mediaType !== undefined && body) headers['content-type'] = given.mediaType;
  if (given.token !== undefined) headers['authorization'] = `Bearer ${filled(given.token, world)}`;
  if (body) headers['content-length'] = String(body.length);
  const outgoing = request({
    agent,
    hostname,
    port,
    method: operation.method,
    path: pathOf(operation, given, world),
    headers,
  });
  const answered = once(outgoing, 'response');
  outgoing.end(body);
  const [response] = await answered;
  if (response.headers['content-type'] === 'text/event-stream' && operation.method === 'GET') {
    // It has no end.
    response.destroy();
    return { status: response.statusCode, type: 'text/event-stream', body: Buffer.alloc(0) };
  }
  return { status: response.statusCode, type: String(response.headers['content-type']), body: await buffer(response) };
}

function isEnvelope(schema: JsonSchema | undefined): boolean {
  return typeof schema?.['properties'] === 'object' && 'success' in (schema['properties'] ?? {});
}

/** Why an answer is not one that the document allows; undefined when all is well. */
function fault(operation: Operation, answer: Answer): string | undefined {
  const { status, type, body } = answer;
  if (status >= 500) return `status ${status}`;
  const declared = operation.responses[status];
  // Broken paths are refused before it is known whose they are.
  if (!declared && ![400, 404, 405].includes(status)) return `status ${status} is not declared`;
  if (operation.method === 'HEAD' || status === 304) return body.length === 0 ? undefined : 'a body where none may be';
  // What is not an envelope by its description: bytes, metrics, the document itself.
  if (status < 400 && !isEnvelope(declared?.content?.['application/json']?.schema)) return undefined;
  if (type !== 'application/json; charset=utf-8') return `content type ${type}`;
  const envelope = JSON.parse(body.toString('utf8'));
  if (status < 400)
    return envelope.success === true && envelope.statusCode === status ? undefined : 'no success envelope';
  // GraphQL's own word for what it did not execute.
  const { errors } = envelope;
  if (operation.operationId === 'postAdminGraphql' && status === 400 && Array.isArray(errors)) {
    const known = errors.every(({ extensions }) => extensions.code === 'validation_failed' && extensions.requestId);
    return known && errors.length > 0 ? undefined : 'an error of GraphQL without its code';
  }
  const { success, data } = errorEnvelopeSchema.strict().safeParse(envelope);
  if (!success || data.statusCode !== status) return 'no error envelope';
  if (status === 400 && (data.error.issues ?? []).length === 0) return 'a 400 without issues';
  const invalid = ofOnboarding(operation) ? 'request_failed' : 'validation_failed';
  if (status === 400 && data.error.code !== invalid) return `400 ${data.error.code}`;
  if (declared && status !== 404 && !declared.description.includes(`\`${data.error.code}\``))
    return `${data.error.code} is not declared`;
  return undefined;
}

/** After these succeed, what they acted on is over, and the rest of the round would see nothing but that. */
const ending =
  /^(startRun|markRunRunning|completeRun|failRun|cancelTask|retryTask|(create|update|delete)Organization|deleteMember|(update|delete)AgentProfile|updateTask|deleteSchedule|respondTo|acknowledge|createMessage|cancelMessage|(update|delete)Chat|writeRunMessage|(discard|start|complete|update|put|retry|delete)Onboarding)/;

function tokenOf({ operationId, path }: Operation): string | undefined {
  if (operationId === 'researchOnboarding') return '@capability@';
  if (path.startsWith('/internal/admin')) return ADMIN_TOKEN;
  return path.startsWith('/internal/') ? SERVICE_TOKEN : undefined;
}

async function fuzz(operation: Operation): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let worlds = 1;
  let world = await makeWorld(operation);
  const token = tokenOf(operation);
  const requests = requestArbitrary(operation, { components, hints: hintsOf(operation), token });
  const answers = fc.asyncProperty(requests, async (given) => {
    const answer = await send(operation, given, world);
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    const wrong = fault(operation, answer);
    if (wrong) {
      const sent = `${operation.method} ${pathOf(operation, given, world)}`;
      throw new Error(`${wrong}: ${sent} → ${answer.body.toString('utf8').slice(0, 500)}`);
    }
    if (answer.status < 300 && ending.test(operation.operationId) && worlds < WORLDS) {
      worlds += 1;
      world = await makeWorld(operation);
    }
  });
  await fc.assert(answers, { seed: SEED, numRuns: ROUNDS });
  return statuses;
}

t.test('no input makes a 5xx, and every answer is one that the document describes', async (t) => {
  t.ok(operations.length > 40);
  for (const operation of operations) {
    await t.test(`${operation.method} ${operation.path}`, async (t) => {
      const statuses = await fuzz(operation);
      const seen = JSON.stringify(Object.fromEntries(statuses));
      t.ok(
        [...statuses.keys()].some((status) => status < 400),
        `some of it was good: ${seen}`,
      );
      if (operation.parameters.length > 0 || operation.body) {
        t.ok(
          [...statuses.keys()].some((status) => status >= 400),
          `and some of it bad: ${seen}`,
        );
      }
    });
  }
});

t.test('the app still works after all of it', async (t) => {
  const place = await createPlace(sql);
  const run = await runTask(app, place);
  t.same(expectSuccess(await workerOf(app, run).complete()), { status: 'succeeded' });
  t.same(app.logged, [], 'nothing was logged as an error');
});
