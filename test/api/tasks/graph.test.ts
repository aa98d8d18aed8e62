import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import { agentPath, expectSuccess, makeTask, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } });
const elsewhere = await createTestOrganization(sql);

type Edge = { id: string; taskId: string; dependsOnTaskId: string; required: boolean };
type Graph = {
  focusTaskId: string;
  rootTaskId: string;
  tasks: Task[];
  relatedTasks: Task[];
  dependencies: Edge[];
  truncated: boolean;
};
const graph = (ref: string, at = org) => app.owner.get<Graph>(ownerPath(at, `/tasks/${ref}/graph`));
const ids = (tasks: readonly Task[]) => tasks.map((task) => task.id);
const ends = (edges: readonly Edge[]) => edges.map((edge) => [edge.taskId, edge.dependsOnTaskId]);
const depend = async (ref: string, dependsOn: string, required = true) =>
  expectSuccess(
    await app.service.post<Edge>(agentPath(org, `/tasks/${ref}/dependencies`), { dependsOn, required }),
    201,
  );

t.test('the graph shows the hierarchy, its edges, and what is at their other ends', async (t) => {
  const root = await makeTask(app, org, { kind: 'initiative' });
  const below = await makeTask(app, org, { kind: 'initiative', parentId: root.id });
  const first = await makeTask(app, org, { parentId: below.id });
  const second = await makeTask(app, org, { parentId: root.id, dependsOn: [first.id] });
  const before = await makeTask(app, org);
  const after = await makeTask(app, org, { dependsOn: [second.id] });
  const otherRoot = await makeTask(app, org, { kind: 'initiative' });
  const otherChild = await makeTask(app, org, { parentId: otherRoot.id });
  const apart = await makeTask(app, org, { dependsOn: [before.id] });
  await depend(first.id, before.id);
  await depend(second.id, otherChild.id, false);
  const shown = expectSuccess(await graph(first.identifier));
  t.match(shown, { focusTaskId: first.id, rootTaskId: root.id, truncated: false });
  t.same(ids(shown.tasks), [root.id, below.id, first.id, second.id]);
  t.same(ids(shown.relatedTasks), [before.id, after.id, otherChild.id], 'neither their parents nor their own edges');
  t.notOk(ids(shown.relatedTasks).includes(apart.id));
  t.same(ends(shown.dependencies), [
    [second.id, first.id],
    [after.id, second.id],
    [first.id, before.id],
    [second.id, otherChild.id],
  ]);
  t.same(
    shown.dependencies.map((edge) => edge.required),
    [true, true, true, false],
  );
  const again = expectSuccess(await graph(root.id));
  t.same({ ...again, focusTaskId: '' }, { ...shown, focusTaskId: '' }, 'the same from every task of the hierarchy');
  const alone = expectSuccess(await graph(otherChild.id));
  t.same(ids(alone.relatedTasks), [second.id]);
});

t.test('a task of the graph is the task, save for the text of its inline inputs', async (t) => {
  const inputs = [
    { kind: 'inline', path: 'a.txt', text: 'hello' },
    { kind: 'upload', path: 'b.txt' },
  ];
  const task = await makeTask(app, org, { spec: { inputs } });
  const shown = expectSuccess(await graph(task.id));
  t.same(shown.dependencies, []);
  t.same(shown.tasks, [
    {
      ...task,
      spec: {
        ...task.spec,
        inputs: [
          { kind: 'inline', path: 'a.txt' },
          { kind: 'upload', path: 'b.txt' },
        ],
      },
    },
  ]);
});

t.test('a graph too large for one response says so, and keeps the focused task', async (t) => {
  const root = await makeTask(app, org, { kind: 'initiative' });
  const made: Task[] = [];
  for (let n = 0; n < 3; n += 1) made.push(await makeTask(app, org, { parentId: root.id }));
  await sql.owner.query(
    `update app.tasks set spec = jsonb_set(spec, '{objective}', to_jsonb(repeat('x', 4500000)))
     where organization_id = $1 and parent_id = $2`,
    [org.organizationId, root.id],
  );
  const last = made.at(-1)?.id ?? '';
  const shown = expectSuccess(await graph(last));
  t.equal(shown.truncated, true);
  t.same(ids(shown.tasks), [root.id, made[0]?.id, last]);
});

t.test('no graph of what is not there, or another organization has', async (t) => {
  const task = await makeTask(app, org);
  for (const reply of [await graph(randomUUID()), await graph('T-9999'), await graph(task.id, elsewhere)])
    t.equal(refusalOf(reply), '404 task_graph_not_found');
  t.equal(refusalOf(await graph(task.id, { ...org, organizationId: randomUUID() })), '404 task_graph_not_found');
  t.equal((await graph('nothing')).status, 400);
});
