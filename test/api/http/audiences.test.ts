import t from 'tap';
import { apiEndpoints } from '../../../api/app.ts';
import { agentCalls, type Calls } from '../../support/agent_calls.ts';
import {
  agentPath,
  claim,
  expectSuccess,
  fingerprint,
  type HeldRun,
  makeTask,
  ownerPath,
  refusalOf,
  runTask,
  sqlOf,
  startOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import type { Client } from '../../support/http.ts';

const app = await startTestApp(t, { config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } } });
const owner = app.owner.as(OWNER_TOKEN);
/** The same app, whose owner is the one with the token. */
const owned = { ...app, owner };
const org = await createTestOrganization(sqlOf(app), { key: 'operator', maxConcurrentRuns: 5 });
const agentOf = (held: HeldRun) => app.owner.as(held.executionToken);

t.test('owner routes, agent routes and worker routes each want their own token', async (t) => {
  const held = await runTask(owned, org);
  const task = await makeTask(owned, org);
  const item = await claim(app, org);
  const ownerCalls = (client: Client): Calls => ({
    list: () => client.get(ownerPath(org, '/tasks')),
    task: () => client.get(ownerPath(org, `/tasks/${held.taskId}`)),
    create: () => client.post(ownerPath(org, '/tasks'), { title: 'x', ownerProfileKey: 'operator' }),
    cancel: () => client.post(ownerPath(org, `/tasks/${held.taskId}/cancel`)),
    retry: () => client.post(ownerPath(org, `/tasks/${held.taskId}/retry`)),
    upload: () => client.put(ownerPath(org, `/tasks/${held.taskId}/inputs/a`), 'a'),
    runs: () => client.get(ownerPath(org, '/runs')),
    run: () => client.get(ownerPath(org, `/runs/${held.runId}`)),
    context: () => client.get(ownerPath(org, `/runs/${held.runId}/context`)),
    logs: () => client.get(ownerPath(org, `/runs/${held.runId}/logs`)),
    artifact: () => client.get(ownerPath(org, `/runs/${held.runId}/artifacts/0/content`)),
    file: () => client.get(ownerPath(org, `/runs/${held.runId}/context/files/content?path=a`)),
  });
  const workerCalls = (client: Client): Calls => {
    const worker = workerOf(app, held, client);
    return {
      pull: () => client.post('/internal/run-requests/pull', { workerId: 'w' }),
      start: () => client.post(`/internal/run-requests/${item.runRequestId}/start`, startOf(item)),
      running: () => worker.running(),
      heartbeat: () => worker.heartbeat(),
      logs: () => worker.logs([]),
      complete: () => worker.complete(),
      fail: () => worker.fail(),
      put: () => worker.put('a', 'a'),
      inputs: () => worker.inputs(),
    };
  };
  const before = await fingerprint(app);
  const strangers: Record<string, Client> = { nobody: app.owner, service: app.service, capability: agentOf(held) };
  for (const [who, client] of Object.entries(strangers)) {
    for (const [name, call] of Object.entries(ownerCalls(client))) {
      t.equal(refusalOf(await call()), '401 owner_unauthorized', `owner ${name} by ${who}`);
    }
  }
  for (const [who, client] of Object.entries({ nobody: app.owner, owner, capability: agentOf(held) })) {
    for (const [name, call] of Object.entries(workerCalls(client))) {
      t.equal(refusalOf(await call()), '401 agent_unauthorized', `worker ${name} by ${who}`);
    }
  }
  for (const [who, client] of Object.entries({ nobody: app.owner, owner })) {
    for (const [name, call] of Object.entries(agentCalls(client, org, task.id))) {
      t.equal(refusalOf(await call()), '401 agent_unauthorized', `agent ${name} by ${who}`);
    }
  }
  t.equal(await fingerprint(app), before, 'and nothing was changed by any of it');
  expectSuccess(await workerOf(app, held).complete());
});

t.test('members of an organization alone reach it: no owner path leaves out the check', async (t) => {
  const paths = apiEndpoints().filter((one) => one.audience === 'owner' && one.path.includes('{organizationId}'));
  t.ok(paths.length > 20);
  const open = paths.filter((one) => one.membership === 'none').map((one) => one.operationId);
  t.same(open, ['createOrganization']);
  const unchecked = paths.filter((one) => !one.writes && one.method !== 'get').map((one) => one.operationId);
  t.same(unchecked, [], 'and no viewer writes');
});

t.test('every path says by its beginning whom it is for', async (t) => {
  for (const one of apiEndpoints()) {
    const agent = one.path.startsWith('/internal/agent/');
    const worker = /^\/internal\/(?:runs|run-requests)\//.test(one.path);
    const gateway = /^\/internal\/(?:cli|git)\//.test(one.path);
    const expected = agent ? 'agent' : worker ? 'worker' : gateway ? 'gateway' : 'owner';
    t.equal(one.audience, expected, `${one.method} ${one.path}`);
  }
});

t.test('no token ever shows in what is logged', async (t) => {
  const held = await runTask(owned, org);
  const worker = workerOf(app, held);
  expectSuccess(await worker.running());
  expectSuccess(await worker.put('a.txt', 'a'), 201);
  expectSuccess(await agentOf(held).get(agentPath(org, '/status')));
  expectSuccess(await worker.complete());
  const secret = held.leaseToken.split('.')[1] ?? '';
  const logged = JSON.stringify(app.logged);
  for (const token of [SERVICE_TOKEN, OWNER_TOKEN, held.executionToken, secret]) t.notOk(logged.includes(token));
  t.ok(logged.includes(held.runId) || logged.includes('completeRun'), 'although the calls are logged');
});
