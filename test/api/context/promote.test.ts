import { randomUUID } from 'node:crypto';
import t from 'tap';
import { contextPrefix } from '../../../engine/storage/index.ts';
import { plain } from '../../../scripts/terminal.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  type HeldRun,
  makeTask,
  ownerPath,
  refusalOf,
  runNext,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { insertSource } from '../../support/context_fixtures.ts';
import { createSecondProfile, createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);

type Revision = Readonly<{
  scope: string;
  revision: number;
  baseRevision: number;
  createdBy: Fields;
  documents: readonly { path: string; kind: string; sizeBytes: number; sha256: string; sourceIds: string[] }[];
}>;

const FACT = { key: 'founded', value: '2019' };
const facts = (path = 'facts.json', ...entries: Fields[]) => ({
  kind: 'facts',
  path,
  entries: entries.length > 0 ? entries : [FACT],
});

function promote(org: TestOrganization, fields: Fields = {}, client = app.service) {
  const body = { scope: 'organization', baseRevision: 0, documents: [facts()], ...fields };
  return client.post<Revision>(agentPath(org, '/context/promotions'), body);
}

function promoteFrom(org: TestOrganization, taskRef: string, fields: Fields = {}, client = app.service) {
  const body = {
    scope: 'organization',
    baseRevision: 0,
    documents: [{ kind: 'facts', path: 'facts.json' }],
    ...fields,
  };
  return client.post<Revision>(agentPath(org, `/tasks/${taskRef}/context-revisions/promote`), body);
}

async function summary(org: TestOrganization, scope?: string) {
  return expectSuccess(
    await app.owner.get<{ revision: number | null; documents: Fields[] }>(ownerPath(org, '/context/summary'), {
      query: { scope },
    }),
  );
}

async function stored(org: TestOrganization): Promise<string[]> {
  const { objects } = await app.services.storage.list(contextPrefix(org.organizationId));
  return objects.map(({ key }) => key);
}

const agentOf = (run: HeldRun) => app.owner.as(run.executionToken);

t.test('a promotion publishes a revision, which the summary shows', async (test) => {
  const org = await createTestOrganization(sql);
  test.same(await summary(org), { scope: 'organization', revision: 0, documents: [] });
  const entry = {
    key: 'founded',
    title: 'Founded in',
    value: '2019',
    status: 'confirmed',
    notes: 'by two people',
    evidence: ['https://example.com/about'],
    steps: ['one', 'two'],
  };
  const first = expectSuccess(await promote(org, { baseRevision: null, documents: [facts('facts.json', entry)] }), 201);
  test.match(first, { scope: 'organization', revision: 1, baseRevision: 0, createdBy: { kind: 'service' } });
  test.match(first.documents, [{ kind: 'facts', path: 'facts.json', sourceIds: [] }]);
  test.same(await summary(org), {
    scope: 'organization',
    revision: 1,
    documents: [{ kind: 'facts', path: 'facts.json', entries: [entry] }],
  });
  const notes = { kind: 'notes', path: 'deep/notes.json', entries: [{ key: 'n' }] };
  expectSuccess(await promote(org, { baseRevision: 1, documents: [notes] }), 201);
  const { documents } = await summary(org);
  test.same(
    documents.map(({ path }) => path),
    ['deep/notes.json', 'facts.json'],
    'what was not named stays',
  );
  test.same(documents[0]?.['entries'], [
    { key: 'n', title: null, value: null, status: null, notes: null, evidence: [], steps: [] },
  ]);
  expectSuccess(await promote(org, { baseRevision: 2, documents: [], removePaths: ['facts.json'] }), 201);
  test.match(await summary(org), { revision: 3, documents: [{ path: 'deep/notes.json' }] });
  test.same(await summary(org, 'growth'), { scope: 'growth', revision: 0, documents: [] });
});

t.test('a document is laid out beside those of the base that stay', async (test) => {
  const org = await createTestOrganization(sql);
  expectSuccess(await promote(org, { documents: [facts('a.json'), facts('deep/b.json')] }), 201);
  for (const [path, reason] of Object.entries({
    'A.JSON': 'layout_conflict',
    'a.json/c': 'below_a_document',
    'A.json/c': 'below_a_document',
    DEEP: 'below_a_document',
  })) {
    const reply = await promote(org, { baseRevision: 1, documents: [facts('other.json'), facts(path)] });
    test.equal(refusalOf(reply), `400 validation_failed ${reason}`, path);
    test.same(issuePaths(reply), ['documents.1.path'], path);
  }
  const renamed = { baseRevision: 1, documents: [facts('A.json')], removePaths: ['a.json'] };
  expectSuccess(await promote(org, renamed), 201);
});

t.test('what is refused leaves neither a revision nor a file', async (test) => {
  const org = await createTestOrganization(sql);
  const elsewhere = await createTestOrganization(sql);
  const source = await insertSource(sql, org, { status: 'stored' });
  const citing = (evidence: string) => ({ documents: [facts('facts.json', { ...FACT, evidence: [evidence] })] });
  const uri = (organization: string, id: string) => `org://${organization}/context/sources/${id}`;
  const refused: [Fields, string][] = [
    [{ baseRevision: 1 }, '409 state_conflict stale'],
    [citing(uri(org.organizationId, source.id)), '400 validation_failed cannot_ground'],
    [citing(source.id), '400 validation_failed cannot_ground'],
    [citing(randomUUID()), '400 validation_failed unknown_source'],
    [citing(uri(elsewhere.organizationId, source.id)), '400 validation_failed foreign_uri'],
    [{ documents: [facts('a'), facts('a/b')] }, '400 validation_failed below_a_document'],
    [{ documents: [facts('A'), facts('a/b')] }, '400 validation_failed below_a_document'],
    [{ documents: [facts('a.json'), facts('A.json')] }, '400 validation_failed layout_conflict'],
    [{ documents: [facts('\u00e9'), facts('e\u0301')] }, '400 validation_failed layout_conflict'],
    [{ removePaths: ['other.json'] }, '400 validation_failed unknown_document'],
  ];
  for (const [fields, expected] of refused) test.equal(refusalOf(await promote(org, fields)), expected);
  const invalid: Fields[] = [
    { documents: [] },
    { documents: undefined, removePaths: ['a'] },
    { baseRevision: undefined },
    { documents: [facts('a'), facts('a')] },
    { removePaths: ['facts.json'] },
    { scope: 'sales' },
    { baseRevision: -1 },
    { baseRevision: '0' },
    { documents: [{ ...facts(), kind: 'poems' }] },
    { documents: [{ ...facts(), extra: 1 }] },
    { documents: [facts('facts.json', FACT, FACT)] },
    { documents: [facts('facts.json', { value: '1' })] },
    { documents: [facts('facts.json', { ...FACT, value: { nested: true } })] },
    { documents: [facts('facts.json', { ...FACT, other: 1 })] },
    { documents: [facts('facts.json', { ...FACT, notes: 'a\0b' })] },
    ...[
      '',
      '/etc/passwd',
      '../a',
      'a/../b',
      './a',
      'a//b',
      'a/',
      'a\\b',
      'a\0b',
      'a\nb',
      'a\u202eb',
      'a\u2028b',
      '.git/config',
      'a/.GIT/x',
      'a./b',
      'a.',
      'a ',
      'C:/a',
      'c:a',
    ]
      .concat(['%2e%2e/a', '%2E%2E%2Fa', 'a%00', 'a%5Cb', 'é'.repeat(451)])
      .map((path) => ({ documents: [facts(path)] })),
  ];
  for (const fields of invalid) {
    const reply = await promote(org, fields);
    test.match([reply.status, reply.code], [400, 'validation_failed'], plain(JSON.stringify(fields)).slice(0, 100));
  }
  test.same(await summary(org), { scope: 'organization', revision: 0, documents: [] });
  test.same(await stored(org), []);
  test.equal(refusalOf(await promote({ ...org, organizationId: randomUUID() })), '404 not_found');
});

t.test('two promotions at once: one wins', async (test) => {
  const org = await createTestOrganization(sql);
  const replies = await Promise.all([1, 2, 3].map((n) => promote(org, { documents: [facts(`${n}.json`)] })));
  test.same(replies.map(({ status }) => status).sort(), [201, 409, 409]);
  test.equal((await stored(org)).length, 1);
});

t.test('a promotion sent again under its Idempotency-Key is the same', async (test) => {
  const org = await createTestOrganization(sql);
  const send = () =>
    app.service.post<Revision>(
      agentPath(org, '/context/promotions'),
      { scope: 'organization', baseRevision: null, documents: [facts()] },
      { headers: { 'idempotency-key': 'one' } },
    );
  const first = expectSuccess(await send(), 201);
  test.same(expectSuccess(await send(), 201), first);
  test.equal((await summary(org)).revision, 1);
});

t.test('a department promotes by its own task, into its own scope', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'department', department: 'growth' });
  const run = await runTask(app, org);
  const agent = agentOf(run);
  test.equal(refusalOf(await promote(org, { scope: 'growth' }, agent)), '401 agent_unauthorized');
  const worker = workerOf(app, run);
  expectSuccess(await worker.put('facts.json', JSON.stringify({ entries: [FACT] })), 201);
  test.equal(refusalOf(await promoteFrom(org, run.taskId, {}, agent)), '401 agent_unauthorized');
  const made = expectSuccess(await promoteFrom(org, run.taskId, { scope: 'growth' }, agent));
  test.match(made, {
    scope: 'growth',
    revision: 1,
    createdBy: { kind: 'agent', runId: run.runId, taskId: run.taskId },
  });
  test.match(await summary(org, 'growth'), { revision: 1, documents: [{ entries: [FACT] }] });
  const other = await makeTask(app, org);
  const foreign = await promoteFrom(org, other.id, { scope: 'growth', baseRevision: 1 }, agent);
  test.equal(refusalOf(foreign), '401 agent_unauthorized', 'not its task');
  expectSuccess(await worker.complete());
  const late = await promoteFrom(org, run.taskId, { scope: 'growth', baseRevision: 1 }, agent);
  test.equal(refusalOf(late), '401 agent_unauthorized', 'the capability ended with the run');
});

t.test('an operator promotes what it likes; another organization’s capability nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const elsewhere = await createTestOrganization(sql);
  const run = await runTask(app, org);
  expectSuccess(await promote(org, { scope: 'support' }, agentOf(run)), 201);
  test.equal(refusalOf(await promote(elsewhere, {}, agentOf(run))), '401 agent_unauthorized');
  test.equal(refusalOf(await promote(org, {}, app.owner.as('nothing'))), '401 agent_unauthorized');
});

t.test(
  'a task’s files are promoted from the newest run that succeeded, or from the one that is named',
  async (test) => {
    const org = await createTestOrganization(sql);
    const run = await runTask(app, org);
    const worker = workerOf(app, run);
    const put = (path: string, content: string) => worker.put(path, content).then((reply) => expectSuccess(reply, 201));
    await put('facts.json', JSON.stringify({ entries: [{ key: 'one', value: 1 }] }));
    await put('out/notes.json', JSON.stringify({ entries: [{ key: 'two', value: true }] }));
    await put('text.json', 'no json');
    await put('list.json', '[]');
    await put('large.json', ' '.repeat(1_048_577));
    const from = (path: string, fields: Fields = {}) => ({ documents: [{ kind: 'facts', path, ...fields }] });
    const early = await promoteFrom(org, run.taskId, from('facts.json'));
    test.equal(refusalOf(early), '400 validation_failed not_stored', 'it has not succeeded');
    const named = await promoteFrom(
      org,
      run.taskId,
      from('early.json', { outputPath: 'facts.json', runId: run.runId }),
    );
    test.match(expectSuccess(named), { revision: 1, createdBy: { kind: 'service', taskId: run.taskId } });
    expectSuccess(await worker.completeWith('facts.json'));
    const both = {
      baseRevision: 1,
      documents: [
        { kind: 'facts', path: 'facts.json' },
        { kind: 'notes', path: 'notes.json', outputPath: 'out/notes.json' },
      ],
      removePaths: ['early.json'],
    };
    expectSuccess(await promoteFrom(org, run.taskId, both));
    test.match(await summary(org), {
      revision: 2,
      documents: [
        { kind: 'facts', path: 'facts.json', entries: [{ key: 'one', value: 1 }] },
        { kind: 'notes', path: 'notes.json', entries: [{ key: 'two', value: true }] },
      ],
    });
    const refused: [Fields, string][] = [
      [from('missing.json'), '400 validation_failed not_stored'],
      [from('facts.json', { runId: randomUUID() }), '400 validation_failed not_stored'],
      [from('text.json'), '400 validation_failed unreadable'],
      [from('list.json'), '400 validation_failed unreadable'],
      [from('large.json'), '400 validation_failed too_large'],
    ];
    const before = await stored(org);
    for (const [fields, expected] of refused) {
      const reply = await promoteFrom(org, run.taskId, { ...fields, baseRevision: 2 });
      test.equal(refusalOf(reply), expected, JSON.stringify(fields));
    }
    test.same(await stored(org), before);
    const wrong = await promoteFrom(org, run.taskId, from('../facts.json'));
    test.match([wrong.status, wrong.code], [400, 'validation_failed']);
    const output = from('a.json', { outputPath: '/etc/passwd' });
    test.match((await promoteFrom(org, run.taskId, output)).status, 400);
    test.equal(refusalOf(await promoteFrom(org, 'T-999')), '404 not_found');
    test.equal(refusalOf(await promoteFrom(org, run.taskId)), '409 state_conflict stale');
  },
);

t.test(
  'a run finds the published documents in its manifest and reads them; later ones are for later runs',
  async (test) => {
    const org = await createTestOrganization(sql, { kind: 'department', department: 'growth' });
    const other = await createSecondProfile(sql, org, { kind: 'department', department: 'support' });
    expectSuccess(await promote(org), 201);
    expectSuccess(await promote(org, { scope: 'growth', documents: [facts('plan.json')] }), 201);
    const run = await runTask(app, org);
    const manifest = () => app.owner.get<{ files: Fields[] }>(ownerPath(org, `/runs/${run.runId}/context`));
    const { files } = expectSuccess(await manifest());
    test.match(files, [
      { path: 'context/growth/plan.json', name: 'plan.json', role: 'instructions', available: true },
      { path: 'context/organization/facts.json', role: 'instructions', mediaType: 'application/json' },
    ]);
    test.equal(files.length, 2);
    expectSuccess(await promote(org, { baseRevision: 1, documents: [facts('facts.json', { key: 'new' })] }), 201);
    test.same(expectSuccess(await manifest()).files, files);
    const content = await workerOf(app, run).input('context/organization/facts.json');
    test.match(await content.json(), { entries: [FACT] });
    const owned = await app.owner.fetch(
      ownerPath(org, `/runs/${run.runId}/context/files/content?path=context/growth/plan.json`),
    );
    test.match(await owned.json(), { entries: [FACT] });
    await app.owner.post(ownerPath(org, '/tasks'), { title: 'x', ownerProfileKey: other.profileKey, priority: 5 });
    const late = await runNext(app, org);
    const lateFiles = expectSuccess(await workerOf(app, late).inputs()).files;
    test.same(
      lateFiles.map(({ path }) => path),
      ['context/organization/facts.json'],
    );
  },
);
