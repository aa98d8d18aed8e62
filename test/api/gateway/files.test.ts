import { randomUUID } from 'node:crypto';
import t from 'tap';
import { expectSuccess, rawRequest, refusalOf, storedKeys } from '../../support/api_fixtures.ts';
import { SERVICE_TOKEN } from '../../support/app.ts';
import { endLease, runNew, sha256 } from '../../support/fixtures.ts';
import { declare, fileCalls } from '../../support/gateway_files.ts';
import { openGateway } from '../../support/gateway_world.ts';
import { issuePaths } from '../../support/http.ts';

const gateway = await openGateway(t);
const { app, sql } = gateway;
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

t.test('a file that is put is stored with what its bytes are, and comes back', async (t) => {
  const at = await gateway.caller();
  const file = fileCalls(at);
  const put = await file.put('the offer', { name: 'offer.md' });
  const stored = {
    fileId: file.fileId,
    name: 'offer.md',
    contentType: 'text/markdown',
    sizeBytes: 9,
    sha256: sha256('the offer'),
  };
  t.same(expectSuccess(put, 201), stored);
  t.same(expectSuccess(await file.put('the offer', { name: 'offer.md' }), 201), stored, 'the same again');
  t.equal(refusalOf(await file.put('the order', { name: 'offer.md' })), '409 state_conflict differs');
  t.equal(refusalOf(await file.put('the offer', { name: 'other.md' })), '409 state_conflict differs');
  const got = await file.get();
  t.equal(got.status, 200);
  t.equal(await got.text(), 'the offer');
  t.match(Object.fromEntries(got.headers), {
    'content-type': 'application/octet-stream',
    'x-media-type': 'text/markdown',
    'content-disposition': 'attachment; filename=offer.md',
    'x-content-type-options': 'nosniff',
  });
  const part = await file.get({ range: 'bytes=4-' });
  t.equal(part.status, 206);
  t.equal(await part.text(), 'offer');
  t.equal((await file.get({ range: 'bytes=90-' })).status, 416);
  t.equal((await file.get({ 'if-none-match': `"${stored.sha256}"` })).status, 304);
  t.equal((await storedKeys(app, at.org)).length, 1, 'no other bytes stay');
});

t.test('a file needs no name, and has the type of its bytes', async (t) => {
  const at = await gateway.caller();
  t.match(expectSuccess(await fileCalls(at).put(PNG), 201), { name: 'file', contentType: 'image/png' });
  t.match(expectSuccess(await fileCalls(at).put('any'), 201), { contentType: 'application/octet-stream' });
  const named = await fileCalls(at).put(PNG, { name: 'lamp.png', contentType: 'IMAGE/PNG' });
  t.match(expectSuccess(named, 201), { name: 'lamp.png', contentType: 'image/png' });
  const wrong = await fileCalls(at).put('no picture', { contentType: 'image/png' });
  t.equal(refusalOf(wrong), '400 validation_failed content_differs');
  for (const [query, path] of [
    [{ contentType: 'image' }, 'contentType'],
    [{ contentType: 'text/plain; charset=utf-8' }, 'contentType'],
    [{ name: 'a/b' }, 'name'],
    [{ name: 'a\u202eb' }, 'name'],
    [{ other: 'x' }, 'other'],
  ] as const) {
    t.same(issuePaths(await fileCalls(at).put('x', query)), [path]);
  }
  t.same(issuePaths(await fileCalls(at).put('')), ['body']);
});

t.test('more than 32 MiB, and another type of body, are refused', async (t) => {
  const at = await gateway.caller();
  const { path } = fileCalls(at);
  const large = await fileCalls(at).put(Buffer.alloc(32 * 1024 * 1024 + 1));
  t.equal(refusalOf(large), '413 payload_too_large');
  t.equal(refusalOf(await at.client.put(path, { a: 1 })), '415 unsupported_media_type');
  t.same(await storedKeys(app, at.org), []);
});

t.test('a file holds no token of the service', async (t) => {
  const at = await gateway.caller();
  t.equal(refusalOf(await fileCalls(at).put(`x ${SERVICE_TOKEN} x`)), '400 validation_failed token_found');
  t.equal(refusalOf(await fileCalls(at).put('x', { name: SERVICE_TOKEN })), '400 validation_failed token_found');
  t.same(await storedKeys(app, at.org), []);
});

t.test('a file is that of its invocation, execution, integration and organization', async (t) => {
  const at = await gateway.caller();
  const own = fileCalls(at);
  await own.put('mine');
  const begun = fileCalls(at);
  const declared = declare('mine');
  expectSuccess(await begun.begin(declared));
  const next = await gateway.resolve(at.org, at.run);
  t.equal((await fileCalls(next, own.invocationId, own.fileId).get()).status, 200, 'another capability goes on');
  const [neighbour, stranger] = [await gateway.resolve(at.org, await runNew(sql, at.org)), await gateway.caller()];
  const foreign = {
    invocation: fileCalls(next, randomUUID(), own.fileId),
    run: fileCalls(neighbour, own.invocationId, own.fileId),
    organization: fileCalls(stranger, own.invocationId, own.fileId),
  };
  for (const [name, file] of Object.entries(foreign)) {
    t.equal((await file.get()).status, 404, name);
    t.equal(refusalOf(await file.complete(declared)), '404 not_found', name);
  }
  const elsewhere = fileCalls({ ...stranger, integrationId: at.integrationId }, own.invocationId, own.fileId);
  t.equal((await elsewhere.get()).status, 401, 'a capability of another integration');
  t.equal(refusalOf(await elsewhere.put('x')), '401 agent_unauthorized');
  t.equal((await fileCalls(next, begun.invocationId, begun.fileId).get()).status, 404, 'it is begun alone');
});

t.test('nothing is taken and nothing is given once the execution is over', async (t) => {
  const at = await gateway.caller();
  const file = fileCalls(at);
  await file.put('mine');
  await endLease(sql, at.run);
  t.equal((await file.get()).status, 401);
  t.equal(refusalOf(await file.put('mine')), '401 agent_unauthorized');
  t.equal(refusalOf(await file.begin(declare('x'))), '401 agent_unauthorized');
  t.equal(refusalOf(await file.complete(declare('x'))), '401 agent_unauthorized');
  const nobody = await rawRequest(app.url, { path: file.path });
  t.equal(nobody.status, 401);
});

t.test('of two that put one file at once both have it, and one copy stays', async (t) => {
  const at = await gateway.caller();
  const file = fileCalls(at);
  const replies = await Promise.all(Array.from({ length: 3 }, () => file.put('the same', { name: 'a.txt' })));
  const [first] = replies;
  for (const reply of replies) t.same(expectSuccess(reply, 201), first?.data);
  t.equal((await storedKeys(app, at.org)).length, 1);
});
