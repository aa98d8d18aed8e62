import { createHash, randomUUID } from 'node:crypto';
import t from 'tap';
import {
  agentPath,
  claim,
  expectSuccess,
  type Fields,
  type HeldRun,
  makeTask,
  ownerPath,
  refusalOf,
  runNext,
  runTask,
  sqlOf,
  startRun,
  storedKeys,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, endLease, expire, publishNow, updateOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } });
const elsewhere = await createTestOrganization(sql);

type Stored = { path: string; mediaType: string; sizeBytes: number; sha256: string };
const put = (ref: string, path: string, bytes: string | Uint8Array, at = org) =>
  app.owner.put<Stored>(ownerPath(at, `/tasks/${ref}/inputs/${path}`), bytes);
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** What a run was given, by path: its content, or null where it was not there. */
async function given(run: HeldRun): Promise<Record<string, string | null>> {
  const worker = workerOf(app, run);
  const { files } = expectSuccess(await worker.inputs());
  const contents: Record<string, string | null> = {};
  for (const file of files) {
    const response = await worker.input(String(file['path']));
    const content = response.status === 200 ? await response.text() : null;
    if (content !== null && sha256(content) !== file['sha256'])
      throw new Error(`${file['path']} differs from its digest`);
    if ((content !== null) !== file['available']) throw new Error(`${file['path']} returns ${response.status}`);
    contents[String(file['path'])] = content;
  }
  return contents;
}

/** A task that cannot run yet, so that there is time to upload; the gate's run is to be completed. */
async function gatedTask(inputs: readonly Fields[]): Promise<{ id: string; open: () => Promise<HeldRun> }> {
  const gate = await runTask(app, org);
  const { id } = await makeTask(app, org, { priority: 1000, dependsOn: [gate.taskId], spec: { inputs } });
  return {
    id,
    async open() {
      expectSuccess(await workerOf(app, gate).complete());
      return runNext(app, org);
    },
  };
}

t.test('an upload is described by its bytes, under the id and the identifier of its task', async (t) => {
  const task = await makeTask(app, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  const csv = 'region,amount\nnorth,12.50\n';
  const reply = await put(task.identifier, 'data/sales.csv', csv);
  t.equal(reply.status, 201);
  t.same(reply.data, { path: 'data/sales.csv', mediaType: 'text/csv', sizeBytes: csv.length, sha256: sha256(csv) });
  t.same((await put(task.id, 'data/sales.csv', csv)).data, reply.data, 'a repeat returns the same');
  const asAgent = await app.service.put<Stored>(agentPath(org, `/tasks/${task.id}/inputs/a%20b.txt`), 'x');
  t.match([asAgent.status, asAgent.data.path], [201, 'a b.txt']);
});

t.test('inline, uploaded and artifact inputs reach the run', async (t) => {
  const source = await runTask(app, org);
  expectSuccess(await workerOf(app, source).put('out/a.txt', 'from a run'), 201);
  expectSuccess(await workerOf(app, source).put('out/b.txt', 'second'), 201);
  expectSuccess(await workerOf(app, source).completeWith('out/b.txt', 'out/a.txt'));
  const task = await gatedTask([
    { kind: 'inline', path: 'i.txt', text: 'inline ä' },
    { kind: 'upload', path: 'u.bin' },
    { kind: 'upload', path: 'missing.bin' },
    { kind: 'artifact', runId: source.runId.toUpperCase(), artifactIndex: 1, path: 'a.txt' },
  ]);
  expectSuccess(await put(task.id, 'u.bin', 'uploaded'), 201);
  expectSuccess(await put(task.id, 'not-named.bin', 'nobody asked for it'), 201);
  const run = await task.open();
  t.same(await given(run), {
    'a.txt': 'from a run',
    'i.txt': 'inline ä',
    'missing.bin': null,
    'u.bin': 'uploaded',
  });
  const { files } = expectSuccess(await workerOf(app, run).inputs());
  t.same(files[1], {
    path: 'i.txt',
    name: 'i.txt',
    role: 'input',
    mediaType: 'text/plain',
    sizeBytes: 9,
    available: true,
    sha256: sha256('inline ä'),
  });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('a run keeps what it was given when the inputs are replaced, and the next one has the new ones', async (t) => {
  const task = await gatedTask([{ kind: 'upload', path: 'u.txt' }]);
  expectSuccess(await put(task.id, 'u.txt', 'first'), 201);
  const run = await task.open();
  expectSuccess(await put(task.id, 'u.txt', 'second, and longer'), 201);
  t.same(await given(run), { 'u.txt': 'first' }, 'while it runs');
  await endLease(sql, run);
  await expire(sql.jobs, run);
  await publishNow(sql, org, task.id);
  const next = await runNext(app, org);
  t.same(await given(next), { 'u.txt': 'second, and longer' });
  const shown = await app.owner.fetch(ownerPath(org, `/runs/${run.runId}/context/files/content?path=u.txt`));
  t.equal(await shown.text(), 'first', 'the history shows what the first one had');
  expectSuccess(await workerOf(app, next).complete());
});

t.test('a changed spec reaches the next run, and the claim that carried the old one is over', async (t) => {
  const inline = (text: string) => ({ inputs: [{ kind: 'inline', path: 'i.txt', text }] });
  const task = await makeTask(app, org, { priority: 1000, spec: inline('old') });
  const item = await claim(app, org);
  const patch = { expectedVersion: task.version, spec: inline('new') };
  expectSuccess(await app.service.patch(agentPath(org, `/tasks/${task.id}`), patch));
  await t.rejects(startRun(app, item), /lease_lost/);
  const run = await runNext(app, org);
  t.same(await given(run), { 'i.txt': 'new' });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('an artifact of another organization, or of a run that made none, is not there', async (t) => {
  const foreign = await runTask(app, elsewhere);
  expectSuccess(await workerOf(app, foreign).put('a.txt', 'secret'), 201);
  expectSuccess(await workerOf(app, foreign).completeWith('a.txt'));
  const failed = await runTask(app, org);
  expectSuccess(await workerOf(app, failed).put('a.txt', 'half done'), 201);
  expectSuccess(await workerOf(app, failed).fail());
  const artifact = (runId: string, path: string) => ({ kind: 'artifact', runId, artifactIndex: 0, path });
  const inputs = [artifact(foreign.runId, 'foreign'), artifact(failed.runId, 'failed'), artifact(randomUUID(), 'none')];
  const run = await runTask(app, org, { spec: { inputs } });
  t.same(await given(run), { failed: null, foreign: null, none: null });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('an input is found by its exact path, with ranges, and to the holder alone', async (t) => {
  const run = await runTask(app, org, {
    spec: { inputs: [{ kind: 'inline', path: 'd/a.txt', text: '0123456789' }] },
  });
  const worker = workerOf(app, run);
  const content = `${worker.inputsPath}/content`;
  const ask = (query: string, headers: Record<string, string> = {}) =>
    app.service.get(`${content}${query}`, { headers: { ...worker.headers, ...headers } });
  for (const query of ['?path=a.txt', '?path=d', '?path=D/a.txt', '?path=d/a.txt.']) {
    t.match(refusalOf(await ask(query)), /^400 validation_failed/, query);
  }
  for (const query of [
    '',
    '?path=',
    '?path=../a',
    '?path=d%2f..%2fd%2fa.txt',
    '?path=%00',
    '?path=d/a.txt&path=x',
    '?x=1',
  ]) {
    t.match(refusalOf(await ask(query)), /^400 validation_failed/, query);
  }
  t.equal(refusalOf(await ask('?path=d/a.txt', { 'x-lease-token': '1.x' })), '409 run_lease_expired lease_lost');
  t.equal(
    refusalOf(await app.service.get(`${content}?path=d/a.txt`)),
    '400 validation_failed invalid_type',
    'no headers',
  );
  const part = await app.service.fetch(`${content}?path=d/a.txt`, {
    headers: { ...worker.headers, range: 'bytes=-4' },
  });
  t.match([part.status, await part.text(), part.headers.get('content-range')], [206, '6789', 'bytes 6-9/10']);
  t.equal(refusalOf(await ask('?path=d/a.txt', { range: 'bytes=10-' })), '416 range_not_satisfiable');
  const foreign = { ...run, organizationId: elsewhere.organizationId };
  t.equal(refusalOf(await workerOf(app, foreign).inputs()), '409 run_lease_expired lease_lost');
  expectSuccess(await worker.complete());
  t.equal(refusalOf(await worker.inputs()), '409 run_lease_expired lease_lost', 'not after the end');
});

t.test('an input whose bytes were lost is not available, and the lease is not to blame', async (t) => {
  const task = await gatedTask([{ kind: 'upload', path: 'u.txt' }]);
  const before = await storedKeys(app, org);
  expectSuccess(await put(task.id, 'u.txt', 'abc'), 201);
  const run = await task.open();
  for (const key of await storedKeys(app, org)) if (!before.includes(key)) await app.services.storage.delete(key);
  const { headers, inputsPath } = workerOf(app, run);
  const response = await app.service.get(`${inputsPath}/content?path=u.txt`, { headers });
  t.match(refusalOf(response), /^400 validation_failed/);
  expectSuccess(await workerOf(app, run).fail());
});

t.test('uploads are refused for what does not exist or is over, and store nothing then', async (t) => {
  const done = await runTask(app, org);
  expectSuccess(await workerOf(app, done).complete());
  const foreign = await makeTask(app, elsewhere);
  const before = await storedKeys(app, org);
  t.equal(refusalOf(await put(randomUUID(), 'a', 'x')), '404 task_not_found');
  t.equal(refusalOf(await put('T-99999', 'a', 'x')), '404 task_not_found');
  t.equal(refusalOf(await put(foreign.id, 'a', 'x')), '404 task_not_found');
  t.equal(
    refusalOf(await put('T-1', 'a', 'x', { ...org, organizationId: randomUUID() })),
    '404 organization_not_found',
  );
  t.equal(refusalOf(await put(done.taskId, 'a', 'x')), '409 state_conflict');
  t.match(refusalOf(await put('not-a-ref', 'a', 'x')), /^400 validation_failed/);
  const agent = (ref: string) => app.service.put(agentPath(org, `/tasks/${ref}/inputs/a`), 'x');
  t.equal(refusalOf(await agent(foreign.id)), '404 not_found');
  t.equal(refusalOf(await agent(done.taskId)), '409 state_conflict');
  const wrongType = { headers: { 'content-type': 'text/csv' } };
  const { id } = await makeTask(app, org);
  const path = ownerPath(org, `/tasks/${id}/inputs/a`);
  t.equal(refusalOf(await app.owner.put(path, 'x', wrongType)), '415 unsupported_media_type');
  t.same(await storedKeys(app, org), before);
  await app.owner.post(ownerPath(org, `/tasks/${id}/cancel`));
});

t.test('a task holds at most 200 uploads', async (t) => {
  const { id } = await makeTask(app, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  await app.database.owner.query(
    `insert into app.task_inputs (organization_id, task_id, path, storage_key, size, sha256, media_type)
     select $1, $2, 'f' || n, 'k' || n, 0, repeat('0', 64), 'text/plain' from generate_series(1, 200) n`,
    [org.organizationId, id],
  );
  const before = await storedKeys(app, org);
  t.equal(refusalOf(await put(id, 'one-more', 'x')), '409 state_conflict');
  t.same(await storedKeys(app, org), before, 'its bytes are not kept');
  t.equal((await put(id, 'f1', 'x')).status, 201, 'replacing one is fine');
});

t.test('in a suspended organization agents upload nothing, and owners do', async (t) => {
  const other = await createTestOrganization(sql);
  const { id } = await makeTask(app, other);
  await updateOrganization(sql.api, other, { status: 'suspended' });
  t.equal(refusalOf(await app.service.put(agentPath(other, `/tasks/${id}/inputs/a`), 'x')), '409 state_conflict');
  t.equal((await put(id, 'a', 'x', other)).status, 201);
});
