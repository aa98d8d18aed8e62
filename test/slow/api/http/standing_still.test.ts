import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { apiEndpoints } from '../../../../api/app.ts';
import { type Endpoint, isStream } from '../../../../api/http/endpoint.ts';
import { toolRows } from '../../../../engine/integrations/record.ts';
import { providers } from '../../../../engine/providers/index.ts';
import { runtimeOf, startTurn } from '../../../api/chat_turns/turns.ts';
import { createChat, createChatOrganization } from '../../../api/chats/support.ts';
import { createCoder, resolveGit } from '../../../api/git/support.ts';
import { complete, inState, publish, putSource } from '../../../api/onboardings/support.ts';
import { connectTokens } from '../../../engine/integrations/support.ts';
import { createProposer, propose, reject } from '../../../support/action_fixtures.ts';
import {
  agentPath,
  claim,
  expectSuccess,
  type Fields,
  makeTask,
  ownerPath,
  runTask,
  sqlOf,
  startRun,
  workerOf,
} from '../../../support/api_fixtures.ts';
import { openBrowser } from '../../../support/authorization_server.ts';
import { publishDocuments } from '../../../support/context_files.ts';
import { createTestOrganization, sha256 } from '../../../support/fixtures.ts';
import { rawConnection } from '../../../support/raw_connection.ts';
import { until } from '../../../support/wait.ts';
import { MONGO_USER, startWorld } from './standing_world.ts';

const CALLS = 200;
/** Half of the connections. */
const AT_ONCE = 4;

/** What requests waited for, and which of it while one had a connection. */
const waited: string[] = [];
const held: string[] = [];
let hold: Promise<void> | undefined;

/** What a request waits for goes on only when no request has a connection; if one keeps it, that is recorded. */
async function standStill(what: string): Promise<void> {
  waited.push(what);
  await until('no connection is in use', () => app.services.db.load().running === 0, 5_000).catch(() => {
    held.push(what);
  });
  await hold;
}

const { app, origin, mongoPort, authorization } = await startWorld(t, standStill);
const sql = sqlOf(app);
const { owner, service } = app;
await publish(app);

// --- What the requests are about.

const org = await createTestOrganization(sql, { maxConcurrentRuns: 20, limits: { maxConcurrentRuns: 20 } });
const other = await createTestOrganization(sql);
const talking = await createChatOrganization(app);
const chat = await createChat(app, talking);
const attachmentId = randomUUID();
const chatPath = ownerPath(talking, `/chats/${chat.id}`);
const attachment = { kind: 'chat_attachment', chatId: chat.id, attachmentId };
const markdown = { query: { fileName: 'plan.md', mediaType: 'text/markdown' } };
const attach = (id: string) => owner.put(`${chatPath}/attachments/${id}`, 'the plan', markdown);
expectSuccess(await attach(attachmentId), 201);
const message = { author: { kind: 'human', displayName: 'Anna' }, parts: [{ kind: 'text', text: 'What do we cost?' }] };
expectSuccess(await owner.post(`${chatPath}/messages`, message), 202);
const turn = await startTurn(app, talking);

const task = await makeTask(app, org, { spec: { inputs: [{ kind: 'upload', path: 'in/a.txt' }] } });
const inputOf = (ref: string, path: string) => `/tasks/${ref}/inputs/${path}`;
expectSuccess(await owner.put(ownerPath(org, inputOf(task.id, 'in/a.txt')), 'a'), 201);
const run = await startRun(app, await claim(app, org));
const worker = workerOf(app, run);
const done = await runTask(app, org);
expectSuccess(await workerOf(app, done).put('facts.json', '{"entries": [{"key": "founded", "value": "2019"}]}'), 201);
expectSuccess(await workerOf(app, done).completeWith('facts.json'));
const criterion = {
  kind: 'output_file',
  path: 'a.json',
  checks: [{ kind: 'json_pointer', pointer: '', operator: 'exists' }],
};
const unchecked = await runTask(app, org, { spec: { acceptanceCriteria: [criterion] } });
expectSuccess(await workerOf(app, unchecked).put('a.json', '{}'), 201);
await publishDocuments(sql, app.services.storage, org, { 'facts.json': {} });
const promotion = { scope: 'organization', documents: [{ kind: 'facts', path: 'facts.json' }] };
const entries = [{ key: 'founded', value: '2019' }];

const collecting = await inState(app, 'collecting');
const reviewed = await inState(app, 'review');
const discussed = await inState(app, 'review');
expectSuccess(await owner.post(ownerPath(discussed, `/chats/${discussed.chatId}/messages`), message), 202);
const researcher = owner.as((await startTurn(app, discussed as never)).executionToken);
const research = (client = researcher) =>
  client.post(
    agentPath(discussed, '/onboarding/research'),
    { urls: [`${origin}/prices`], question: 'How much?' },
    { headers: { 'idempotency-key': randomUUID() } },
  );

/** A new integration of the provider, which is not connected. */
async function create(provider: string, settings?: Fields, key = provider): Promise<string> {
  const path = ownerPath(org, '/integrations');
  const { id } = expectSuccess(await owner.post<{ id: string }>(path, { key, provider }), 201);
  if (settings) expectSuccess(await owner.put(`${path}/${id}/settings`, { settings }));
  return `${path}/${id}`;
}

/** One that was authorized. */
async function connect(
  provider: string,
  more: Readonly<Record<string, string>> = {},
  kind = 'oauth2',
): Promise<string> {
  const tokens = kind === 'oauth2' ? { access_token: 'a', refresh_token: 'r', ...more } : more;
  const facts = { kind, grantHash: sha256(provider) };
  const connected = await connectTokens(sql, tokens, { keys: app.config.integrations.encryptionKeys, provider, facts });
  return ownerPath(connected.org, `/integrations/${connected.target.integrationId}`);
}

const mcp = await create('mcp', { kind: 'mcp', serverUrl: `${origin}/mcp` });
const analytics = await create('google-analytics');
const client = { id: 'runner', secret: null, authentication: 'post' };
const kept = JSON.stringify({ metadata: authorization, resource: `${origin}/mcp`, client });
const xUser = JSON.stringify({ kind: 'oauth1', token: 't', secret: 's', userId: '7', screenName: 'acme' });
const mongodb = {
  kind: 'mongodb',
  host: '127.0.0.1',
  port: mongoPort,
  srv: false,
  tls: false,
  ...MONGO_USER,
};
const github = await create('github');
const stores = await create('lemon-squeezy', undefined, 'stores');

const start = (at: string, provider: string, body: Fields = {}) =>
  owner.post<{ authorizationUrl: string }>(`${at}/oauth/${provider}/start`, body);
const revoke = (at: string, provider: string) => owner.delete(`${at}/oauth/${provider}/grant`);

/** As far as the browser goes by itself: to the provider. */
async function press(at: string, provider: string) {
  const { authorizationUrl } = expectSuccess(await start(at, provider));
  const browser = openBrowser();
  const { url, response } = await browser.go(authorizationUrl, ({ pathname }) => pathname.endsWith('authorize'), {
    method: 'POST',
  });
  return { browser, url, response };
}

const coder = await createCoder(
  { app, sql },
  {
    policies: ['git.read', 'git.propose', 'integrations.read', 'integrations.propose'],
    tools: toolRows(providers.get('github')?.tools ?? []),
  },
);
const cli = await resolveGit({ app, sql }, coder.org, coder.integrationId, coder.run, 'cli');
const gateway = owner.as(cli.capability);
const invocation = (rest: string, id: string = randomUUID()) =>
  `/internal/cli/integrations/${coder.integrationId}/invocations/${id}${rest}`;
const putFile = (at: string) => gateway.put(at, 'the offer', { query: { name: 'offer.md' } });

/** A file that was uploaded and is not looked at yet. */
async function uploaded(): Promise<Readonly<{ at: string; fields: Fields }>> {
  const at = invocation(`/files/${randomUUID()}`);
  const fields = { name: 'a.txt', contentType: 'text/plain', sizeBytes: 1, sha256: sha256('a') };
  const begun = expectSuccess(
    await gateway.post<{ uploadUrl: string; headers: Record<string, string> }>(`${at}/begin`, fields),
  );
  await fetch(begun.uploadUrl, { method: 'PUT', headers: begun.headers, body: 'a' });
  return { at, fields };
}

const packet = (text: string) => (text.length + 4).toString(16).padStart(4, '0') + text;
const push = packet(`${'0'.repeat(40)} ${'1'.repeat(40)} refs/heads/a\0report-status atomic\n`);

/** What git sends. */
const gitCall = (service: string, body: string) =>
  fetch(`${coder.url().replace(/\/\/.*@/, '//')}/${service}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${coder.capability}`,
      'content-type': `application/x-${service}-request`,
    },
    body,
  });

/** An action that is over. */
async function rejected(): Promise<string> {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by);
  await reject(sql.api, by.org, id);
  return ownerPath(by.org, `/actions/${id}`);
}

type Reply = Readonly<{ status: number }> | Response;

/** A request of each kind that waits for others than Postgres, by the operation that it calls. */
const requests: Readonly<Record<string, () => Promise<Reply>>> = {
  putOnboardingSource: () => putSource(app, collecting, '# Plan'),
  completeOnboarding: () => complete(app, reviewed),
  researchOnboarding: () => research(),
  putTaskInput: () => owner.put(ownerPath(org, inputOf(task.id, 'in/a.txt')), 'b'),
  putTaskInputAsAgent: () => service.put(agentPath(org, inputOf(task.id, 'in/a.txt')), 'c'),
  putRunOutput: () => worker.put('out.txt', 'out'),
  completeRun: () => workerOf(app, unchecked).completeWith('a.json'),
  getRunInput: () => worker.input('in/a.txt'),
  getRunContextFile: () => owner.fetch(ownerPath(org, `/runs/${run.runId}/context/files/content?path=in/a.txt`)),
  getRunArtifact: () => owner.fetch(ownerPath(org, `/runs/${done.runId}/artifacts/0/content`)),
  getRunAttachment: () => runtimeOf(app, turn).attachment(attachmentId),
  putChatAttachment: () => attach(randomUUID()),
  getChatAttachment: () => owner.fetch(`${chatPath}/attachments/${attachmentId}/content`),
  streamChatEvents: () => owner.fetch(`${chatPath}/events`),
  retainContextSource: () => owner.post(ownerPath(talking, '/context/sources'), attachment),
  retainContextSourceAsAgent: () =>
    service.post(agentPath(org, '/context/sources'), { kind: 'run_artifact', runId: done.runId, artifactIndex: 0 }),
  getContextSource: () => owner.fetch(ownerPath(talking, `/context/sources/${source.id}/content`)),
  getContextFile: () => owner.fetch(ownerPath(org, '/context/files/content?scope=organization&path=facts.json')),
  promoteContext: () =>
    service.post(agentPath(org, '/context/promotions'), {
      ...promotion,
      baseRevision: 1,
      documents: [{ kind: 'facts', path: 'facts.json', entries }],
    }),
  promoteContextOfTask: () =>
    service.post(agentPath(org, `/tasks/${done.taskId}/context-revisions/promote`), { ...promotion, baseRevision: 2 }),

  putIntegrationSettings: async () =>
    owner.put(`${await connect('github')}/settings`, { settings: { kind: 'github', owner: 'a', repositories: ['b'] } }),
  putIntegrationCredential: async () =>
    owner.put(`${await create('stripe')}/credential`, { kind: 'api_key', apiKey: 'rk_test_0123456789' }),
  discoverIntegration: async () => owner.post(`${await connect('github')}/discover`),
  listIntegrationStores: async () =>
    owner.post(`${await create('lemon-squeezy')}/lemon-squeezy/stores`, { apiKey: 'x'.repeat(40) }),
  listIntegrationResources: async () =>
    owner.post(`${await create('mongodb')}/mongodb/resources`, { databaseName: 'shop', credential: mongodb }),
  listIntegrationProperties: async () => owner.get(`${await connect('google-analytics')}/google-analytics/properties`),
  startMcpAuthorization: () => start(mcp, 'mcp'),
  beginAuthorization: async () => ({ status: (await press(mcp, 'mcp')).url.pathname === '/authorize' ? 303 : 500 }),
  callback_github: async () => {
    const { browser, url } = await press(github, 'github');
    const back = new URL('/oauth/github/callback', app.url);
    back.search = String(new URLSearchParams({ state: url.searchParams.get('state') ?? '', code: 'c' }));
    return { status: (await browser.go(back, () => false)).response?.status ?? 500 };
  },
  executeTool: () =>
    gateway.post(invocation('/execute'), {
      tool: 'github.repositories.get',
      arguments: { owner: 'acme', repo: 'shop' },
    }),
  putInvocationFile: () => putFile(invocation(`/files/${randomUUID()}`)),
  getInvocationFile: async () => {
    const at = invocation(`/files/${randomUUID()}`);
    expectSuccess(await putFile(at), 201);
    return gateway.fetch(at);
  },
  completeInvocationFile: async () => {
    const { at, fields } = await uploaded();
    return gateway.post(`${at}/complete`, fields);
  },
  discoverRepository: () =>
    gateway.as(coder.capability).fetch(`${new URL(coder.url()).pathname}/info/refs?service=git-upload-pack`),
  fetchFromRepository: () => gitCall('git-upload-pack', '0000'),
  pushToRepository: () => gitCall('git-receive-pack', `${push}0000`),
  revokeGithubGrant: async () => revoke(await connect('github'), 'github'),
  revokeGoogleAnalyticsGrant: async () => revoke(await connect('google-analytics'), 'google-analytics'),
  revokeGoogleWorkspaceGrant: async () => revoke(await connect('google-workspace'), 'google-workspace'),
  revokeXAdsGrant: async () => revoke(await connect('x-ads', { credential: xUser }, 'oauth1'), 'x-ads'),
  revokeMcpGrant: async () => revoke(await connect('mcp', { authorization: kept }), 'mcp'),
};
/** Declared to wait like `startMcpAuthorization`, and they do not: these servers are known, and what is signed is in the database. */
const QUIET: Readonly<Record<string, () => Promise<Reply>>> = {
  startGithubAuthorization: () => start(github, 'github'),
  startGoogleAnalyticsAuthorization: () => start(analytics, 'google-analytics'),
  startGoogleWorkspaceAuthorization: async () =>
    start(await create('google-workspace'), 'google-workspace', { accessMode: 'read_only', enabledTools: ['gmail'] }),
  startXAdsAuthorization: async () => start(await create('x-ads'), 'x-ads'),
  getActionReceipt: async () => owner.fetch(`${await rejected()}/receipt`),
};
/** They wait too, and their definitions do not say so. */
const MORE = ['completeRun', 'beginAuthorization', 'callback_github'];

const waits = ({ external, body, response }: Endpoint) => external === true || isStream(body) || isStream(response);
const source = expectSuccess(await owner.post<{ id: string }>(ownerPath(talking, '/context/sources'), attachment), 201);

t.test('every request that waits is tried', async (t) => {
  const names = apiEndpoints()
    .filter(waits)
    .map(({ operationId }) => operationId);
  t.same(Object.keys({ ...requests, ...QUIET }).sort(), [...names, ...MORE].sort());
});

for (const [name, request] of Object.entries({ ...requests, ...QUIET })) {
  t.test(`${name} holds no connection while it waits`, async (t) => {
    waited.length = 0;
    held.length = 0;
    const reply = await request();
    // The providers respond with nothing that makes sense.
    t.match(String(reply.status), /Integration|Tool|Repository/.test(name) ? /^(2..|502)$/ : /^(2..|303)$/);
    // An event stream waits for its client alone.
    t.equal(waited.length > 0, !(name in QUIET || name === 'streamChatEvents'), waited.join(', '));
    if (reply instanceof Response) {
      // Its body is not read yet, and of events there is no end.
      await standStill('the client');
      await reply.body?.cancel();
    }
    t.same(held, []);
  });
}

/** With two hundred requests of one owner that stand still, another one is served at once. */
async function servesOthers(t: Test): Promise<void> {
  t.equal(app.services.db.load().running, 0);
  const began = performance.now();
  expectSuccess(await owner.get(ownerPath(other, '/tasks')));
  t.ok(performance.now() - began < 1_000, 'another organization is served at once');
}

t.test('two hundred bodies that do not come keep nobody waiting', async (t) => {
  const path = ownerPath(org, '/tasks');
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n`;
  const clients = Array.from({ length: CALLS }, () => {
    const client = rawConnection(app.url);
    client.send(`${head}Expect: 100-continue\r\n\r\n`);
    return client;
  });
  await Promise.all(clients.map((client) => client.receives(/^HTTP\/1\.1 100 /)));
  for (const client of clients) client.send('{"title": ');
  await servesOthers(t);
  for (const { socket } of clients) socket.destroy();
});

const slow: Readonly<Record<string, Readonly<{ request: () => Promise<Reply>; atOnce: number }>>> = {
  'researches with keys of a silent website': { request: () => research(), atOnce: AT_ONCE },
  'questions to a silent provider': {
    request: () => owner.post(`${stores}/lemon-squeezy/stores`, { apiKey: 'x'.repeat(40) }),
    atOnce: AT_ONCE,
  },
  'uploads to a slow disk': { request: () => attach(randomUUID()), atOnce: AT_ONCE },
  'downloads from a slow disk': {
    request: () => owner.fetch(`${chatPath}/attachments/${attachmentId}/content`),
    atOnce: CALLS,
  },
};
for (const [name, { request, atOnce }] of Object.entries(slow)) {
  t.test(`two hundred ${name} keep nobody waiting`, async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    hold = promise;
    t.teardown(resolve);
    waited.length = 0;
    held.length = 0;
    const refused: number[] = [];
    const calls = Array.from({ length: CALLS }, async () => {
      const { status } = await request();
      if (status === 429) refused.push(status);
      return status;
    });
    await until('some are in work, and the others refused', () => {
      return waited.length === atOnce && refused.length === CALLS - atOnce;
    });
    await servesOthers(t);
    hold = undefined;
    resolve();
    const statuses = await Promise.all(calls);
    t.equal(statuses.filter((status) => status !== 429).length, atOnce);
    t.same(held, []);
  });
}
