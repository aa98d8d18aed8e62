import t from 'tap';
import {
  agentPath,
  expectSuccess,
  type Fields,
  makeTask,
  ownerPath,
  readTask,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const org = await createTestOrganization(sqlOf(app), { key: 'operator' });

/** As it is sent, and as it comes back wherever it is read. */
const bare = { kind: 'output_file', path: 'report.md' };
const whole = { ...bare, checks: [] };
const spec = { acceptanceCriteria: [bare] };
const forPeople = { kind: 'for_people', text: 'Looks nice' };

type Specified = Readonly<{ id: string; version: number; spec: { acceptanceCriteria: readonly Fields[] } }>;

t.test('a criterion of a new task without checks has none, for owners and agents', async (t) => {
  const given = { title: 'Report', ownerProfileKey: org.profileKey, spec: { acceptanceCriteria: [bare, forPeople] } };
  for (const made of [
    await app.owner.post<Specified>(ownerPath(org, '/tasks'), given),
    await app.service.post<Specified>(agentPath(org, '/tasks'), given),
  ]) {
    const { id, spec } = expectSuccess(made, 201);
    t.same(spec.acceptanceCriteria, [whole, forPeople], 'and what people read stays as it is');
    t.same((await readTask(app, org, id)).spec.acceptanceCriteria, [whole, forPeople]);
    const asAgent = await app.service.get<Specified>(agentPath(org, `/tasks/${id}`));
    t.same(asAgent.data.spec.acceptanceCriteria, [whole, forPeople]);
  }
});

t.test('so has one that a change or a plan brings', async (t) => {
  const { id, version: expectedVersion } = await makeTask(app, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  const patched = await app.service.patch<Specified>(agentPath(org, `/tasks/${id}`), { expectedVersion, spec });
  t.same(expectSuccess(patched).spec.acceptanceCriteria, [whole]);

  const held = await runTask(app, org, { kind: 'initiative', priority: 1000 });
  const { version: taskVersion, graphRevision } = await readTask(app, org, held.taskId);
  const operations = [{ op: 'create_task', key: 'one', title: 'One', ownerProfileKey: org.profileKey, spec }];
  const outcome = { kind: 'plan', operations };
  const body = { runId: held.runId, taskVersion, graphRevision, idempotencyKey: 'k', outcome };
  expectSuccess(await app.service.post(agentPath(org, `/tasks/${held.taskId}/outcomes`), body), 201);
  expectSuccess(await workerOf(app, held).complete());
  const children = await app.owner.get<Specified[]>(ownerPath(org, '/tasks'), { query: { parentId: held.taskId } });
  t.same((await readTask(app, org, children.data[0]?.id ?? '')).spec.acceptanceCriteria, [whole]);
});

t.test('so has one of a schedule’s template', async (t) => {
  type Scheduled = Readonly<{ id: string; taskTemplate: Specified }>;
  const template = { title: 'Report', ownerProfileKey: org.profileKey };
  const schedules = ownerPath(org, '/schedules');
  const schedule = { cron: '0 9 * * *', taskTemplate: { ...template, spec } };
  const made = expectSuccess(await app.owner.post<Scheduled>(schedules, schedule), 201);
  t.same(made.taskTemplate.spec.acceptanceCriteria, [whole]);
  const other = { spec: { acceptanceCriteria: [{ ...bare, path: 'other.md' }] } };
  const changed = await app.owner.patch<Scheduled>(`${schedules}/${made.id}`, {
    expectedVersion: 1,
    taskTemplate: other,
  });
  t.same(expectSuccess(changed).taskTemplate.spec.acceptanceCriteria, [{ ...whole, path: 'other.md' }]);
  const read = expectSuccess(await app.owner.get<Scheduled>(`${schedules}/${made.id}`));
  t.same(read.taskTemplate.spec.acceptanceCriteria, [{ ...whole, path: 'other.md' }]);
});
