import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import {
  expectSuccess,
  type Fields,
  fingerprint,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  sqlOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createSecondProfile, createTestOrganization, updateProfile } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { ask, createChat } from '../chats/support.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const elsewhere = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const tasks = ownerPath(org, '/tasks');
const nobody = randomUUID();

const post = (body: unknown, headers: Record<string, string> = {}) => app.owner.post<Task>(tasks, body, { headers });
const act = (ref: string, verb: 'cancel' | 'retry', body?: unknown) =>
  app.owner.post<Task>(`${tasks}/${ref}/${verb}`, body);

t.test('a task that says nothing has the defaults, and is ready', async (t) => {
  const before = Date.now();
  const reply = await post({ title: '  A title  ', ownerProfileKey: 'growth' });
  t.equal(reply.status, 201);
  const { id, createdAt, updatedAt, ...rest } = reply.data;
  t.same(rest, {
    organizationId: org.organizationId,
    identifier: 'T-1',
    identifierScope: 'T',
    identifierNumber: 1,
    parentId: null,
    rootTaskId: id,
    depth: 0,
    ownerAgentProfileId: org.profileId,
    sourceChatId: null,
    sourceMessageId: null,
    kind: 'task',
    status: 'pending',
    phase: 'execute',
    title: 'A title',
    priority: 0,
    version: 1,
    graphRevision: 1,
    agentRunCount: 0,
    consumedAgentRunCount: 0,
    replanCount: 0,
    createdByRunId: null,
    spec: {
      objective: '',
      inputs: [],
      acceptanceCriteria: [],
      budget: { maxAgentRuns: 10, maxAttemptsPerPhase: 3, maxReplans: 2 },
    },
    state: { blockers: [], activeRunIds: [] },
    result: null,
    dedupeKey: id,
    scheduledAt: null,
    dueAt: null,
    startedAt: null,
    completedAt: null,
  });
  t.equal(createdAt, updatedAt);
  t.ok(Math.abs(Date.parse(createdAt) - before) < 60_000);
  t.same(await readTask(app, org, id), reply.data, 'and reads as it was returned');
});

t.test('everything that a task may say is kept', async (t) => {
  await createSecondProfile(sql, org, { key: 'chat', kind: 'chat' });
  const chat = await createChat(app, org);
  const message = await ask(app, chat);
  const given = {
    title: 'Größe 🚀 “x”',
    priority: -1000,
    spec: {
      objective: 'Sum up\n\tüber alles',
      inputs: [
        { kind: 'inline', path: 'über/sales.csv', text: 'a,b\n', mediaType: 'text/csv' },
        { kind: 'upload', path: 'big.bin' },
        { kind: 'artifact', runId: nobody, artifactIndex: 0, path: 'x' },
      ],
      acceptanceCriteria: [
        { kind: 'output_file', path: 'r.json', checks: [{ kind: 'media_type', anyOf: ['application/json'] }] },
        { kind: 'output_file', path: 's.json', checks: [{ kind: 'json_pointer', pointer: '', operator: 'exists' }] },
        { kind: 'for_people', text: 'Looks nice', deep: [{ a: 1.5 }] },
      ],
      budget: { maxAgentRuns: 7 },
    },
    dedupeKey: 'all',
    scheduledAt: '2099-01-02T03:04:05.678+02:00',
    dueAt: '2099-02-03T00:00:00Z',
    sourceChatId: chat.id,
    sourceMessageId: message.id,
  };
  const { data } = await post({ ...given, ownerAgentProfileId: org.profileId.toUpperCase() });
  t.match(data, {
    title: given.title,
    priority: -1000,
    status: 'blocked',
    dedupeKey: 'all',
    scheduledAt: '2099-01-02T01:04:05.678Z',
    dueAt: '2099-02-03T00:00:00.000Z',
    sourceChatId: given.sourceChatId,
    sourceMessageId: given.sourceMessageId,
    ownerAgentProfileId: org.profileId,
  });
  t.same(data.state, { blockers: [{ kind: 'schedule', until: '2099-01-02T01:04:05.678Z' }], activeRunIds: [] });
  t.same(data.spec.inputs, given.spec.inputs);
  t.same(data.spec.acceptanceCriteria, given.spec.acceptanceCriteria);
  t.same(data.spec.budget, { maxAgentRuns: 7, maxAttemptsPerPhase: 3, maxReplans: 2 });
});

t.test('children, prerequisites and disabled profiles block, and say so', async (t) => {
  const first = await makeTask(app, org);
  const second = await makeTask(app, org, { dependsOn: [first.identifier, first.id] });
  t.same(second.state.blockers, [{ kind: 'dependency', taskId: first.id }], 'the same prerequisite twice is one');
  const initiative = await makeTask(app, org, { kind: 'initiative' });
  t.match(initiative, { identifier: /^I-\d+$/, status: 'pending', phase: 'plan', state: { blockers: [] } });
  t.equal(initiative.spec.budget.maxAgentRuns, 500);
  const child = await makeTask(app, org, { parentId: initiative.id.toUpperCase() });
  t.match(await readTask(app, org, initiative.id), {
    status: 'blocked',
    phase: 'execute',
    state: { blockers: [{ kind: 'children' }] },
  });
  t.match(child, { parentId: initiative.id, rootTaskId: initiative.id, depth: 1, status: 'pending' });
  t.equal(child.graphRevision, initiative.graphRevision + 1, 'a new child changes the structure');
  const idle = await createSecondProfile(sql, org, { key: 'idle', status: 'disabled' });
  const waits = await makeTask(app, org, { ownerProfileKey: 'idle' });
  t.same(waits.state.blockers, [{ kind: 'profile' }]);
  await updateProfile(sql.api, idle, { status: 'enabled' });
  t.equal((await readTask(app, org, waits.id)).status, 'pending');
});

t.test('an open task with the same dedupeKey is returned', async (t) => {
  const first = await makeTask(app, org, { dedupeKey: 'daily' });
  const again = await post({ title: 'Another', ownerProfileKey: 'growth', dedupeKey: 'daily' });
  t.equal(again.status, 201);
  t.same(again.data, first);
  const other = await makeTask(app, elsewhere, { dedupeKey: 'daily' });
  t.not(other.id, first.id, 'keys are of one organization');
  await act(first.id, 'cancel');
  t.not((await makeTask(app, org, { dedupeKey: 'daily' })).id, first.id, 'once it is over, a new one is made');
});

t.test('what does not exist, or only elsewhere, is not found', async (t) => {
  const foreign = await makeTask(app, elsewhere);
  const foreignInitiative = await makeTask(app, elsewhere, { kind: 'initiative' });
  const before = await fingerprint(app);
  const body = { title: 'x', ownerProfileKey: 'growth' };
  const create = async (fields: Fields) => refusalOf(await post({ ...body, ...fields }));
  t.equal(await create({ parentId: nobody }), '404 task_not_found not_found');
  t.equal(await create({ parentId: foreignInitiative.id }), '404 task_not_found not_found');
  t.equal(await create({ dependsOn: ['T-99999'] }), '404 task_not_found not_found');
  t.equal(await create({ dependsOn: [foreign.id] }), '404 task_not_found not_found');
  t.equal(await create({ ownerProfileKey: 'nobody' }), '400 validation_failed unknown_profile');
  t.equal(
    refusalOf(await post({ title: 'x', ownerAgentProfileId: elsewhere.profileId })),
    '400 validation_failed unknown_profile',
  );
  const nowhere = await app.owner.post(`/organizations/${nobody}/tasks`, { ...body, dependsOn: ['T-1'] });
  t.equal(refusalOf(nowhere), '404 organization_not_found');
  for (const ref of [foreign.id, nobody, 'T-99999', 'I-999999999', foreignInitiative.id]) {
    t.equal(refusalOf(await app.owner.get(`${tasks}/${ref}`)), '404 task_not_found', `get ${ref}`);
    t.equal(refusalOf(await act(ref, 'cancel')), '404 task_not_found', `cancel ${ref}`);
    t.equal(refusalOf(await act(ref, 'retry')), '404 task_not_found', `retry ${ref}`);
  }
  t.equal(await fingerprint(app), before, 'and nothing was changed');
});

t.test('a parent has to be an open initiative with room', async (t) => {
  const small = await createTestOrganization(sql, { limits: { maxTaskDepth: 2, maxInitiativeDescendants: 3 } });
  const add = (fields: Fields) =>
    app.owner.post<Task>(ownerPath(small, '/tasks'), { title: 'x', ownerProfileKey: small.profileKey, ...fields });
  const conflict = async (fields: Fields) => refusalOf(await add(fields));
  const { id: leaf } = (await add({})).data;
  t.equal(await conflict({ parentId: leaf }), '409 state_conflict not_an_open_initiative');
  const { id: root } = (await add({ kind: 'initiative' })).data;
  const { id: middle } = (await add({ kind: 'initiative', parentId: root })).data;
  t.equal(await conflict({ kind: 'initiative', parentId: middle }), '409 state_conflict max_task_depth');
  expectSuccess(await add({ parentId: middle }), 201);
  expectSuccess(await add({ parentId: root }), 201);
  t.equal(await conflict({ parentId: root }), '409 state_conflict max_initiative_descendants');
  t.equal(await conflict({ parentId: root, dependsOn: [root] }), '409 state_conflict max_initiative_descendants');
  await app.owner.post(ownerPath(small, `/tasks/${root}/cancel`));
  t.equal(await conflict({ parentId: root }), '409 state_conflict not_an_open_initiative');
});

t.test('a task that waits for its own parent is refused', async (t) => {
  const { id: root } = await makeTask(app, org, { kind: 'initiative' });
  const reply = await post({ title: 'x', ownerProfileKey: 'growth', parentId: root, dependsOn: [root] });
  t.equal(refusalOf(reply), '409 state_conflict cycle');
});

const criterion = { kind: 'output_file', path: 'a' };
const withCheck = (check: unknown) => ({ spec: { acceptanceCriteria: [{ ...criterion, checks: [check] }] } });
const withInput = (input: Fields) => ({ spec: { inputs: [{ kind: 'inline', path: 'a', text: '', ...input }] } });
const withInputs = (...paths: string[]) => ({ spec: { inputs: paths.map((path) => ({ kind: 'upload', path })) } });
const withCriteria = (...paths: string[]) => ({
  spec: { acceptanceCriteria: paths.map((path) => ({ kind: 'output_file', path })) },
});
const wrongBodies: Readonly<Record<string, readonly [Fields, string]>> = {
  'no title': [{ title: undefined }, 'title'],
  'an empty title': [{ title: ' ' }, 'title'],
  'a long title': [{ title: 'x'.repeat(201) }, 'title'],
  'NUL in the title': [{ title: 'a\0b' }, 'title'],
  'half a surrogate': [{ title: 'a\ud800b' }, 'title'],
  'a title of another type': [{ title: 7 }, 'title'],
  'an unknown field': [{ colour: 'red' }, 'colour'],
  'a field of the response': [{ status: 'completed' }, 'status'],
  'an unknown kind': [{ kind: 'epic' }, 'kind'],
  'a null kind': [{ kind: null }, 'kind'],
  'a parent by identifier': [{ parentId: 'I-1' }, 'parentId'],
  'both owners': [{ ownerAgentProfileId: nobody }, 'ownerProfileKey'],
  'a high priority': [{ priority: 1001 }, 'priority'],
  'a broken priority': [{ priority: 0.5 }, 'priority'],
  'a huge priority': [{ priority: 1e300 }, 'priority'],
  'a prerequisite that is no reference': [{ dependsOn: ['X-1'] }, 'dependsOn.0'],
  'too many prerequisites': [{ dependsOn: Array(101).fill('T-1') }, 'dependsOn'],
  'an empty dedupeKey': [{ dedupeKey: '' }, 'dedupeKey'],
  'a date without a zone': [{ dueAt: '2026-01-01T00:00:00' }, 'dueAt'],
  'a day that is not there': [{ dueAt: '2026-02-30T00:00:00Z' }, 'dueAt'],
  'a year beyond all': [{ scheduledAt: '0001-01-01T00:00:00Z' }, 'scheduledAt'],
  'a foreign field of the spec': [{ spec: { goal: 'x' } }, 'spec.goal'],
  'a foreign field of the budget': [{ spec: { budget: { maxRuns: 1 } } }, 'spec.budget.maxRuns'],
  'a budget of nothing': [{ spec: { budget: { maxAgentRuns: 0 } } }, 'spec.budget.maxAgentRuns'],
  'an unknown verification': [{ spec: { verification: 'oracle' } }, 'spec.verification'],
  'an unknown verifier': [{ spec: { verification: 'agent', verifierProfileKey: 'nobody' } }, 'spec.verifierProfileKey'],
  'an unknown input': [withInput({ kind: 'magic' }), 'spec.inputs.0.kind'],
  'an input above its folder': [withInput({ path: '../a' }), 'spec.inputs.0.path'],
  'an absolute input': [withInput({ path: '/etc/passwd' }), 'spec.inputs.0.path'],
  'an input with a backslash': [withInput({ path: 'a\\b' }), 'spec.inputs.0.path'],
  'an input with NUL': [withInput({ path: 'a\0b' }), 'spec.inputs.0.path'],
  'an input of a bad type': [withInput({ mediaType: 'text' }), 'spec.inputs.0.mediaType'],
  'a check without its value': [
    withCheck({ kind: 'json_pointer', pointer: '/a', operator: 'eq' }),
    'spec.acceptanceCriteria.0.checks.0.value',
  ],
  'an unknown operator': [
    withCheck({ kind: 'json_pointer', pointer: '/a', operator: 'like', value: 1 }),
    'spec.acceptanceCriteria.0.checks.0.operator',
  ],
  'a pointer without its slash': [
    withCheck({ kind: 'json_pointer', pointer: 'a', operator: 'exists' }),
    'spec.acceptanceCriteria.0.checks.0.pointer',
  ],
  'an input twice': [withInputs('a', 'b', 'a'), 'spec.inputs.2.path'],
  'an input in another case': [withInputs('a/Data.csv', 'A/data.CSV'), 'spec.inputs.1.path'],
  'an input in another normalization': [withInputs('Gr\u00f6\u00dfe', 'Gro\u0308\u00dfe'), 'spec.inputs.1.path'],
  'an input below another': [withInputs('a', 'a/b'), 'spec.inputs.1.path'],
  'an input above another': [withInputs('a/b/c', 'A'), 'spec.inputs.1.path'],
  'an input in the place of the task': [withInputs('Task.json'), 'spec.inputs.0.path'],
  'an input in the place of the context': [withInputs('context/organization'), 'spec.inputs.0.path'],
  'an input of a repository': [withInputs('a/.GIT/hooks/pre-commit'), 'spec.inputs.0.path'],
  'an input that is read backwards': [withInputs('a\u202egpj.exe'), 'spec.inputs.0.path'],
  'an input of two lines': [withInputs('a\u2028b'), 'spec.inputs.0.path'],
  'a criterion below another': [withCriteria('a', 'a/b'), 'spec.acceptanceCriteria.1.path'],
  'a criterion in another case': [withCriteria('Report.md', 'report.md'), 'spec.acceptanceCriteria.1.path'],
  'a criterion of a repository': [withCriteria('.git/config'), 'spec.acceptanceCriteria.0.path'],
  'a criterion above its folder': [
    { spec: { acceptanceCriteria: [{ ...criterion, path: 'a/../b' }] } },
    'spec.acceptanceCriteria.0.path',
  ],
};

t.test('inputs and outputs that can lie beside each other are taken', async () => {
  const { spec: inputs } = withInputs(
    'a/b',
    'a/c',
    'ab',
    'context/growth/mine.json',
    'outputs/x',
    'tasks.json',
    '.github/x',
  );
  // One output may have to meet several criteria, and be an input too.
  const { spec: criteria } = withCriteria('a/b', 'a/b', 'a2/b', 'task.json');
  expectSuccess(await post({ title: 'x', ownerProfileKey: 'growth', spec: { ...inputs, ...criteria } }), 201);
});

t.test('bad input is refused, by the path of what is wrong', async (t) => {
  const before = await fingerprint(app);
  for (const [name, [fields, path]] of Object.entries(wrongBodies)) {
    const reply = await post({ title: 'x', ownerProfileKey: 'growth', ...fields });
    t.match([reply.status, reply.code], [400, 'validation_failed'], name);
    t.ok(
      reply.body.error.issues?.some((issue) => issue.path === path),
      `${name}: ${JSON.stringify(reply.body.error.issues)}`,
    );
  }
  for (const body of [null, [], 'x', 7, [{ title: 'x' }]]) {
    t.equal(
      (await app.owner.send('POST', tasks, body, { headers: { 'content-type': 'application/json' } })).status,
      400,
    );
  }
  for (const ref of ['t-1', 'T-0', 'T-01', 'T-1234567890', 'X-1', 'T-1%20', `${nobody}0`, 'T-1%00', '%2e%2e']) {
    t.match(refusalOf(await app.owner.get(`${tasks}/${ref}`)), /^(400 validation_failed|404 not_found)/, ref);
  }
  t.match(refusalOf(await app.owner.get(`${tasks}/T-1`, { query: { a: 1 } })), '400 validation_failed');
  t.match(refusalOf(await act('T-1', 'cancel', { reason: 'x' })), '400 validation_failed');
  t.equal(await fingerprint(app), before, 'nothing was changed by any of it');
});

t.test('a task is found by its id in any case, and by its identifier', async (t) => {
  const task = await makeTask(app, org);
  for (const ref of [task.id, task.id.toUpperCase(), task.identifier, encodeURIComponent(task.identifier)]) {
    t.same(await readTask(app, org, ref), task);
  }
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});

t.test('what is not valid is said in words of our own, also inside of a criterion', async (t) => {
  const criterion = (given: object) => ({ acceptanceCriteria: [{ kind: 'output_file', path: 'a.json', ...given }] });
  for (const [task, path, message] of [
    [{}, 'title', 'is required'],
    [{ title: '' }, 'title', 'must not be empty'],
    [{ title: 1 }, 'title', 'must be a string'],
    [{ title: 'a', kind: 'chore' }, 'kind', 'must be one of task, initiative'],
    [{ title: 'a', spec: criterion({ checks: 1 }) }, 'spec.acceptanceCriteria.0.checks', 'must be an array'],
  ] as const) {
    const { status, body } = await post(task);
    t.equal(status, 400);
    t.match(body, { error: { issues: [{ path, message }] } });
  }
});
