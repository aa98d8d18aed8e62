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
  refusalOf,
  sqlOf,
  UNDER_EACH_OTHER,
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
import { startIssuer } from '../../support/jwt.ts';
import { fire } from '../../support/schedule_fixtures.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'operator' });
const growth = await createSecondProfile(sql, org, { key: 'growth', kind: 'department' });
const elsewhere = await createTestOrganization(sql);

type At = Pick<TestOrganization, 'organizationId'>;
const template = { title: 'Report', ownerProfileKey: 'growth', spec: { objective: 'Sum up' } };
const body = { cron: '0 9 * * MON', taskTemplate: template };
const at = (where: At, rest = '') => ownerPath(where, `/schedules${rest}`);
const create = (fields: Fields = {}, client = app.owner) => client.post<Schedule>(at(org), { ...body, ...fields });
const patch = (ref: string, fields: Fields, where: At = org, client = app.owner) =>
  client.patch<Schedule>(at(where, `/${ref}`), fields);

/** Each call about one schedule. */
const calls = (ref: string, where: At = org, client = app.owner) => ({
  get: () => client.get<Schedule>(at(where, `/${ref}`)),
  update: () => patch(ref, { expectedVersion: 1, title: 'Renamed' }, where, client),
  pause: () => client.post<Schedule>(at(where, `/${ref}/pause`)),
  resume: () => client.post<Schedule>(at(where, `/${ref}/resume`)),
  delete: () => client.delete<Schedule>(at(where, `/${ref}`)),
});

t.test('an owner makes, reads, changes, pauses, resumes and deletes a schedule', async (t) => {
  const made = expectSuccess(await create({ key: 'weekly' }), 201);
  t.match(made, { key: 'weekly', version: 1, status: 'active', taskTemplate: template, timezone: 'UTC' });
  for (const ref of ['weekly', made.id, made.id.toUpperCase()]) {
    t.same(expectSuccess(await calls(ref).get()), made, ref);
  }
  const changed = expectSuccess(
    await patch('weekly', {
      expectedVersion: 1,
      title: 'Every Tuesday',
      cron: '30 8 * * TUE',
      timezone: 'europe/berlin',
      overlap: 'allow',
      taskTemplate: { priority: 5, spec: { objective: null, verification: 'backend' } },
    }),
  );
  t.match(changed, {
    version: 2,
    title: 'Every Tuesday',
    timezone: 'Europe/Berlin',
    overlap: 'allow',
    taskTemplate: { title: 'Report', ownerProfileKey: 'growth', priority: 5, spec: { verification: 'backend' } },
  });
  t.equal(changed.taskTemplate['spec'] && 'objective' in (changed.taskTemplate['spec'] as Fields), false);
  const next = new Date(changed.nextRunAt ?? '');
  t.equal(next.getUTCDay(), 2);
  t.match(changed.nextRunAt, /T0[67]:30/);
  t.match(expectSuccess(await calls('weekly').pause()), { status: 'paused', nextRunAt: null, version: 2 });
  t.match(expectSuccess(await calls('weekly').pause()), { status: 'paused' }, 'a repeat');
  const while_ = await patch('weekly', { expectedVersion: 2, cron: '0 7 * * *' });
  t.match(expectSuccess(while_), { status: 'paused', nextRunAt: null, version: 3 });
  const resumed = expectSuccess(await calls('weekly').resume());
  t.match(resumed, { status: 'active', nextRunAt: /T0[56]:00/ });
  t.same(expectSuccess(await calls('weekly').resume()), resumed, 'a repeat');
  t.match(expectSuccess(await calls('weekly').delete()), { id: made.id });
  for (const [name, call] of Object.entries(calls(made.id))) t.equal(refusalOf(await call()), '404 not_found', name);
});

t.test('a schedule without an owner is the operator’s, and fires', async (t) => {
  const made = expectSuccess(await create({ taskTemplate: { title: 'Mine' } }), 201);
  t.match(made.taskTemplate, { ownerAgentProfileId: org.profileId });
  t.match(await fire(sql, org, made.id), { outcome: 'fired' });
  const after = expectSuccess(await calls(made.id).get());
  t.match(after, { version: 1, lastTaskId: String, lastRunAt: made.nextRunAt });
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${after.lastTaskId}/cancel`)));
  expectSuccess(await calls(made.id).delete());
});

t.test('a change names the version that it was made from', async (t) => {
  const made = expectSuccess(await create({ key: 'versioned' }), 201);
  t.same(issuePaths(await patch('versioned', { title: 'x' })), ['expectedVersion']);
  const first = await patch('versioned', { expectedVersion: 1, cron: '0 1 * * *' });
  t.match(expectSuccess(first), { version: 2 });
  for (const change of [{ title: 'x' }, { cron: '0 2 * * *' }, { taskTemplate: { title: 'x' } }, {}]) {
    const late = await patch('versioned', { expectedVersion: 1, ...change });
    t.equal(refusalOf(late), '409 state_conflict stale', JSON.stringify(change));
    t.same(issuePaths(late), ['expectedVersion']);
  }
  const same = expectSuccess(await patch('versioned', { expectedVersion: 2 }));
  t.same(same, first.data, 'a patch that says nothing changes nothing');
  expectSuccess(await calls(made.id).delete());
});

t.test('of ten owners at once one changes it', async (t) => {
  expectSuccess(await create({ key: 'raced' }), 201);
  const all = await Promise.all(
    Array.from({ length: 10 }, (_, hour) => patch('raced', { expectedVersion: 1, cron: `0 ${hour} * * *` })),
  );
  t.equal(all.filter(({ status }) => status === 200).length, 1);
  t.same([...new Set(all.filter(({ status }) => status !== 200).map(refusalOf))], ['409 state_conflict stale']);
  const { cron, nextRunAt, version } = expectSuccess(await calls('raced').get());
  t.equal(version, 2);
  t.equal(new Date(nextRunAt ?? '').getUTCHours(), Number(cron.split(' ')[1]), 'expression and next fire agree');
  const ends = await Promise.all(Array.from({ length: 5 }, () => calls('raced').delete()));
  t.same(ends.map(({ status }) => status).sort(), [200, 404, 404, 404, 404]);
});

t.test('the same Idempotency-Key makes one schedule', async (t) => {
  const send = (fields: Fields) =>
    app.owner.post<Schedule>(at(org), { ...body, ...fields }, { headers: { 'idempotency-key': 'once' } });
  const first = expectSuccess(await send({}), 201);
  t.same(expectSuccess(await send({}), 201), first);
  t.equal(refusalOf(await send({ title: 'Another' })), '409 idempotency_key_reused idempotency_key_reused');
  const pause = () => app.owner.post(at(org, `/${first.id}/pause`), undefined, { headers: { 'idempotency-key': 'p' } });
  t.match(expectSuccess(await pause()), { status: 'paused' });
  expectSuccess(await calls(first.id).resume());
  t.match(expectSuccess(await pause()), { status: 'paused' }, 'the replay');
  t.match(expectSuccess(await calls(first.id).get()), { status: 'active' });
  expectSuccess(await calls(first.id).delete());
});

t.test('what is no change is 400, and says where', async (t) => {
  const { id } = expectSuccess(await create({ key: 'wrong' }), 201);
  const before = await fingerprint(app);
  const wrong: readonly (readonly [Fields, string])[] = [
    [{ expectedVersion: 0 }, 'expectedVersion'],
    [{ expectedVersion: 2 ** 31 }, 'expectedVersion'],
    [{ title: ' ' }, 'title'],
    [{ title: null }, 'title'],
    [{ cron: '0 0 30 2 *' }, 'cron'],
    [{ cron: null }, 'cron'],
    [{ timezone: '+01:00' }, 'timezone'],
    [{ timezone: null }, 'timezone'],
    [{ overlap: 'queue' }, 'overlap'],
    [{ status: 'paused' }, 'status'],
    [{ key: 'other' }, 'key'],
    [{ taskTemplate: null }, 'taskTemplate'],
    [{ taskTemplate: { title: null } }, 'taskTemplate.title'],
    [{ taskTemplate: { dedupeKey: 'x' } }, 'taskTemplate.dedupeKey'],
    [{ taskTemplate: { ownerProfileKey: 'nobody' } }, 'taskTemplate.ownerProfileKey'],
    [{ taskTemplate: { ownerAgentProfileId: elsewhere.profileId } }, 'taskTemplate.ownerAgentProfileId'],
    [
      { taskTemplate: { ownerProfileKey: 'growth', ownerAgentProfileId: growth.profileId } },
      'taskTemplate.ownerProfileKey',
    ],
    [{ taskTemplate: { spec: { objective: 'x'.repeat(20_001) } } }, 'taskTemplate.spec.objective'],
    [{ taskTemplate: { spec: UNDER_EACH_OTHER } }, 'taskTemplate.spec.inputs.1.path'],
    [{ taskTemplate: { spec: IN_ONE_PLACE } }, 'taskTemplate.spec.acceptanceCriteria.1.path'],
  ];
  for (const [fields, path] of wrong) {
    const reply = await patch(id, { expectedVersion: 1, ...fields });
    t.match(refusalOf(reply), /^400 validation_failed/, JSON.stringify(fields).slice(0, 100));
    t.same(issuePaths(reply), [path], JSON.stringify(fields).slice(0, 100));
  }
  t.match(refusalOf(await app.owner.patch(at(org, '/No%20Key'), { expectedVersion: 1 })), /^400 validation_failed/);
  t.equal(await fingerprint(app), before);
  expectSuccess(await calls(id).delete());
});

t.test('a template that could be no task is refused, at the creation and at a change', async (t) => {
  const { id } = expectSuccess(await create({ key: 'judged' }), 201);
  const { id: leaf } = await makeTask(app, org, { ownerProfileKey: 'growth' });
  const { id: foreign } = await makeTask(app, elsewhere, { kind: 'initiative' });
  const before = await fingerprint(app);
  for (const [fields, expected] of [
    [{ parentId: randomUUID() }, /^404 task_not_found/],
    [{ parentId: foreign }, /^404 task_not_found/],
    [{ dependsOn: ['T-9999'] }, /^404 task_not_found/],
    [{ parentId: leaf }, /^409 state_conflict/],
    [{ sourceChatId: randomUUID() }, /^400 validation_failed/],
  ] as const) {
    t.match(refusalOf(await create({ taskTemplate: { ...template, ...fields } })), expected);
    t.match(refusalOf(await patch(id, { expectedVersion: 1, taskTemplate: fields })), expected);
  }
  t.equal(refusalOf(await create({ key: 'judged' })), '409 state_conflict in_use');
  t.equal(await fingerprint(app), before);
  expectSuccess(await calls(id).delete());
});

t.test('a schedule of another organization is not there, and nothing of it is told', async (t) => {
  const { id, key } = expectSuccess(await create({ key: 'hidden' }), 201);
  const before = await fingerprint(app);
  for (const ref of [id, key]) {
    for (const [name, call] of Object.entries(calls(ref, elsewhere))) {
      t.equal(refusalOf(await call()), '404 not_found', name);
    }
  }
  const nowhere = { organizationId: randomUUID() };
  t.equal(refusalOf(await app.owner.post(at(nowhere), body)), '404 organization_not_found');
  for (const [name, call] of Object.entries(calls(id, nowhere))) {
    t.equal(refusalOf(await call()), '404 organization_not_found', name);
  }
  t.equal(await fingerprint(app), before);
  expectSuccess(await calls(id).delete());
});

t.test('a viewer reads schedules and changes none', async (t) => {
  const issuer = await startIssuer(t);
  const members = await startTestApp(t, { database: app.database, config: { ownerAuth: issuer.ownerAuth } });
  const { organizationId } = org;
  await transition(sql.api, 'organization_member_put', { organizationId, subject: 'anna', role: 'owner' });
  await transition(sql.api, 'organization_member_put', { organizationId, subject: 'vic', role: 'viewer' });
  const [anna, vic] = [members.owner.as(await issuer.token('anna')), members.owner.as(await issuer.token('vic'))];
  const { id } = expectSuccess(await create({ key: 'seen' }, anna), 201);
  t.match(expectSuccess(await vic.get<Schedule[]>(at(org))), [{ id }]);
  const { get, ...writes } = calls(id, org, vic);
  t.match(expectSuccess(await get()), { id });
  t.equal(refusalOf(await create({}, vic)), '403 forbidden');
  for (const [name, call] of Object.entries(writes)) t.equal(refusalOf(await call()), '403 forbidden', name);
  const mallory = members.owner.as(await issuer.token('mallory'));
  for (const [name, call] of Object.entries(calls(id, org, mallory))) {
    t.equal(refusalOf(await call()), '404 organization_not_found', name);
  }
  expectSuccess(await calls(id, org, anna).delete());
});

t.test('owners change schedules of a suspended organization, agents do not', async (t) => {
  const { id } = expectSuccess(await create({ key: 'idle' }), 201);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  t.equal(refusalOf(await app.service.post(agentPath(org, '/schedules/idle/pause'))), '409 state_conflict');
  t.match(expectSuccess(await calls('idle').pause()), { status: 'paused' });
  await updateOrganization(sql.api, org, { status: 'active' });
  expectSuccess(await calls(id).delete());
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
