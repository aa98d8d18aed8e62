import { z } from 'zod';
import {
  completeEvaluated,
  completeRun,
  createTask,
  OWNER,
  openItems,
  recordOutput,
  runNew,
  runNext,
  type TestOrganization,
} from './fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

const itemSchema = z.looseObject({ id: z.string(), kind: z.string(), status: z.string() });
export type Item = z.output<typeof itemSchema>;
const resultSchema = z.object({ item: itemSchema });

export async function createItem(
  connection: Connection,
  org: TestOrganization,
  ref: string,
  fields: JsonObject = {},
  actor: JsonObject = OWNER,
): Promise<Item> {
  return resultSchema.parse(
    await transition(connection, 'human_inbox_item_create', {
      organizationId: org.organizationId,
      taskRef: ref,
      item: { kind: 'question', title: 'Which one?', ...fields },
      actor,
    }),
  ).item;
}

export async function respond(
  connection: Connection,
  org: Pick<TestOrganization, 'organizationId'>,
  id: string,
  response: string,
  note: string | null = null,
): Promise<Item> {
  return resultSchema.parse(
    await transition(connection, 'human_inbox_respond', {
      organizationId: org.organizationId,
      inboxItemId: id,
      response,
      note,
    }),
  ).item;
}

export async function acknowledge(
  connection: Connection,
  org: Pick<TestOrganization, 'organizationId'>,
  id: string,
): Promise<Item> {
  return resultSchema.parse(
    await transition(connection, 'human_inbox_acknowledge', {
      organizationId: org.organizationId,
      inboxItemId: id,
    }),
  ).item;
}

/** The one open item about a task. */
export async function onlyItem(sql: Sql, org: TestOrganization, taskId: string): Promise<Item> {
  const items = await openItems(sql, org, taskId);
  if (items.length !== 1) throw new Error(`the task has ${items.length} open items`);
  return itemSchema.parse(items[0]);
}

const criteria = { acceptanceCriteria: [{ kind: 'output_file', path: 'report.json', checks: [] }] };
export const failedCheck = {
  criterionIndex: 0,
  evaluator: 'backend',
  status: 'failed',
  summary: 'The total is wrong',
  evidence: [],
};
const done = { kind: 'completed', summary: 'As good as it gets', artifacts: [{ path: 'report.json' }] };

/** Hands in a result that is refused. */
export async function failContract(sql: Sql, run: Parameters<typeof completeRun>[1]): Promise<void> {
  await recordOutput(sql.api, run, 'report.json');
  await completeEvaluated(sql.api, run, [failedCheck], { result: done });
}

/** A task whose result was refused twice: with the question about it. */
export async function createRepair(
  sql: Sql,
  org: TestOrganization,
  fields: JsonObject = {},
): Promise<{ taskId: string; runId: string; item: Item }> {
  const first = await runNew(sql, org, { spec: criteria, ...fields });
  await failContract(sql, first);
  const second = await runNext(sql, org);
  await failContract(sql, second);
  return { taskId: first.taskId, runId: second.runId, item: await onlyItem(sql, org, first.taskId) };
}

/** A task whose run asks a question and ends. */
export async function createAsking(sql: Sql, org: TestOrganization, options: readonly string[] = []) {
  const run = await runNew(sql, org);
  await completeRun(sql.api, run, { result: { kind: 'needs_input', question: 'Which one?', options } });
  return { taskId: run.taskId, item: await onlyItem(sql, org, run.taskId) };
}

/** A task that has used its only run, by a question that was answered: with the question about its budget. */
export async function createBudgetQuestion(sql: Sql, org: TestOrganization, fields: JsonObject = {}) {
  const run = await runNew(sql, org, { spec: { budget: { maxAgentRuns: 1 } }, ...fields });
  await completeRun(sql.api, run, { result: { kind: 'waiting', until: '2020-01-01T00:00:00Z', reason: '' } });
  return { taskId: run.taskId, item: await onlyItem(sql, org, run.taskId) };
}

/** A task that waits for another one, with a notification about it. */
export async function createNotice(sql: Sql, org: TestOrganization) {
  const first = await createTask(sql, org);
  const waiting = await createTask(sql, org, { dependsOn: [first.id] });
  await createItem(sql.api, org, waiting.id, { kind: 'notification' });
  return { taskId: waiting.id, item: await onlyItem(sql, org, waiting.id) };
}

/** A task that waits for one that was cancelled, with the question what to do about it. */
export async function createPrerequisiteQuestion(sql: Sql, org: TestOrganization) {
  const ended = await createTask(sql, org);
  const waiting = await createTask(sql, org, { dependsOn: [ended.id] });
  await transition(sql.api, 'task_cancel', {
    organizationId: org.organizationId,
    taskRef: ended.id,
    actor: OWNER,
  });
  return { endedId: ended.id, taskId: waiting.id, item: await onlyItem(sql, org, waiting.id) };
}
