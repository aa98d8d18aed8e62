import { Readable } from 'node:stream';
import t from 'tap';
import { signTicket } from '../../../engine/gateway/upload_ticket.ts';
import { expectSuccess, refusalOf, storedKeys } from '../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { declare, fileCalls, send } from '../../support/gateway_files.ts';
import { openGateway } from '../../support/gateway_world.ts';
import { issuePaths } from '../../support/http.ts';

const gateway = await openGateway(t);
const { app, sql } = gateway;
const { integrations } = app.config;
const NOTE = declare('the note');

async function codeOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error: { code: string; issues?: { code: string }[] } };
  return [response.status, error.code, error.issues?.[0]?.code].filter((part) => part !== undefined).join(' ');
}

t.test('an upload is begun, sent, completed, and the same ever after', async (t) => {
  const at = await gateway.caller();
  const file = fileCalls(at);
  t.equal(refusalOf(await file.complete(NOTE)), '404 not_found', 'it was not begun');
  const begun = expectSuccess(await file.begin(NOTE));
  t.match(begun, { method: 'PUT', headers: { 'Content-Type': 'text/plain', 'Content-Length': '8' } });
  const seconds = (Date.parse(begun.expiresAt) - Date.now()) / 1_000;
  t.ok(seconds > 880 && seconds <= 900, `${seconds} s`);
  t.equal(refusalOf(await file.complete(NOTE)), '409 state_conflict not_uploaded');
  const sent = await send(begun, 'the note');
  t.equal(sent.status, 200);
  t.equal((await file.get()).status, 404, 'it is not completed');
  const record = { fileId: file.fileId, ...NOTE };
  t.same(expectSuccess(await file.complete(NOTE)), record);
  t.same(expectSuccess(await file.complete(NOTE)), record, 'the same again');
  t.equal(await (await file.get()).text(), 'the note');
  t.equal((await storedKeys(app, at.org)).length, 1, 'the upload itself is gone');

  t.equal((await send(begun, 'the note')).status, 200, 'the URL still takes what was declared');
  t.equal(await (await file.get()).text(), 'the note');
  t.same(expectSuccess(await file.complete(NOTE)), record);
  t.equal((await storedKeys(app, at.org)).length, 1);
  for (const change of [{ name: 'x' }, { contentType: 'text/csv' }, { sizeBytes: 7 }, { sha256: 'a'.repeat(64) }]) {
    t.equal(refusalOf(await file.begin({ ...NOTE, ...change })), '409 state_conflict differs');
    t.equal(refusalOf(await file.complete({ ...NOTE, ...change })), '409 state_conflict differs');
  }
});

t.test('the URL takes exactly what was declared', async (t) => {
  const at = await gateway.caller();
  const begun = expectSuccess(await fileCalls(at).begin(NOTE));
  const length = (bytes: string) => ({ 'Content-Length': String(bytes.length) });
  t.equal(await codeOf(await send(begun, 'the notes', length('the notes'))), '400 validation_failed size_differs');
  t.equal(await codeOf(await send(begun, 'a note', length('a note'))), '400 validation_failed size_differs');
  t.equal(await codeOf(await send(begun, 'the vote')), '400 validation_failed digest_differs');
  t.equal(
    await codeOf(await send(begun, 'the note', { 'Content-Type': 'text/html' })),
    '400 validation_failed type_differs',
  );
  const chunked = await fetch(begun.uploadUrl, {
    method: 'PUT',
    headers: { 'Content-Type': 'text/plain' },
    body: Readable.toWeb(Readable.from([Buffer.from('the note'), Buffer.from(' and more')])) as ReadableStream,
    duplex: 'half',
  } as RequestInit);
  t.equal(await codeOf(chunked), '400 validation_failed size_differs');
  t.same(await storedKeys(app, at.org), [], 'nothing of it stays');
});

t.test('an expired URL, one of another key, and one that was changed take nothing', async (t) => {
  const at = await gateway.caller();
  const begun = expectSuccess(await fileCalls(at).begin(NOTE));
  const [key] = integrations.encryptionKeys;
  if (!key) throw new Error('no key');
  const ticket = { key: 'organizations/a', size: 8, contentType: 'text/plain', sha256: NOTE.sha256 };
  const past = await signTicket([key], ticket, new Date(Date.now() - 1_000));
  const foreign = await signTicket([{ ...key, key: Buffer.alloc(32) }], ticket, new Date(Date.now() + 60_000));
  const unknown = await signTicket([{ ...key, id: 'k2' }], ticket, new Date(Date.now() + 60_000));
  const [head, claims, signature] = begun.uploadUrl.slice(begun.uploadUrl.lastIndexOf('/') + 1).split('.');
  const other = Buffer.from(String(claims), 'base64url')
    .toString()
    .replace(/uploads/, 'files');
  const changed = [head, Buffer.from(other).toString('base64url'), signature].join('.');
  for (const [name, text] of Object.entries({ past, foreign, unknown, changed, nonsense: 'x' })) {
    const uploadUrl = `${app.url}/internal/uploads/${text}`;
    t.equal(await codeOf(await send({ ...begun, uploadUrl }, 'the note')), '403 forbidden', name);
  }
  t.same(await storedKeys(app, at.org), []);
  const paths = app.logged.map((line) => JSON.stringify(line)).filter((line) => line.includes(String(signature)));
  t.same(paths, [], 'no log names a URL');
});

/** Puts bytes where an upload goes, past the endpoint: a store in the network compares less than we do. */
async function sneak(fileId: string, bytes: Buffer): Promise<void> {
  const { rows } = await sql.owner.query('select upload_key from app.action_invocation_files where id = $1', [fileId]);
  await app.services.storage.put(rows[0].upload_key, Readable.from([bytes]));
}

t.test('what was uploaded is compared again, and removed where it differs', async (t) => {
  const at = await gateway.caller();
  const pdf = Buffer.from('%PDF-1.7 not much of a document');
  const cases = [
    [NOTE, Buffer.from('the note and more'), ['sizeBytes'], 'size_differs'],
    [NOTE, Buffer.from('note'), ['sizeBytes'], 'size_differs'],
    [NOTE, Buffer.from('the vote'), ['sha256'], 'digest_differs'],
    [declare(pdf, { contentType: 'image/png' }), pdf, ['contentType'], 'content_differs'],
    [declare(pdf, { contentType: 'text/plain' }), pdf, ['contentType'], 'content_differs'],
    [declare('text', { contentType: 'application/pdf' }), Buffer.from('text'), ['contentType'], 'content_differs'],
  ] as const;
  for (const [declared, bytes, paths, code] of cases) {
    const file = fileCalls(at);
    expectSuccess(await file.begin(declared));
    await sneak(file.fileId, bytes);
    const reply = await file.complete(declared);
    t.equal(refusalOf(reply), `400 validation_failed ${code}`);
    t.same(issuePaths(reply), paths);
    t.equal(refusalOf(await file.complete(declared)), '409 state_conflict not_uploaded', 'it was removed');
    t.same(await storedKeys(app, at.org), []);
  }
  const token = declare(SERVICE_TOKEN);
  const file = fileCalls(at);
  expectSuccess(await file.begin(token));
  await sneak(file.fileId, Buffer.from(SERVICE_TOKEN));
  t.equal(refusalOf(await file.complete(token)), '400 validation_failed token_found');
  t.same(await storedKeys(app, at.org), []);
});

t.test('two that complete at once have one file', async (t) => {
  const at = await gateway.caller();
  const file = fileCalls(at);
  await send(expectSuccess(await file.begin(NOTE)), 'the note');
  const replies = await Promise.all(Array.from({ length: 3 }, () => file.complete(NOTE)));
  for (const reply of replies) t.same(expectSuccess(reply), { fileId: file.fileId, ...NOTE });
  t.equal((await storedKeys(app, at.org)).length, 1);
  t.equal(await (await file.get()).text(), 'the note');
});

t.test('a process that dies between copy and commit leaves an upload that can be completed', async (t) => {
  const at = await gateway.caller();
  const file = fileCalls(at);
  await send(expectSuccess(await file.begin(NOTE)), 'the note');
  // The copy is made, and its record is refused: a trigger stands for the crash.
  await sql.owner.query(`create function public.crash() returns trigger language plpgsql as
    $$ begin raise exception 'crash' using errcode = '57P01'; end $$`);
  await sql.owner.query(
    'create trigger crash before update of storage_key on app.action_invocation_files for each row execute function public.crash()',
  );
  const crashed = await file.complete(NOTE);
  t.ok(crashed.status >= 500, `${crashed.status}`);
  await sql.owner.query('drop trigger crash on app.action_invocation_files');
  await sql.owner.query('drop function public.crash()');
  t.equal((await file.get()).status, 404);
  t.same(expectSuccess(await file.complete(NOTE)), { fileId: file.fileId, ...NOTE });
  t.equal(await (await file.get()).text(), 'the note');
  const kept = (await storedKeys(app, at.org)).filter((key) => key.includes('/uploads/'));
  t.same(kept, []);
});

t.test('declarations are checked, and tokens in them are refused', async (t) => {
  const at = await gateway.caller();
  for (const [fields, path] of [
    [{ name: 'a/b' }, 'name'],
    [{ name: '' }, 'name'],
    [{ contentType: 'pdf' }, 'contentType'],
    [{ sizeBytes: 0 }, 'sizeBytes'],
    [{ sizeBytes: 1_073_741_825 }, 'sizeBytes'],
    [{ sha256: 'A'.repeat(64) }, 'sha256'],
    [{ other: 1 }, 'other'],
  ] as const) {
    t.same(issuePaths(await fileCalls(at).begin({ ...NOTE, ...fields })), [path]);
    t.same(issuePaths(await fileCalls(at).complete({ ...NOTE, ...fields })), [path]);
  }
  t.equal(refusalOf(await fileCalls(at).begin({ ...NOTE, name: SERVICE_TOKEN })), '400 validation_failed token_found');
});

t.test('without ENCRYPTION_KEYS no upload is begun, and small files are stored all the same', async (t) => {
  const plain = await startTestApp(t, {
    database: app.database,
    config: { integrations: { ...integrations, encryptionKeys: [] } },
  });
  const at = await gateway.caller();
  const there = { ...at, client: plain.owner.as(at.capability) };
  const reply = await fileCalls(there).begin(NOTE);
  t.equal(refusalOf(reply), '409 state_conflict deployment_setting');
  t.same(issuePaths(reply), ['ENCRYPTION_KEYS']);
  expectSuccess(await fileCalls(there).put('small'), 201);
});

t.test('another process that shares the storage takes the upload', async (t) => {
  const { database, config } = app;
  const other = await startTestApp(t, {
    database,
    config: { integrations, storageUrl: config.storageUrl },
  });
  const at = await gateway.caller();
  const file = fileCalls(at);
  const begun = expectSuccess(await file.begin(NOTE));
  const uploadUrl = begun.uploadUrl.replace(app.url, other.url);
  t.equal((await send({ ...begun, uploadUrl }, 'the note')).status, 200);
  t.same(expectSuccess(await file.complete(NOTE)), { fileId: file.fileId, ...NOTE });
});
