import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import {
  expectSuccess,
  type Fields,
  ownerPath,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../../support/api_fixtures.ts';
import { startTestApp, type TestApp } from '../../../support/app.ts';
import { entry, publishDocuments, spoil, storeSource } from '../../../support/context_files.ts';
import { createTestOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import { startS3 } from '../../../support/s3.ts';

const s3 = await startS3(t);
const drivers: Readonly<Record<string, TestApp>> = {
  file: await startTestApp(t),
  s3: await startTestApp(t, { config: { storageUrl: s3.storageUrl(), aws: s3.settings } }),
};

/** A body that is read until it ends, well or not. */
async function download(app: TestApp, where: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(app.url);
  const sent = request({ hostname, port, path: where, headers });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  let complete = true;
  try {
    for await (const chunk of response) chunks.push(chunk);
  } catch {
    complete = false;
  }
  return { status: response.statusCode, complete: complete && response.complete, body: Buffer.concat(chunks) };
}

const DOCUMENTS = {
  'changed.json': { entries: [entry('a', { value: 'before' })] },
  'cut.json': { entries: [entry('b', { value: 'before' })] },
  'gone.json': { entries: [entry('c', { value: 'before' })] },
  'well.json': { entries: [entry('d', { value: 'before' })] },
};

/** Documents of which one was changed (to another good one of the same length), one cut short and one removed. */
async function damaged(app: TestApp, org: TestOrganization) {
  const { storage } = app.services;
  const keys = await publishDocuments(sqlOf(app), storage, org, DOCUMENTS);
  const other = JSON.stringify({
    entries: [{ evidence: [], key: 'a', notes: null, status: null, steps: [], title: null, value: 'after!' }],
  });
  await spoil(storage, keys['changed.json'] ?? '', other);
  await spoil(storage, keys['cut.json'] ?? '', other.slice(0, 40));
  await storage.delete(keys['gone.json'] ?? '');
  return keys;
}

for (const [driver, app] of Object.entries(drivers)) {
  const { storage } = app.services;
  const sql = sqlOf(app);

  t.test(`${driver}: a damaged document is reported for itself and never served`, async (test) => {
    const org = await createTestOrganization(sql);
    await damaged(app, org);
    const summary = expectSuccess(await app.owner.get<{ documents: Fields[] }>(ownerPath(org, '/context/summary')));
    test.same(
      summary.documents.map((document) => [document['path'], document['entries'], document['issue']]),
      [
        ['changed.json', [], 'The document was changed after it was stored.'],
        ['cut.json', [], 'The document was changed after it was stored.'],
        ['gone.json', [], 'The document is no longer stored.'],
        ['well.json', DOCUMENTS['well.json'].entries, undefined],
      ],
    );
    const files = expectSuccess(
      await app.owner.get<{ items: Fields[]; issues: Fields[] }>(ownerPath(org, '/context/files')),
    );
    test.equal(files.items.length, 4);
    test.same(
      files.issues.map((issue) => [issue['path'], issue['code']]),
      [
        ['cut.json', 'bytes_changed'],
        ['gone.json', 'bytes_missing'],
      ],
    );
    const content = (name: string) => ownerPath(org, `/context/files/content?path=${name}`);
    for (const headers of [{}, { range: 'bytes=0-3' }] as Record<string, string>[]) {
      for (const [name, expected] of [
        ['changed.json', '409 state_conflict'],
        ['cut.json', '409 state_conflict'],
        ['gone.json', '404 not_found'],
      ] as const) {
        test.equal(refusalOf(await app.owner.get(content(name), { headers })), expected, `${name} ${headers['range']}`);
      }
    }
    test.match(await download(app, content('well.json')), { status: 200, complete: true });
    const head = await app.owner.fetch(content('changed.json'), { method: 'HEAD' });
    test.equal(head.status, 409);
  });

  t.test(`${driver}: a damaged source is reported for itself and never served`, async (test) => {
    const org = await createTestOrganization(sql);
    const large = randomBytes(5_000_000);
    const small = await storeSource(sql, storage, org, 'small', { fileName: 'small.txt' });
    const big = await storeSource(sql, storage, org, large, { fileName: 'big.bin' });
    const gone = await storeSource(sql, storage, org, 'gone', { fileName: 'gone.txt' });
    const well = await storeSource(sql, storage, org, large, { fileName: 'well.bin' });
    const changed = Buffer.from(large);
    changed[4_999_999] = (changed[4_999_999] ?? 0) ^ 1;
    await spoil(storage, small.storage_key, 'smell');
    await spoil(storage, big.storage_key, changed);
    await storage.delete(gone.storage_key);
    const list = expectSuccess(
      await app.owner.get<{ items: Fields[]; issues: Fields[] }>(ownerPath(org, '/context/sources')),
    );
    test.equal(list.items.length, 4);
    test.match(list.issues, [{ sourceId: gone.id, code: 'bytes_missing' }]);
    const content = (id: string) => ownerPath(org, `/context/sources/${id}/content`);
    test.equal(refusalOf(await app.owner.get(content(small.id))), '409 state_conflict');
    test.equal(refusalOf(await app.owner.get(content(gone.id))), '404 not_found');
    const cut = await download(app, content(big.id));
    test.equal(cut.complete, false, 'the stream is cut rather than ended well');
    test.ok(cut.body.length < large.length, 'and the last bytes never come');
    const range = { range: 'bytes=10-19' };
    test.equal(refusalOf(await app.owner.get(content(big.id), { headers: range })), '409 state_conflict');
    const whole = await download(app, content(well.id));
    test.ok(whole.complete && whole.body.equals(large));
    const part = await download(app, content(well.id), range);
    test.ok(part.status === 206 && part.body.equals(large.subarray(10, 20)));
  });

  t.test(`${driver}: a run is never given a document that was changed`, async (test) => {
    const org = await createTestOrganization(sql);
    await damaged(app, org);
    const worker = workerOf(app, await runTask(app, org));
    const { files } = expectSuccess(await worker.inputs());
    test.equal(files.length, 4);
    const well = await worker.input('context/organization/well.json');
    test.equal(well.status, 200);
    await test.rejects(worker.input('context/organization/changed.json').then((response) => response.text()));
    test.equal((await worker.input('context/organization/gone.json')).status, 400, 'workers know no 404');
  });
}

t.test('a symbolic link in the storage folder is never followed', async (test: Test) => {
  const app = drivers['file'] as TestApp;
  const sql = sqlOf(app);
  const { storage } = app.services;
  const org = await createTestOrganization(sql);
  const root = fileURLToPath(app.config.storageUrl);
  const keys = await publishDocuments(sql, storage, org, DOCUMENTS);
  const source = await storeSource(sql, storage, org, 'secret!', { fileName: 'plan.txt' });
  const outside = path.join(root, '..', 'outside');
  await mkdir(outside, { recursive: true });
  const file = path.join(root, keys['changed.json'] ?? '');
  await rename(file, path.join(outside, 'document'));
  await symlink(path.join(outside, 'document'), file);
  const sources = path.dirname(path.join(root, source.storage_key));
  await rename(sources, path.join(outside, 'sources'));
  await symlink(path.join(outside, 'sources'), sources);
  await truncate(path.join(root, keys['cut.json'] ?? ''), 3);
  await writeFile(path.join(root, keys['gone.json'] ?? ''), '');

  const summary = expectSuccess(await app.owner.get<{ documents: Fields[] }>(ownerPath(org, '/context/summary')));
  test.same(
    summary.documents.map((document) => document['issue']),
    [
      'The document is no longer stored.',
      'The document was changed after it was stored.',
      'The document was changed after it was stored.',
      undefined,
    ],
  );
  const content = ownerPath(org, '/context/files/content?path=changed.json');
  test.equal(refusalOf(await app.owner.get(content)), '404 not_found');
  const kept = ownerPath(org, `/context/sources/${source.id}/content`);
  test.equal(refusalOf(await app.owner.get(kept)), '404 not_found');
  const { issues } = expectSuccess(await app.owner.get<{ issues: Fields[] }>(ownerPath(org, '/context/sources')));
  test.match(issues, [{ sourceId: source.id, code: 'bytes_missing' }]);
});
