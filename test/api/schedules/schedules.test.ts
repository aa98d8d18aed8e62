import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Schedule } from '../../../api/schedules/schema.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  fingerprint,
  IN_ONE_PLACE,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  UNDER_EACH_OTHER,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import {
  createSecondProfile,
  createTestOrganization,
  type TestOrganization,
  updateOrganization,
} from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { fire } from '../../support/schedule_fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'operator',
  maxConcurrentRuns: 20,
  limits: { maxConcurrentRuns: 20 },
});
const growth = await createSecondProfile(sql, org, { key: 'growth', kind: 'department' });
const elsewhere = await createTestOrganization(sql);

const template = { title: 'Report', ownerProfileKey: 'growth', priority: 3, spec: { objective: 'Sum up' } };
const body = { cron: '0 9 * * MON', taskTemplate: template };
const schedules = (at: Pick<TestOrganization, 'organizationId'>, rest = '') => agentPath(at, `/schedules${rest}`);
const create = (fields: Fields = {}, client = app.service) =>
  client.post<Schedule>(schedules(org), { ...body, ...fields });
const verbs = ['pause', 'resume', 'delete'] as const;

function change(
  verb: (typeof verbs)[number],
  ref: string,
  client = app.service,
  at: Pick<TestOrganization, 'organizationId'> = org,
) {
  if (verb === 'delete') return client.delete<Schedule>(schedules(at, `/${ref}`));
  return client.post<Schedule>(schedules(at, `/${ref}/${verb}`));
}

t.test('a schedule is made with its defaults, read, paused, resumed and deleted', async (t) => {
  const made = expectSuccess(await create({ key: 'weekly' }), 201);
  t.match(made, {
    organizationId: org.organizationId,
    key: 'weekly',
    title: 'Report',
    cron: '0 9 * * MON',
    timezone: 'UTC',
    status: 'active',
    taskTemplate: template,
    overlap: 'skip',
    lastRunAt: null,
    lastTaskId: null,
  });
  const next = new Date(made.nextRunAt ?? '');
  t.equal(next.getUTCDay(), 1);
  t.match(made.nextRunAt, /T09:00:00\.000Z$/);
  t.ok(next.getTime() > Date.now());
  for (const path of [schedules(org), ownerPath(org, '/schedules')]) {
    t.same((await app.service.get<Schedule[]>(path)).data, [made]);
  }
  const paused = expectSuccess(await change('pause', 'weekly'));
  t.match(paused, { id: made.id, status: 'paused', nextRunAt: null });
  t.same(expectSuccess(await change('pause', made.id)), paused, 'a repeat');
  const resumed = expectSuccess(await change('resume', made.id.toUpperCase()));
  t.match(resumed, { status: 'active', nextRunAt: made.nextRunAt });
  t.same(expectSuccess(await change('resume', 'weekly')), resumed, 'a repeat');
  t.match(expectSuccess(await change('delete', 'weekly')), { id: made.id });
  for (const verb of verbs) t.equal(refusalOf(await change(verb, made.id)), '404 not_found', verb);
});

t.test('zone, title and key are its own; without a key it has one of its id', async (t) => {
  await updateOrganization(sql.api, org, { config: { timezone: 'America/New_York' } });
  const local = expectSuccess(await create({ cron: '30 9 * * *' }), 201);
  t.match(local, { timezone: 'America/New_York', key: `schedule-${local.id}` });
  t.match(local.nextRunAt, /T1[34]:30/);
  const fields = { cron: '0 9 * * *', timezone: 'europe/moscow', title: 'Named', overlap: 'allow', key: 'named' };
  const named = expectSuccess(await create(fields), 201);
  t.match(named, { timezone: 'Europe/Moscow', title: 'Named', overlap: 'allow', nextRunAt: /T06:00:00/ });
  t.equal(refusalOf(await create({ key: 'named' })), '409 state_conflict in_use');
  await updateOrganization(sql.api, org, { config: { timezone: 'UTC' } });
  for (const ref of [local.key, 'named']) expectSuccess(await change('delete', ref));
});

t.test('what is no schedule is 400, and says where', async (t) => {
  const before = await fingerprint(app);
  const wrong: readonly (readonly [Fields, string])[] = [
    [{ cron: '* * * * * *' }, 'cron'],
    [{ cron: '@daily' }, 'cron'],
    [{ cron: '0 25 * * *' }, 'cron'],
    [{ cron: '0 0 30 2 *' }, 'cron'],
    [{ cron: 5 }, 'cron'],
    [{ timezone: 'Mars/Olympus' }, 'timezone'],
    [{ timezone: '+01:00' }, 'timezone'],
    [{ key: 'No Key' }, 'key'],
    [{ key: randomUUID() }, 'key'],
    [{ key: 'a'.repeat(64) }, 'key'],
    [{ title: ' ' }, 'title'],
    [{ overlap: 'queue' }, 'overlap'],
    [{ status: 'paused' }, 'status'],
    [{ taskTemplate: { ...template, dedupeKey: 'x' } }, 'taskTemplate.dedupeKey'],
    [{ taskTemplate: { ...template, scheduledAt: '2030-01-01T00:00:00Z' } }, 'taskTemplate.scheduledAt'],
    [{ taskTemplate: { ...template, dueAt: '2030-01-01T00:00:00Z' } }, 'taskTemplate.dueAt'],
    [{ taskTemplate: { ownerProfileKey: 'growth' } }, 'taskTemplate.title'],
    [{ taskTemplate: { ...template, ownerAgentProfileId: growth.profileId } }, 'taskTemplate.ownerProfileKey'],
    [{ taskTemplate: { ...template, ownerProfileKey: 'nobody' } }, 'taskTemplate.ownerProfileKey'],
    [{ taskTemplate: { title: 'x', ownerAgentProfileId: elsewhere.profileId } }, 'taskTemplate.ownerAgentProfileId'],
  ];
  for (const [fields, path] of wrong) {
    const reply = await create(fields);
    t.match(refusalOf(reply), /^400 validation_failed/, JSON.stringify(fields));
    t.same(issuePaths(reply), [path], JSON.stringify(fields));
  }
  for (const missing of ['cron', 'taskTemplate']) {
    t.same(issuePaths(await create({ [missing]: undefined })), [missing]);
  }
  for (const ref of ['No Key', 'a--b', '-a']) {
    t.match(refusalOf(await change('pause', encodeURIComponent(ref))), /^400 validation_failed/, ref);
  }
  t.match(refusalOf(await app.service.post(schedules(org, '/x/pause'), { now: true })), /^400 validation_failed/);
  for (const query of [{ status: 'gone' }, { limit: 0 }, { cursor: 'x' }, { key: 'x' }]) {
    t.match(refusalOf(await app.owner.get(ownerPath(org, '/schedules'), { query })), /^400 validation_failed/);
  }
  t.equal(await fingerprint(app), before);
});

t.test('a template that could be no task is refused as the creation of that task is', async (t) => {
  const { id: leaf } = await makeTask(app, org, { ownerProfileKey: 'growth' });
  const { id: over } = await makeTask(app, org, { ownerProfileKey: 'growth', kind: 'initiative' });
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${over}/cancel`)));
  const { id: foreign } = await makeTask(app, elsewhere, { kind: 'initiative' });
  const before = await fingerprint(app);
  const wrong: readonly Fields[] = [
    { parentId: randomUUID() },
    { parentId: foreign },
    { parentId: leaf },
    { parentId: over },
    { dependsOn: ['T-9999'] },
    { dependsOn: [foreign] },
    { sourceChatId: randomUUID() },
    { sourceMessageId: randomUUID() },
    { ownerProfileKey: 'nobody' },
    { spec: { verifierProfileKey: 'nobody' } },
    { ownerProfileKey: 'operator', spec: { verification: 'agent' } },
    { spec: UNDER_EACH_OTHER },
    { spec: IN_ONE_PLACE },
  ];
  for (const fields of wrong) {
    const task = { ...template, ...fields };
    const asTask = await app.service.post(agentPath(org, '/tasks'), task);
    const asTemplate = await create({ taskTemplate: task });
    t.ok(asTask.status >= 400, JSON.stringify(fields));
    t.equal(refusalOf(asTemplate), refusalOf(asTask));
    t.same(
      issuePaths(asTemplate),
      issuePaths(asTask).map((path) => `taskTemplate.${path}`),
    );
  }
  t.equal(await fingerprint(app), before);
});

t.test('the same Idempotency-Key makes one schedule', async (t) => {
  const send = (fields: Fields) =>
    app.service.post<Schedule>(schedules(org), { ...body, ...fields }, { headers: { 'idempotency-key': 'once' } });
  const first = expectSuccess(await send({}), 201);
  t.same(expectSuccess(await send({}), 201), first);
  t.equal(refusalOf(await send({ title: 'Another' })), '409 idempotency_key_reused idempotency_key_reused');
  expectSuccess(await change('delete', first.id));
});

t.test('runs of operators make schedules for themselves; runs of departments only read them', async (t) => {
  const operator = await runTask(app, org);
  const agent = app.owner.as(operator.executionToken);
  const made = expectSuccess(await create({ key: 'own', taskTemplate: { title: 'Mine' } }, agent), 201);
  t.same(made.taskTemplate, { title: 'Mine', ownerAgentProfileId: org.profileId });
  for (const verb of ['pause', 'resume'] as const) expectSuccess(await change(verb, 'own', agent));
  const held = await runTask(app, growth);
  const department = app.owner.as(held.executionToken);
  t.match((await department.get<Schedule[]>(schedules(org))).data, [{ id: made.id, status: 'active' }]);
  t.equal(refusalOf(await create({}, department)), '401 agent_unauthorized');
  for (const verb of verbs) t.equal(refusalOf(await change(verb, 'own', department)), '401 agent_unauthorized', verb);
  for (const client of [agent, department, app.owner.as('x')]) {
    t.equal(refusalOf(await client.get(schedules(elsewhere))), '401 agent_unauthorized');
    for (const verb of verbs)
      t.equal(refusalOf(await change(verb, 'own', client, elsewhere)), '401 agent_unauthorized');
  }
  for (const verb of verbs) t.equal(refusalOf(await change(verb, 'own', app.service, elsewhere)), '404 not_found');
  for (const one of [operator, held]) expectSuccess(await workerOf(app, one).complete());
  t.equal(refusalOf(await change('delete', 'own', agent)), '401 agent_unauthorized', 'its run is over');
  expectSuccess(await change('delete', 'own'));
});

t.test('an organization that is not there, or is suspended', async (t) => {
  const nowhere = { organizationId: randomUUID() };
  t.equal(refusalOf(await app.service.get(schedules(nowhere))), '404 not_found');
  t.equal(refusalOf(await app.service.post(schedules(nowhere), body)), '404 not_found');
  for (const verb of verbs) t.equal(refusalOf(await change(verb, 'x', app.service, nowhere)), '404 not_found', verb);
  t.equal(refusalOf(await app.owner.get(ownerPath(nowhere, '/schedules'))), '404 organization_not_found');
  const { id } = expectSuccess(await create(), 201);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  t.equal((await app.service.get(schedules(org))).status, 200);
  t.equal(refusalOf(await create()), '409 state_conflict');
  for (const verb of verbs) t.equal(refusalOf(await change(verb, id)), '409 state_conflict', verb);
  await updateOrganization(sql.api, org, { status: 'active' });
  expectSuccess(await change('delete', id));
});

t.test('lists page both ways, newest first, and filter', async (t) => {
  const keys = Array.from({ length: 7 }, (_, index) => `page-${index}`);
  for (const key of keys) expectSuccess(await create({ key }), 201);
  for (const key of keys.slice(0, 3)) expectSuccess(await change('pause', key));
  const path = ownerPath(org, '/schedules');
  const read = (query: Record<string, string | number>) => app.owner.get<Schedule[]>(path, { query });
  const first = await read({ limit: 3 });
  t.same(
    first.data.map(({ key }) => key),
    ['page-6', 'page-5', 'page-4'],
  );
  const second = await read({ limit: 3, cursor: first.body.pagination.nextCursor ?? '' });
  t.same(
    second.data.map(({ key }) => key),
    ['page-3', 'page-2', 'page-1'],
  );
  t.same((await read({ limit: 3, cursor: second.body.pagination.previousCursor ?? '' })).data, first.data);
  t.equal((await read({ status: 'paused' })).data.length, 3);
  t.equal((await read({ status: 'active' })).data.length, 4);
  const other = await read({ status: 'active', cursor: first.body.pagination.nextCursor ?? '' });
  t.match(refusalOf(other), /^400 validation_failed/);
  t.same((await app.owner.get(ownerPath(elsewhere, '/schedules'))).data, []);
  for (const key of keys) expectSuccess(await change('delete', key));
});

t.test('a fire makes the task that the template describes, and shows it', async (t) => {
  const made = expectSuccess(await create({ key: 'fires' }), 201);
  await fire(sql, org, made.id);
  const [after] = (await app.owner.get<Schedule[]>(ownerPath(org, '/schedules'))).data;
  t.match(after, { lastRunAt: made.nextRunAt, lastTaskId: String });
  const task = await readTask(app, org, after?.lastTaskId ?? '');
  t.match(task, { title: 'Report', priority: 3, status: 'pending', ownerAgentProfileId: growth.profileId });
  t.match(task.spec, { objective: 'Sum up' });
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${task.id}/cancel`)));
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
