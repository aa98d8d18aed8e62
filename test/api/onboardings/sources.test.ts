import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import type { Onboarding } from '../../../api/onboardings/schema.ts';
import { expectSuccess, refusalOf, storedKeys } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { issuePaths } from '../../support/http.ts';
import { create, get, inState, onboardingPath, publish, putSource } from './support.ts';

const app = await startTestApp(t);
await publish(app);
const LIMIT = 52_428_800;
const pdf = Buffer.from('%PDF-1.7\n%âãÏÓ\n1 0 obj\n<<>>\nendobj\n', 'latin1');
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

t.test('a source is recorded as the backend found it, and goes with its bytes', async (t) => {
  const onboarding = await create(app);
  const id = randomUUID();
  const bytes = '# Grüße\r\n';
  const after = expectSuccess(await putSource(app, onboarding, bytes, { id, department: 'growth' }), 201);
  t.equal(after.generation, 2);
  t.match(after.sources, [
    {
      id,
      kind: 'markdown',
      status: 'ingested',
      fileName: 'plan.md',
      mediaType: 'text/markdown',
      sizeBytes: Buffer.byteLength(bytes),
      sha256: createHash('sha256').update(bytes).digest('hex'),
      department: 'growth',
    },
  ]);
  t.equal((await storedKeys(app, onboarding)).length, 1);
  t.same(expectSuccess(await putSource(app, onboarding, bytes, { id, department: 'growth' }), 201), after);
  t.equal(refusalOf(await putSource(app, onboarding, 'other', { id, department: 'growth' })), refused('in_use'));
  t.equal(refusalOf(await putSource(app, onboarding, bytes, { id })), refused('in_use'));
  t.equal((await storedKeys(app, onboarding)).length, 1, 'nothing is left of them');
  const path = onboardingPath(onboarding, `/sources/${id}`);
  t.match(expectSuccess(await app.owner.delete<Onboarding>(path)), { sources: [], generation: 3 });
  t.same(await storedKeys(app, onboarding), []);
  t.equal(refusalOf(await app.owner.delete(path)), '404 request_failed not_found');
  t.match(expectSuccess(await putSource(app, onboarding, 'other', { id }), 201).sources, [{ id, sizeBytes: 5 }]);
});

const refused = (reason: string) => `409 request_failed ${reason}`;

t.test('kind, name, type and bytes have to agree: 415 for what is no source, 400 for what disagrees', async (t) => {
  const onboarding = await create(app);
  const file = (fileName: string, mediaType: string) => ({ kind: 'file', fileName, mediaType });
  const markdown = (fileName: string, mediaType: string) => ({ kind: 'markdown', fileName, mediaType });
  const good = [
    [file('a.pdf', 'application/pdf'), pdf, 'application/pdf'],
    [file('a.PNG', 'image/png'), png, 'image/png'],
    [file('a.json', 'text/json'), '{}', 'application/json'],
    [file('a.md', 'text/markdown; charset=utf-8'), '# a', 'text/markdown'],
    [markdown('notes', 'text/plain'), '# a', 'text/markdown'],
    [markdown('plan v2.0', 'text/x-markdown'), '# a', 'text/markdown'],
    [markdown('empty.md', 'text/markdown'), '', 'text/markdown'],
    [file('office.csv', 'application/vnd.ms-excel'), 'a;b', 'text/csv'],
  ] as const;
  for (const [fields, bytes, kept] of good) {
    const { sources } = expectSuccess(await putSource(app, onboarding, bytes, fields), 201);
    t.equal(sources.at(-1)?.mediaType, kept, JSON.stringify(fields));
  }
  const before = await get(app, onboarding);
  const keys = await storedKeys(app, onboarding);
  const bad = [
    [file('a.exe', 'application/octet-stream'), 'x', 415],
    [file('a', 'text/plain'), 'x', 415],
    [file('a.html', 'text/html'), 'x', 415],
    [file('a.txt', 'application/zip'), 'x', 415],
    [file('a.txt', 'junk'), 'x', 415],
    [file('a.txt', 'text/plain; charset=latin1'), 'x', 415],
    [markdown('a.pdf', 'text/markdown'), '# a', 415],
    [markdown('a.md', 'application/pdf'), '# a', 415],
    [file('a.txt', 'text/markdown'), 'x', 400],
    [file('a.png', 'image/jpeg'), png, 400],
    [file('a.png', 'image/png'), 'x', 400],
    [file('a.txt', 'text/plain'), png, 400],
    [markdown('a.md', 'text/markdown'), Buffer.from('Gr\xfc\xdfe', 'latin1'), 400],
    [markdown('a.md', 'text/markdown'), Buffer.from('a\0b'), 400],
    [markdown('a.md', 'text/markdown'), Buffer.from('\ufeffa\ud800', 'utf16le'), 400],
    [file('a.png', 'image/png'), Buffer.from('\ufeffa', 'utf16le'), 400],
    [file('a.xls', 'application/vnd.ms-excel'), 'a;b', 415],
    [markdown('a.md', 'text/markdown'), pdf, 400],
    [{ kind: 'page' }, 'x', 400],
    [{ department: 'sales' }, 'x', 400],
    [{ fileName: '' }, 'x', 400],
    [{ fileName: '../a.md' }, 'x', 400],
    [{ fileName: 'a\nb.md' }, 'x', 400],
    [{ fileName: 'a\0.md' }, 'x', 400],
    [{ fileName: `${'x'.repeat(253)}.md` }, 'x', 400],
    [{ mediaType: '' }, 'x', 400],
    [{ extra: '1' }, 'x', 400],
    [{ id: 'not-a-uuid' }, 'x', 400],
  ] as const;
  for (const [fields, bytes, status] of bad) {
    const reply = await putSource(app, onboarding, bytes, fields);
    t.equal(`${reply.status} ${reply.code}`, `${status} request_failed`, JSON.stringify(fields));
    if (status === 400) t.equal(issuePaths(reply).length, 1, JSON.stringify(fields));
  }
  for (const missing of ['kind', 'fileName', 'mediaType']) {
    t.same(issuePaths(await putSource(app, onboarding, 'x', { [missing]: undefined })), [missing]);
  }
  const typed = await app.owner.fetch(onboardingPath(onboarding, `/sources/${randomUUID()}?${query()}`), {
    method: 'PUT',
    headers: { 'content-type': 'text/markdown' },
    body: 'x',
  });
  t.match(await typed.json(), { statusCode: 415, error: { code: 'request_failed' } });
  const zipped = await app.owner.fetch(onboardingPath(onboarding, `/sources/${randomUUID()}?${query()}`), {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream', 'content-encoding': 'gzip' },
    body: gzipSync('x'),
  });
  t.match(await zipped.json(), { statusCode: 415, message: /Content-Encoding/ });
  t.same(await get(app, onboarding), before);
  t.same(await storedKeys(app, onboarding), keys, 'nothing is left of them');
});

const query = () => new URLSearchParams({ kind: 'file', fileName: 'a.txt', mediaType: 'text/plain' });

/** An upload whose length its headers do not tell. */
function upload(onboarding: Onboarding, headers: Record<string, string> = {}): ClientRequest {
  const path = onboardingPath(onboarding, `/sources/${randomUUID()}?${query()}`);
  return request(new URL(path, app.url), {
    method: 'PUT',
    agent: false,
    headers: { 'content-type': 'application/octet-stream', ...headers },
  });
}

async function outcomeOf(sent: ClientRequest) {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const body = JSON.parse((await buffer(response)).toString('utf8')) as { error?: { code: string } };
  return { status: response.statusCode, code: body.error?.code };
}

t.test('UTF-16 with a mark is stored as UTF-8, and other text says which encoding it seems to have', async (t) => {
  const onboarding = await create(app);
  const csv = { kind: 'file', fileName: 'umsatz.csv', mediaType: 'text/csv' };
  const text = 'Straße;Größe\r\nKölner Straße;3\r\n';
  const { sources } = expectSuccess(
    await putSource(app, onboarding, Buffer.from(`\ufeff${text}`, 'utf16le'), csv),
    201,
  );
  const [source] = sources;
  t.match(source, { sizeBytes: Buffer.byteLength(text), sha256: createHash('sha256').update(text).digest('hex') });
  const repeated = await putSource(app, onboarding, Buffer.from(text), { ...csv, id: source?.id ?? '' });
  t.equal(repeated.status, 201, 'the same text as UTF-8 is the same source');
  const refused = await putSource(app, onboarding, Buffer.from(text, 'latin1'), csv);
  t.equal(refused.status, 400);
  t.match(refused.body, { error: { issues: [{ path: 'body', message: /^is not UTF-8 text; it seems to be / }] } });
  const unmarked = await putSource(app, onboarding, Buffer.from(text, 'utf16le'), csv);
  t.match(unmarked.body, { error: { issues: [{ message: 'is not UTF-8 text; it seems to be UTF-16LE' }] } });
});

t.test('50 MB are taken, and not a byte more, whatever the client declares', async (t) => {
  const onboarding = await create(app);
  const declared = upload(onboarding, { 'content-length': String(LIMIT + 1) });
  declared.on('error', () => {});
  declared.flushHeaders();
  t.same(await outcomeOf(declared), { status: 413, code: 'request_failed' });
  declared.destroy();

  const block = Buffer.alloc(65_536, 97);
  const send = (bytes: number) =>
    Readable.from(
      (function* () {
        for (let sent = 0; sent < bytes; sent += block.length)
          yield block.subarray(0, Math.min(block.length, bytes - sent));
      })(),
    );
  const over = upload(onboarding);
  over.on('error', () => {});
  send(LIMIT + 1).pipe(over);
  t.same(await outcomeOf(over), { status: 413, code: 'request_failed' });
  t.same(await storedKeys(app, onboarding), []);
  t.same((await get(app, onboarding)).sources, []);

  const exact = upload(onboarding);
  send(LIMIT).pipe(exact);
  t.match(await outcomeOf(exact), { status: 201 });
  t.match((await get(app, onboarding)).sources, [{ sizeBytes: LIMIT }]);
});

t.test('a body without an end is refused at the limit, and one that is cut leaves nothing', async (t) => {
  const onboarding = await create(app);
  const block = Buffer.alloc(1_048_576, 97);
  const endless = upload(onboarding);
  endless.on('error', () => {});
  const feed = Readable.from(
    (function* () {
      for (;;) yield block;
    })(),
  );
  feed.on('error', () => {});
  feed.pipe(endless);
  t.same(await outcomeOf(endless), { status: 413, code: 'request_failed' });
  feed.destroy();
  endless.destroy();

  const cut = upload(onboarding);
  cut.on('error', () => {});
  cut.write(block);
  await once(cut, 'drain').catch(() => {});
  cut.destroy();
  // An upload after it has been taken whole: the one that was cut is over by then, or would not count either.
  expectSuccess(await putSource(app, onboarding, 'x'), 201);
  t.equal((await storedKeys(app, onboarding)).length, 1);
  t.equal((await get(app, onboarding)).sources.length, 1);
});

t.test('nobody’s bytes are taken for an onboarding that takes none', async (t) => {
  for (const state of ['researching', 'completed'] as const) {
    const onboarding = await inState(app, state);
    const waiting = upload(onboarding, { 'content-length': '100', expect: '100-continue' });
    waiting.on('error', () => {});
    let asked = false;
    waiting.on('continue', () => {
      asked = true;
    });
    waiting.flushHeaders();
    t.same(await outcomeOf(waiting), { status: 409, code: 'request_failed' }, state);
    t.notOk(asked);
    waiting.destroy();
  }
});

t.test('two uploads of one id: one content wins', async (t) => {
  const onboarding = await create(app);
  const id = randomUUID();
  const replies = await Promise.all(['a', 'b', 'a', 'b'].map((bytes) => putSource(app, onboarding, bytes, { id })));
  t.same(replies.map((reply) => reply.status).sort(), [201, 201, 409, 409]);
  t.equal((await storedKeys(app, onboarding)).length, 1);
  t.equal((await get(app, onboarding)).sources.length, 1);
});

t.test('an onboarding holds 100 sources', async (t) => {
  const onboarding = await create(app);
  await app.database.owner.query(
    `insert into app.context_sources
       (organization_id, origin, status, kind, file_name, media_type, size_bytes, sha256, storage_key)
     select $1, 'onboarding', 'ingested', 'markdown', 'a.md', 'text/markdown', 0, repeat('0', 64), 'k' || n
     from generate_series(1, 100) n`,
    [onboarding.organizationId],
  );
  t.equal(refusalOf(await putSource(app, onboarding, 'x')), '409 request_failed');
  t.same(await storedKeys(app, onboarding), []);
});

t.test('a source of another organization is not there', async (t) => {
  const onboarding = await create(app);
  const other = await create(app);
  const id = randomUUID();
  expectSuccess(await putSource(app, onboarding, 'x', { id }), 201);
  const foreign = await app.owner.delete(onboardingPath(other, `/sources/${id}`));
  t.equal(refusalOf(foreign), '404 request_failed not_found');
  expectSuccess(await putSource(app, other, 'y', { id }), 201);
  t.equal((await get(app, onboarding)).sources[0]?.sizeBytes, 1);
});
