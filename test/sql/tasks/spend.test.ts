import t from 'tap';
import {
  cancelTask,
  completeRun,
  createTask,
  createTestOrganization,
  failRun,
  openItems,
  patchTask,
  pull,
  type Run,
  runNew,
  runNext,
  startRun,
  type TestOrganization,
  taskRow,
} from '../../support/fixtures.ts';
import { createItem, onlyItem, respond } from '../../support/inbox_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const again = { kind: 'waiting', until: '2020-01-01T00:00:00Z', reason: '' };
const usage = (tokens: number, costMinorUnits?: number): JsonObject => ({
  usage: { inputTokens: tokens - 1, outputTokens: 1, ...(costMinorUnits === undefined ? {} : { costMinorUnits }) },
});
const limited = (budget: JsonObject): JsonObject => ({ spec: { budget } });
const spend = async (org: TestOrganization, id: string) => {
  const row = await taskRow(sql, org, id);
  return [Number(row['spent_cost_minor_units']), Number(row['spent_tokens']), row['cost_known_run_count']];
};
const finish = (run: Run, report: JsonObject, result = again) => completeRun(sql.api, run, { report, result });

scenario('a task that has reached its cost limit asks a person, who may raise it again and again', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, limited({ maxCostMinorUnits: 100 }));
  await finish(run, usage(10, 60));
  test.same(await spend(org, run.taskId), [60, 10, 1]);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending' });
  await finish(await runNext(sql, org), usage(10, 70));
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', blockers: [{ kind: 'budget' }] });
  const item = await onlyItem(sql, org, run.taskId);
  test.match(item, {
    purpose: 'budget',
    title: 'Spend limit used up: A task',
    body: /maxCostMinorUnits of T-1: 130 of 100/,
  });
  await respond(sql.api, org, item.id, 'raise');
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'pending',
    spec: { budget: { maxCostMinorUnits: 230 } },
  });
  await finish(await runNext(sql, org), usage(10, 100));
  await respond(sql.api, org, (await onlyItem(sql, org, run.taskId)).id, 'raise');
  test.match(await taskRow(sql, org, run.taskId), { spec: { budget: { maxCostMinorUnits: 330 } } }, 'as much again');
  await patchTask(sql, org, run.taskId, limited({ maxCostMinorUnits: 5 }));
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', spend_allowance: null });
  await patchTask(sql, org, run.taskId, limited({ maxCostMinorUnits: null }));
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending' });
  test.same(await openItems(sql, org, run.taskId), []);
});

scenario('a cost that nobody reported is unknown, and counts for nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, limited({ maxCostMinorUnits: 1, maxTokens: 100 }));
  await finish(run, usage(50));
  test.same(await spend(org, run.taskId), [0, 50, 0]);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending' });
  await finish(await runNext(sql, org), usage(50, 0));
  test.same(await spend(org, run.taskId), [0, 100, 1], 'a cost of zero is known');
  test.match((await onlyItem(sql, org, run.taskId)).body, /maxTokens of T-1: 100 of 100\)/);
});

scenario('what is spent below counts for all above; the limit of a parent holds every task up', async (test) => {
  const org = await createTestOrganization(sql);
  const root = await createTask(sql, org, { kind: 'initiative' });
  const middle = await createTask(sql, org, { kind: 'initiative', parentId: root.id });
  const early = await runNew(sql, org, { parentId: middle.id });
  await finish(early, usage(30, 3));
  await patchTask(sql, org, early.taskId, { scheduledAt: '2999-01-01T00:00:00Z' });
  const active = await runNew(sql, org, { parentId: middle.id });
  test.same(await spend(org, root.id), [0, 0, 0], 'nothing is counted while there is no limit');
  await patchTask(sql, org, root.id, limited({ maxTokens: 50 }));
  test.same(await spend(org, root.id), [3, 30, 1], 'what was spent before the limit counts');
  const next = await createTask(sql, org, { parentId: root.id, priority: 9 });
  const [claim] = await pull(sql.api, { organizationIds: [org.organizationId] });
  await finish(active, usage(20, 2));
  test.same(
    [await spend(org, root.id), await spend(org, middle.id), await spend(org, active.taskId)],
    [
      [5, 50, 2],
      [5, 50, 2],
      [2, 20, 1],
    ],
  );
  if (!claim) throw new Error('nothing to pull');
  test.match(await refusal(startRun(sql.api, claim)), { code: 'run_lease_expired', reason: 'task_not_ready' });
  test.match(await taskRow(sql, org, next.id), { status: 'blocked', blockers: [{ kind: 'budget' }] });
  await respond(sql.api, org, (await onlyItem(sql, org, next.id)).id, 'raise');
  test.match(await taskRow(sql, org, root.id), { spec: { budget: { maxTokens: 100 } } });
  test.match(await taskRow(sql, org, active.taskId), { status: 'pending' }, 'all that waited for it goes on');
});

scenario('runs that fail or report after a cancel count once, whatever is sent again', async (test) => {
  const org = await createTestOrganization(sql);
  const failing = await runNew(sql, org, limited({ maxTokens: 1_000 }));
  for (let n = 0; n < 2; n += 1) await failRun(sql.api, failing, { retryable: false, report: usage(10, 1) });
  test.same(await spend(org, failing.taskId), [1, 10, 1]);
  const cancelled = await runNew(sql, org, limited({ maxTokens: 1_000 }));
  await cancelTask(sql.api, org, cancelled.taskId);
  test.same(await spend(org, cancelled.taskId), [0, 0, 0]);
  for (let n = 0; n < 2; n += 1) await finish(cancelled, usage(7, 2));
  test.same(await spend(org, cancelled.taskId), [2, 7, 1]);
});

scenario('a task without a limit counts nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await createItem(sql.api, org, run.taskId, { kind: 'notification' });
  await finish(run, usage(10, 1));
  test.same(await spend(org, run.taskId), [0, 0, 0]);
});
