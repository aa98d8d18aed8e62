import t from 'tap';
import type { z } from 'zod';
import type { taskExplanationSchema } from '../../../api/tasks/explain.ts';
import type { Task } from '../../../api/tasks/schema.ts';
import {
  agentPath,
  expectSuccess,
  makeTask,
  ownerPath,
  pullItems,
  readTask,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);

t.test('spend limits are set, shown, reached and raised', async (t) => {
  const org = await createTestOrganization(sql);
  const spec = { budget: { maxCostMinorUnits: 100, maxTokens: 1_000 } };
  const run = await runTask(app, org, { spec });
  const shown = await readTask(app, org, run.taskId);
  t.match(shown.spec.budget, { maxAgentRuns: 10, ...spec.budget });
  t.same(shown.state.spend, { costMinorUnits: 0, tokens: 0, costKnown: false, unknownCostRuns: 1 }, 'one is under way');
  const usage = { inputTokens: 40, outputTokens: 2, toolCalls: 1 };
  expectSuccess(await workerOf(app, run).fail({ retryable: true }, { usage: { ...usage, costMinorUnits: 100 } }));
  const blocked = await readTask(app, org, run.taskId);
  t.match(blocked, {
    status: 'blocked',
    state: {
      blockers: [{ kind: 'budget' }],
      spend: { costMinorUnits: 100, tokens: 42, costKnown: true, unknownCostRuns: 0 },
    },
  });
  const told = expectSuccess(
    await app.owner.get<z.output<typeof taskExplanationSchema>>(ownerPath(org, `/tasks/${run.taskId}/explain`)),
  );
  t.match(told.causes, [
    { kind: 'budget', budgets: [{ budget: 'maxCostMinorUnits', used: 100, allowed: 100, identifier: 'T-1' }] },
  ]);
  const inbox = `/human-inbox/${told.causes[0]?.inboxItemId}/respond`;
  expectSuccess(await app.owner.post(ownerPath(org, inbox), { response: 'raise' }));
  t.match(await readTask(app, org, run.taskId), { status: 'pending', spec: { budget: { maxCostMinorUnits: 200 } } });
  const [item] = await pullItems(app, { organizationIds: [org.organizationId] });
  t.match(item?.task.state.spend, { costMinorUnits: 100 }, 'the worker sees it too');
});

t.test('a patch sets and lifts limits, and what was spent before counts', async (t) => {
  const org = await createTestOrganization(sql);
  const run = await runTask(app, org);
  const result = { kind: 'waiting', until: '2020-01-01T00:00:00Z', reason: 'Not yet' };
  const usage = { inputTokens: 40, outputTokens: 2, toolCalls: 0 };
  expectSuccess(await workerOf(app, run).complete(result, { usage }));
  const before = await readTask(app, org, run.taskId);
  t.equal(before.state.spend, undefined);
  const patch = async (budget: unknown) => {
    const { version } = await readTask(app, org, run.taskId);
    const body = { expectedVersion: version, spec: { budget } };
    return app.service.patch<Task>(agentPath(org, `/tasks/${run.taskId}`), body);
  };
  t.match(expectSuccess(await patch({ maxTokens: 42 })), {
    status: 'blocked',
    state: { spend: { costMinorUnits: 0, tokens: 42, costKnown: false, unknownCostRuns: 1 } },
  });
  t.match(expectSuccess(await patch({ maxTokens: null })), { status: 'pending', state: { blockers: [] } });
  t.equal((await patch({ maxTokens: 0 })).status, 400);
  t.equal((await patch({ maxCostMinorUnits: 1.5 })).status, 400);
});

t.test('lists and graphs show it as the task does', async (t) => {
  const org = await createTestOrganization(sql);
  const root = await makeTask(app, org, { kind: 'initiative', spec: { budget: { maxTokens: 5 } } });
  const child = await makeTask(app, org, { parentId: root.id });
  const spend = { costMinorUnits: 0, tokens: 0, costKnown: true, unknownCostRuns: 0 };
  t.same(child.state.spend, spend);
  t.match(expectSuccess(await app.owner.get<Task[]>(ownerPath(org, '/tasks'))), [
    { state: { spend } },
    { state: { spend } },
  ]);
  const graph = expectSuccess(await app.owner.get<{ tasks: Task[] }>(ownerPath(org, `/tasks/${child.id}/graph`)));
  t.match(graph.tasks, [{ state: { spend } }, { state: { spend } }]);
});

t.test('no invariant is broken', async (t) => t.same(await brokenInvariants(sql), {}));
