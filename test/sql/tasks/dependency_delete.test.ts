import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  addDependency,
  cancelTask,
  completeRun,
  createInitiative,
  createTask,
  createTestOrganization,
  deleteDependency,
  lastRequest,
  openItems,
  requestRows,
  runNext,
  type TestOrganization,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

async function createRoots(org: TestOrganization, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push((await createTask(sql, org, { title: `root ${n}` })).id);
  return ids;
}

scenario('without its last edge a task is ready; both graph revisions rise', async (test) => {
  const org = await createTestOrganization(sql);
  const [first = '', second = '', third = ''] = await createRoots(org, 3);
  await addDependency(sql.api, org, third, first);
  await addDependency(sql.api, org, third, second);
  const { dependency } = await deleteDependency(sql.api, org, 'T-3', 'T-1');
  test.match(dependency, { task_id: third, depends_on_task_id: first, required: true });
  test.match(await taskRow(sql, org, third), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: second }],
    graph_revision: 4,
  });
  test.match(await taskRow(sql, org, first), { graph_revision: 3 });
  test.match(await refusal(deleteDependency(sql.api, org, third, first)), { status: 404, code: 'task_not_found' });
  await deleteDependency(sql.api, org, third, second);
  test.match(await taskRow(sql, org, third), { status: 'pending', blockers: [] });
  test.match(await lastRequest(sql, org, third), { state: 'published' });
});

scenario('an initiative whose children are over ends with its last edge', async (test) => {
  const org = await createTestOrganization(sql);
  const prerequisite = await createTask(sql, org, { title: 'prerequisite', priority: -5 });
  const { root } = await createInitiative(sql, org, ['only']);
  await addDependency(sql.api, org, root, prerequisite.id);
  const after = await createTask(sql, org, { dependsOn: [root] });
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, root), { status: 'blocked' });
  await deleteDependency(sql.api, org, root, prerequisite.id);
  test.match(await taskRow(sql, org, root), { status: 'completed' });
  test.match(await taskRow(sql, org, after.id), { status: 'pending' });
});

scenario('edges of a task that is running or over stay, and nobody else’s are removed', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const [first = '', second = ''] = await createRoots(org, 2);
  await addDependency(sql.api, org, second, first, { required: false });
  test.match(await refusal(deleteDependency(sql.api, other, second, first)), { status: 404, code: 'task_not_found' });
  test.match(await refusal(deleteDependency(sql.api, org, second, randomUUID())), {
    status: 404,
    code: 'task_not_found',
  });
  await completeRun(sql.api, await runNext(sql, org));
  const run = await runNext(sql, org);
  const conflict = { status: 409, code: 'state_conflict' };
  test.match(await refusal(deleteDependency(sql.api, org, second, first)), conflict);
  await completeRun(sql.api, run);
  test.match(await refusal(deleteDependency(sql.api, org, second, first)), conflict);
});

scenario('an edge that goes while its prerequisite completes: the task is ready, with one request', async (test) => {
  const org = await createTestOrganization(sql);
  const [first = '', second = ''] = await createRoots(org, 2);
  await addDependency(sql.api, org, second, first);
  const run = await runNext(sql, org);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  await completeRun(worker, run);
  const removing = deleteDependency(person, org, second, first);
  await person.waits();
  await worker.commit();
  test.match(await removing, { dependency: { task_id: second } });
  test.match(await taskRow(sql, org, second), { status: 'pending' });
  const live = (await requestRows(sql, org, second)).filter(({ state }) => state === 'published');
  test.equal(live.length, 1);
});

scenario(
  'an edge that goes while its prerequisite is cancelled: the task is ready, and nobody is asked',
  async (test) => {
    const org = await createTestOrganization(sql);
    const [first = '', second = ''] = await createRoots(org, 2);
    await addDependency(sql.api, org, second, first);
    const [canceller, person] = [await openSession(test, sql), await openSession(test, sql)];
    await canceller.begin();
    await cancelTask(canceller, org, first);
    const removing = deleteDependency(person, org, second, first);
    await person.waits();
    await canceller.commit();
    await removing;
    test.match(await taskRow(sql, org, second), { status: 'pending' });
    test.same(await openItems(sql, org, second), []);
  },
);

scenario('of eight equal removals at once one finds the edge', async (test) => {
  const org = await createTestOrganization(sql);
  const [first = '', second = ''] = await createRoots(org, 2);
  await addDependency(sql.api, org, second, first);
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => deleteDependency(sql.api, org, second, first)));
  test.equal(all.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const one of all) if (one.status === 'rejected') test.match(one.reason, { status: 404, code: 'task_not_found' });
  test.equal((await requestRows(sql, org, second)).filter(({ state }) => state === 'published').length, 1);
});
