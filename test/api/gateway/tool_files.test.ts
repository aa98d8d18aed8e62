import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { type Provider, providers } from '../../../engine/providers/index.ts';
import { ProviderError } from '../../../engine/providers/outgoing/index.ts';
import type { ReadResult, ToolFile, ToolRuntime } from '../../../engine/providers/tool.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import { expectSuccess, type Fields, refusalOf, storedKeys } from '../../support/api_fixtures.ts';
import { sha256 } from '../../support/fixtures.ts';
import { type Declared, declare, type FileRecord, fileCalls, send } from '../../support/gateway_files.ts';
import { type Caller, CHARGES, openGateway, REFUND } from '../../support/gateway_world.ts';
import { issuePaths } from '../../support/http.ts';
import { startS3 } from '../../support/s3.ts';

const gateway = await openGateway(t);
const { app, sql } = gateway;
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** What the read brings, and how often it was asked. */
const read = { asked: 0, file: (): ReadResult['file'] => undefined };
/** What the write was given. */
let sent: Record<string, string> = {};

const digest = (bytes: Uint8Array) => declare(bytes).sha256;
const contentOf = async (file: ToolFile) => digest(await buffer(Readable.from(await file.open())));

/** Tools of the tests in place of those of Stripe: no provider of ours is known to have all kinds of files. */
function runtime(key: string): ToolRuntime {
  const parse: ToolRuntime['parse'] = (args) => ({ args });
  if (key === CHARGES) {
    return {
      effect: 'read',
      parse,
      async read() {
        read.asked += 1;
        const file = read.file();
        return { data: { charges: 2 }, ...(file ? { file } : {}) };
      },
    };
  }
  return {
    effect: 'write',
    parse,
    files: { picture: { required: true, maxBytes: 100, contentTypes: ['image/png', 'image/gif'] }, note: {} },
    summary: ({ files }) => `Send ${Object.entries(files).map(([argument, { name }]) => `${argument} ${name}`)}`,
    async execute({ files }) {
      for (const [argument, file] of Object.entries(files)) sent[argument] = await contentOf(file);
      return { sent: Object.keys(files).length };
    },
  };
}

const known = providers as Map<string, Provider>;
const stripe = known.get('stripe');
if (!stripe) throw new Error('there is no Stripe');
known.set('stripe', { ...stripe, runtime: (tool) => runtime(tool.key) });
t.teardown(() => known.set('stripe', stripe));

const write = (files: object, fields: object = {}) => ({ tool: REFUND, arguments: { amount: 1 }, files, ...fields });

/** Stores a file for an invocation; the id of it. */
async function stored(
  by: Caller,
  invocationId: string,
  bytes: Uint8Array | string,
  query: Record<string, string> = {},
) {
  return expectSuccess(await fileCalls(by, invocationId).put(bytes, query), 201).fileId;
}

t.test('a write sends the files of its invocation, and a person sees which', async (t) => {
  const by = await gateway.caller();
  const invocationId = randomUUID();
  const picture = await stored(by, invocationId, PNG, { name: 'lamp.png' });
  const note = await stored(by, invocationId, 'a note', { name: 'note.txt' });
  const body = write({ picture, note });
  const { action } = expectSuccess(await gateway.execute(by, body, invocationId));
  if (!action) throw new Error('no action');
  t.equal(action.summary, 'Send picture lamp.png,note note.txt');
  t.same(
    action.files.map(({ name, contentType, sizeBytes, sha256: found }) => [name, contentType, sizeBytes, found]),
    [
      ['note.txt', 'text/plain', 6, sha256('a note')],
      ['lamp.png', 'image/png', PNG.length, digest(PNG)],
    ],
  );
  t.equal(expectSuccess(await gateway.execute(by, body, invocationId)).action?.id, action.id, 'the same call again');
  const other = randomUUID();
  const again = write({ picture: await stored(by, other, PNG), note: await stored(by, other, 'a note') });
  t.equal(expectSuccess(await gateway.execute(by, again, other)).action?.id, action.id, 'an equal proposal');
  const third = randomUUID();
  const changed = write({ picture: await stored(by, third, PNG), note: await stored(by, third, 'another note') });
  t.not(expectSuccess(await gateway.execute(by, changed, third)).action?.id, action.id);

  sent = {};
  if (action.status === 'awaiting_approval') await gateway.approve(by, action.id);
  await gateway.runAction(by, action.id);
  t.match(await gateway.action(by, action.id), { status: 'succeeded', execution: { result: { sent: 2 } } });
  t.same(sent, { picture: digest(PNG), note: sha256('a note') });
});

t.test('a file that was changed behind our back is not sent', async (t) => {
  const by = await gateway.caller();
  const invocationId = randomUUID();
  const picture = await stored(by, invocationId, PNG);
  const { action } = expectSuccess(await gateway.execute(by, write({ picture }), invocationId));
  if (!action) throw new Error('no action');
  const [key = ''] = await storedKeys(app, by.org);
  await app.services.storage.put(key, Readable.from([Buffer.alloc(PNG.length)]));
  sent = {};
  if (action.status === 'awaiting_approval') await gateway.approve(by, action.id);
  await gateway.runAction(by, action.id);
  t.match(await gateway.action(by, action.id), { status: 'cancelled', reason: { code: 'file_changed' } });
  t.same(sent, {});
});

for (const [name, open] of [
  ['file', async () => gateway],
  [
    's3',
    async () => {
      const s3 = await startS3(t);
      return openGateway(t, { config: { storageUrl: s3.storageUrl('a'), aws: s3.settings } });
    },
  ],
] as const) {
  t.test(`${name}: the URL of an upload changes nothing of what an action sends`, async (t) => {
    const at = await open();
    const by = await at.caller();
    const file = fileCalls(by);
    const declared = declare(PNG, { name: 'lamp.png', contentType: 'image/png' });
    const upload = expectSuccess(await file.begin(declared));
    const other = Buffer.from(PNG);
    other.writeUInt8(other.readUInt8(60) ^ 1, 60);
    /** Other bytes of the same length and type: by the URL, and as in a store that compares nothing. */
    async function changeUpload(): Promise<void> {
      const { status } = await send(upload, other);
      t.ok(status === 400 || (name === 's3' && status === 200), `${status}`);
      const { rows } = await at.sql.owner.query('select upload_key from app.action_invocation_files where id = $1', [
        file.fileId,
      ]);
      await at.app.services.storage.put(rows[0].upload_key, Readable.from([other]));
    }
    t.equal((await send(upload, PNG)).status, 200);
    const record = { fileId: file.fileId, ...declared };
    t.same(expectSuccess(await file.complete(declared)), record);
    await changeUpload();
    const call = write({ picture: file.fileId });
    const { action } = expectSuccess(await at.execute(by, call, file.invocationId));
    if (!action) throw new Error('no action');
    await changeUpload();
    t.same(expectSuccess(await file.complete(declared)), record, 'what is completed stays');
    await at.approve(by, action.id);
    await changeUpload();
    sent = {};
    await at.runAction(by, action.id);
    t.match(await at.action(by, action.id), { status: 'succeeded', files: [{ sha256: digest(PNG) }] });
    t.same(sent, { picture: digest(PNG) });
    t.equal(digest(new Uint8Array(await (await file.get()).arrayBuffer())), digest(PNG));
  });
}

t.test('files are those that the tool takes', async (t) => {
  const by = await gateway.caller();
  const id = randomUUID();
  const picture = await stored(by, id, PNG);
  const note = await stored(by, id, 'a note');
  const large = await stored(by, id, Buffer.concat([PNG, Buffer.alloc(100)]));
  const cases = [
    [{}, ['files.picture']],
    [{ picture, other: note }, ['files.other']],
    [{ other: note }, ['files.other', 'files.picture']],
    [{ picture: note }, ['files.picture']],
    [{ picture: large }, ['files.picture']],
    [{ picture, constructor: note }, ['files.constructor']],
  ] as const;
  for (const [files, paths] of cases) {
    const reply = await gateway.execute(by, write(files), id);
    t.equal(reply.status, 400);
    t.same(issuePaths(reply), paths);
  }
  const reading = await gateway.execute(by, { tool: CHARGES, arguments: {}, files: { picture } }, id);
  t.same(issuePaths(reading), ['files.picture']);
  t.same(issuePaths(await gateway.execute(by, write({ picture: 'x' }), id)), ['files.picture']);
  expectSuccess(await gateway.execute(by, write({ picture }), id));
});

t.test('a file of another invocation, run or organization is not there, and one that is begun is none', async (t) => {
  const by = await gateway.caller();
  const id = randomUUID();
  const picture = await stored(by, id, PNG);
  const begun = fileCalls(by, id);
  expectSuccess(await begun.begin(declare(PNG, { name: 'a.png', contentType: 'image/png' })));
  t.equal(refusalOf(await gateway.execute(by, write({ picture: begun.fileId }), id)), '404 not_found');
  t.equal(refusalOf(await gateway.execute(by, write({ picture: randomUUID() }), id)), '404 not_found');
  t.equal(refusalOf(await gateway.execute(by, write({ picture }), randomUUID())), '404 not_found');
  const stranger = await gateway.caller();
  t.equal(refusalOf(await gateway.execute(stranger, write({ picture }), id)), '404 not_found');
  expectSuccess(await gateway.execute(by, write({ picture }), id));
});

type Brought = Declared & FileRecord;
const filesOf = (reply: Fields) => reply['files'] as Brought[];

t.test('what a read brings is stored, named, and the same for the same call', async (t) => {
  const by = await gateway.caller();
  const id = randomUUID();
  read.asked = 0;
  read.file = () => ({
    name: 'reports/2026\u202e.PDF\0',
    contentType: 'Application/PDF; charset=binary',
    body: Readable.from([Buffer.from('%PDF-'), Buffer.from('1.7')]),
  });
  const body = { tool: CHARGES, arguments: {} };
  const replies = await Promise.all(Array.from({ length: 5 }, () => gateway.execute(by, body, id)));
  const [first] = replies.map((reply) => expectSuccess(reply));
  t.match(first, { kind: 'result', data: { charges: 2 } });
  const [file] = filesOf(first ?? {});
  if (!file) throw new Error('no file');
  t.match(file, {
    name: 'reports 2026 .PDF',
    contentType: 'application/pdf',
    sizeBytes: 8,
    sha256: sha256('%PDF-1.7'),
  });
  for (const reply of replies) t.same(filesOf(reply.data), [file]);
  t.same(filesOf(expectSuccess(await gateway.execute(by, body, id))), [file]);
  t.equal(read.asked, 1);
  const got = await fileCalls(by, id, file.fileId).get();
  t.equal(await got.text(), '%PDF-1.7');
  t.equal((await fileCalls(by, randomUUID(), file.fileId).get()).status, 404, 'it belongs to its invocation');
  t.equal((await storedKeys(app, by.org)).length, 1);
});

t.test('the credential that a provider repeats in the name of a file, or as its type, is not there', async (t) => {
  const by = await gateway.caller();
  const id = randomUUID();
  const key = 'rk_test_1';
  read.file = () => ({ name: `a ${key}.pdf`, contentType: `text/${key}`, body: Readable.from([Buffer.from('x')]) });
  const reply = await gateway.execute(by, { tool: CHARGES, arguments: {} }, id);
  const [file] = filesOf(expectSuccess(reply));
  t.match(file, { name: `a ${HIDDEN}.pdf`, contentType: 'application/octet-stream' });
  t.notMatch(JSON.stringify(reply.data), key);
  const got = await fileCalls(by, id, file?.fileId).get();
  t.equal(await got.text(), 'x');
  t.notMatch(JSON.stringify([...got.headers]), key);
});

t.test('a file that breaks off, or is too large, leaves nothing', async (t) => {
  const by = await gateway.caller();
  async function* broken() {
    yield Buffer.from('half');
    throw new ProviderError('stripe', 'unavailable', 'The provider broke off.');
  }
  read.file = () => ({ name: 'a', contentType: 'text/plain', body: broken() });
  const id = randomUUID();
  const body = { tool: CHARGES, arguments: {} };
  t.equal(refusalOf(await gateway.execute(by, body, id)), '503 provider_unavailable unavailable');
  read.file = () => ({ name: '', contentType: 'nonsense', body: Readable.from([]) });
  const [file] = filesOf(expectSuccess(await gateway.execute(by, body, id)));
  t.match(file, { name: 'file', contentType: 'application/octet-stream', sizeBytes: 0 }, 'the next call reads anew');
  t.equal((await storedKeys(app, by.org)).length, 1);
});

t.test('a read whose lease was lost gives what counts, and its own file goes', async (t) => {
  const by = await gateway.caller();
  const id = randomUUID();
  const go = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  async function* slow() {
    begun.resolve();
    await go.promise;
    yield Buffer.from('late');
  }
  const bodies = [slow(), Readable.from([Buffer.from('in time')])];
  read.file = () => ({ name: 'a.txt', contentType: 'text/plain', body: bodies.shift() ?? Readable.from([]) });
  const body = { tool: CHARGES, arguments: {} };
  const late = gateway.execute(by, body, id);
  await begun.promise;
  // Its process was away for longer than its lease.
  await sql.owner.query(
    `update app.action_invocations set lease_expires_at = now() - interval '1 second' where invocation_id = $1`,
    [id],
  );
  const [counts] = filesOf(expectSuccess(await gateway.execute(by, body, id)));
  go.resolve();
  t.same(filesOf(expectSuccess(await late)), [counts]);
  t.equal(counts?.sha256, sha256('in time'));
  t.equal((await storedKeys(app, by.org)).length, 1);
});
