import { randomUUID } from 'node:crypto';
import t from 'tap';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { fingerprint, refusalOf } from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, startTestApp } from '../../support/app.ts';
import type { Client, Reply } from '../../support/http.ts';
import { type Operation, readOpenApi } from '../../support/openapi.ts';
import { makeWorld, type World } from '../../support/worlds.ts';

const app = await startTestApp(t, {
  config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] }, logLevel: 'error' },
});
await publishBuiltinCatalog(app.services.db);
const owner = app.owner.as(OWNER_TOKEN);
const { operations } = await readOpenApi(app.owner);

/** Every path of docs/interface.md 4.6 and 4.12, as the OpenAPI document lists them. */
const ofOwners = operations.filter(({ path }) => path.startsWith('/organizations/{organizationId}/tasks'));
const ofAgents = operations.filter(({ path }) => path.startsWith('/internal/agent/'));

type Body = (world: World) => unknown;
const noBody: Body = () => undefined;
const aTask: Body = () => ({ title: 'x', ownerProfileKey: 'growth' });

/** What each is called with so that it succeeds; an endpoint that is not here fails the first test. */
const bodies: Readonly<Record<string, Body>> = {
  listTasks: noBody,
  createTask: aTask,
  getTask: noBody,
  getTaskGraph: noBody,
  explainTask: noBody,
  cancelTask: noBody,
  retryTask: noBody,
  deleteTaskDependency: noBody,
  putTaskInput: () => 'bytes',
  getAgentStatus: noBody,
  setWorkDispatchAsAgent: () => ({ stopped: true }),
  listTasksAsAgent: noBody,
  createTaskAsAgent: aTask,
  getTaskAsAgent: noBody,
  explainTaskAsAgent: noBody,
  updateTaskAsAgent: () => ({ expectedVersion: 1, title: 'y' }),
  listTaskDependenciesAsAgent: noBody,
  createTaskDependencyAsAgent: ({ claimedId }) => ({ dependsOn: claimedId }),
  deleteTaskDependencyAsAgent: noBody,
  cancelTaskAsAgent: noBody,
  retryTaskAsAgent: noBody,
  putTaskInputAsAgent: () => 'bytes',
  promoteContext: ({ sourceId }) => ({
    scope: 'organization',
    baseRevision: 1,
    documents: [{ kind: 'facts', path: 'a.txt', entries: [{ key: 'k', evidence: [sourceId] }] }],
  }),
  promoteContextOfTask: () => ({
    scope: 'organization',
    baseRevision: 1,
    documents: [{ kind: 'notes', path: 'a.txt', outputPath: 'document.json' }],
  }),
  retainContextSourceAsAgent: ({ doneRunId }) => ({ kind: 'run_artifact', runId: doneRunId, artifactIndex: 0 }),
  researchOnboarding: () => ({ urls: ['http://127.0.0.1/'] }),
  createHumanInboxItemAsAgent: () => ({ kind: 'question', title: 'Which one?' }),
  stageTaskOutcome: ({ runId }) => ({
    runId,
    taskVersion: 2,
    graphRevision: 1,
    idempotencyKey: 'k',
    outcome: { kind: 'needs_input', question: 'Which?', options: [] },
  }),
  listIntegrationsAsAgent: noBody,
  getIntegrationAsAgent: noBody,
  resolveIntegration: ({ integrationKey, authorizationEpoch, runId }) => ({
    integrationKey,
    authorizationEpoch: Number(authorizationEpoch),
    kind: 'cli',
    runId,
  }),
  listActionsAsAgent: noBody,
  getActionAsAgent: noBody,
  refreshInsightsAsAgent: () => ({}),
  listSchedulesAsAgent: noBody,
  createScheduleAsAgent: () => ({ cron: '0 9 * * *', taskTemplate: { title: 'x', ownerProfileKey: 'growth' } }),
  pauseScheduleAsAgent: noBody,
  resumeScheduleAsAgent: noBody,
  deleteScheduleAsAgent: noBody,
};

/** Which task of the world a call is about. */
function taskOf({ operationId }: Operation, world: World): string | undefined {
  if (operationId.startsWith('retryTask')) return world['failedId'];
  if (operationId.startsWith('deleteTaskDependency')) return world['waitingId'];
  if (operationId === 'stageTaskOutcome') return world['runningId'];
  return operationId === 'promoteContextOfTask' ? world['doneId'] : world['readyId'];
}

/** The call with what the world has, in the organization that is named. */
function call(client: Client, operation: Operation, world: World, organizationId = world['organizationId']) {
  const { method, path, operationId } = operation;
  const values: Readonly<Record<string, string | undefined>> = {
    organizationId,
    taskRef: taskOf(operation, world),
    dependsOnRef: world['failedId'],
    scheduleRef: world['scheduleKey'],
    integrationKey: world['integrationKey'],
    actionId: world['actionId'],
    path: 'a.txt',
  };
  const filled = path.replace(/\{(\w+)\*?\}/g, (_whole, name) => values[name] ?? '');
  const query = operation.parameters.some(({ name }) => name === 'authorizationEpoch')
    ? { authorizationEpoch: world['authorizationEpoch'] }
    : {};
  return client.send(method, filled, bodies[operationId]?.(world), { query });
}

const outcomeOf = (reply: Reply<unknown>) => (reply.status < 400 ? String(reply.status) : refusalOf(reply));
const declared = ({ responses }: Operation) => Object.keys(responses).filter((status) => status < '400');
const namesAnother = ({ path }: Operation) => /\{(taskRef|scheduleRef|actionId)\}/.test(path);

t.test('the matrix holds every endpoint that the document has, and no other', async (t) => {
  const described = [...ofOwners, ...ofAgents].map(({ operationId }) => operationId);
  t.same(Object.keys(bodies).sort(), described.sort());
});

/** Two worlds, made for the first operation that asks. */
function lazyPair(): (operation: Operation) => Promise<Readonly<{ own: World; foreign: World }>> {
  let pair: Promise<Readonly<{ own: World; foreign: World }>> | undefined;
  const make = async (operation: Operation) => ({
    own: await makeWorld(app, operation, 'operator'),
    foreign: await makeWorld(app, operation, 'operator'),
  });
  return (operation) => {
    pair ??= make(operation);
    return pair;
  };
}

const shared = lazyPair();

/** A world of the operation's own, unless it only reads. */
async function worldFor(operation: Operation): Promise<World> {
  return operation.method === 'GET' ? (await shared(operation)).own : makeWorld(app, operation, 'operator');
}

t.test('every endpoint of owners serves its owner, and neither the service token nor a capability', async (t) => {
  for (const operation of ofOwners) {
    const world = await worldFor(operation);
    const { operationId } = operation;
    for (const client of [app.service, owner.as(world['capability'] ?? '')]) {
      t.equal(outcomeOf(await call(client, operation, world)), '401 owner_unauthorized', operationId);
    }
    t.same([outcomeOf(await call(owner, operation, world))], declared(operation), operationId);
  }
});

t.test('every endpoint of agents serves the service token and a capability in their own organization', async (t) => {
  for (const operation of ofAgents) {
    const { operationId } = operation;
    const forService = await worldFor(operation);
    // Research takes a capability of the chat alone (docs/interface.md 4.12.3).
    const expected = operationId === 'researchOnboarding' ? ['401 agent_unauthorized'] : declared(operation);
    t.same([outcomeOf(await call(app.service, operation, forService))], expected, `${operationId} by the service`);
    const world = await worldFor(operation);
    const agent = app.owner.as(world['capability'] ?? '');
    t.same([outcomeOf(await call(agent, operation, world))], declared(operation), `${operationId} by a capability`);
  }
});

t.test('what is another organization’s is there for nobody, and nothing of it changes', async (t) => {
  // No call changes anything, so that they can share their worlds; an onboarding's are of another kind.
  const ofOnboardings = lazyPair();
  const ofOthers = lazyPair();
  for (const operation of [...ofOwners, ...ofAgents]) {
    const { operationId, path } = operation;
    const { own, foreign } = await (operationId === 'researchOnboarding' ? ofOnboardings : ofOthers)(operation);
    const agent = app.owner.as(own['capability'] ?? '');
    const before = await fingerprint(app);
    const anywhere = path.startsWith('/internal/') ? app.service : owner;
    const research = operationId === 'researchOnboarding';
    t.match(
      outcomeOf(await call(anywhere, operation, own, randomUUID())),
      research ? /^401 / : /^404 /,
      `${operationId} in no organization`,
    );
    if (namesAnother(operation)) {
      t.match(
        outcomeOf(await call(anywhere, operation, foreign, own['organizationId'])),
        /^404 /,
        `${operationId} of another’s`,
      );
    }
    if (anywhere === app.service) {
      const unauthorized = '401 agent_unauthorized';
      t.equal(
        outcomeOf(await call(agent, operation, foreign)),
        unauthorized,
        `${operationId} at another by a capability`,
      );
      t.equal(outcomeOf(await call(agent, operation, own, randomUUID())), unauthorized, operationId);
      if (namesAnother(operation)) {
        t.match(
          outcomeOf(await call(agent, operation, foreign, own['organizationId'])),
          /^40[14] /,
          `${operationId} of another’s by a capability`,
        );
      }
    }
    t.equal(await fingerprint(app), before, operationId);
  }
});
