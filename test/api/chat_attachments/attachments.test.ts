import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import type { ChatAttachment } from '../../../api/chat_attachments/schema.ts';
import type { Chat } from '../../../api/chats/schema.ts';
import { expectSuccess, ownerPath, refusalOf, storedKeys } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { issuePaths } from '../../support/http.ts';
import { replyWith } from '../chat_turns/turns.ts';
import { chatPath, createChat, createChatOrganization, type Posted, patchChat } from '../chats/support.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);
const LIMIT = 52_428_800;

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const jpeg = Buffer.concat([Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'), Buffer.alloc(64)]);
const webp = Buffer.concat([
  Buffer.from('RIFF'),
  Buffer.from('24000000', 'hex'),
  Buffer.from('WEBPVP8 '),
  Buffer.alloc(32),
]);
const pdf = Buffer.from('%PDF-1.7\n%âãÏÓ\n1 0 obj\n<<>>\nendobj\n', 'latin1');

type Put = Readonly<{ id?: string; fileName?: string; mediaType?: string }>;
function put(chat: Chat, bytes: string | Uint8Array, { id = randomUUID(), ...given }: Put = {}) {
  const query = { fileName: 'notes.txt', mediaType: 'text/plain', ...given };
  return app.owner.put<ChatAttachment>(chatPath(chat, `/attachments/${id}`), bytes, { query });
}
const content = (chat: Chat, id: string, init?: RequestInit) =>
  app.owner.fetch(chatPath(chat, `/attachments/${id}/content`), init);

t.test('an attachment is recorded as the backend found it, and comes back byte by byte', async (t) => {
  const chat = await createChat(app, org);
  const id = randomUUID();
  const bytes = 'Grüße\r\n';
  const attachment = expectSuccess(await put(chat, bytes, { id, fileName: 'Notes.TXT' }), 201);
  t.match(attachment, {
    version: 1,
    id,
    organizationId: org.organizationId,
    chatId: chat.id,
    fileName: 'Notes.TXT',
    mediaType: 'text/plain',
    sizeBytes: Buffer.byteLength(bytes),
    sha256: sha256(bytes),
    uri: `org://${org.organizationId}/chats/${chat.id}/attachments/${id}`,
  });
  t.same(Object.keys(attachment).length, 10);
  const response = await content(chat, id);
  t.equal(response.status, 200);
  t.equal(await response.text(), bytes);
  t.equal(response.headers.get('content-type'), 'application/octet-stream');
  t.equal(response.headers.get('x-media-type'), 'text/plain');
  t.equal(response.headers.get('content-length'), String(attachment.sizeBytes));
  t.equal(response.headers.get('etag'), `"${attachment.sha256}"`);
  t.equal(response.headers.get('x-content-type-options'), 'nosniff');
  t.equal(response.headers.get('content-disposition'), 'attachment; filename=Notes.TXT');
});

t.test('ranges, HEAD, entity tags and If-Range', async (t) => {
  const chat = await createChat(app, org);
  const id = randomUUID();
  const { sha256: digest } = expectSuccess(await put(chat, '0123456789', { id }), 201);
  const head = await content(chat, id, { method: 'HEAD' });
  t.same([head.status, head.headers.get('content-length'), await head.text()], [200, '10', '']);
  const part = await content(chat, id, { headers: { range: 'bytes=2-4' } });
  t.same([part.status, part.headers.get('content-range'), await part.text()], [206, 'bytes 2-4/10', '234']);
  const beyond = await app.owner.get(chatPath(chat, `/attachments/${id}/content`), { headers: { range: 'bytes=10-' } });
  t.same([refusalOf(beyond), beyond.headers.get('content-range')], ['416 range_not_satisfiable', 'bytes */10']);
  t.equal((await content(chat, id, { headers: { 'if-none-match': `"${digest}"` } })).status, 304);
  const ranged = (tag: string) => content(chat, id, { headers: { range: 'bytes=0-0', 'if-range': tag } });
  t.equal((await ranged(`"${digest}"`)).status, 206);
  t.equal((await ranged('"other"')).status, 200);
});

t.test('names hold any character, and reach the download whole', async (t) => {
  const chat = await createChat(app, org);
  const names = ['Übersicht "Q1".md', "l'été — 日本語 🌱.md", '“a”; filename=x.md', 'a%20b\\c.md', ' .md'];
  for (const fileName of names) {
    const id = randomUUID();
    const attachment = expectSuccess(await put(chat, '# x', { id, fileName, mediaType: 'text/markdown' }), 201);
    t.equal(attachment.fileName, fileName);
    const header = (await content(chat, id)).headers.get('content-disposition') ?? '';
    const encoded = /filename\*=UTF-8''([^;]+)$/.exec(header)?.[1];
    const plain = /^attachment; filename="((?:[^"\\]|\\.)*)"$/.exec(header)?.[1]?.replace(/\\(.)/g, '$1');
    t.equal(encoded === undefined ? plain : decodeURIComponent(encoded), fileName, header);
  }
  for (const fileName of ['a/b.md', '../x.md', 'a\nb.md', 'a\0.md', `${'x'.repeat(253)}.md`, '']) {
    t.same(
      issuePaths(await put(chat, 'x', { fileName, mediaType: 'text/markdown' })),
      ['fileName'],
      JSON.stringify(fileName),
    );
  }
});

t.test('name, type and bytes have to agree; the type that is kept is canonical', async (t) => {
  const chat = await createChat(app, org);
  const text = 'a: b\n';
  const good: readonly (readonly [string, string, string | Uint8Array, string])[] = [
    ['a.md', 'text/markdown', text, 'text/markdown'],
    ['a.markdown', 'text/x-markdown', text, 'text/markdown'],
    ['a.txt', 'TEXT/PLAIN; charset=UTF-8', text, 'text/plain'],
    ['a.csv', 'text/csv', text, 'text/csv'],
    ['office.CSV', 'application/vnd.ms-excel', text, 'text/csv'],
    ['a.json', 'application/json', '{}', 'application/json'],
    ['a.yaml', 'text/yaml', text, 'application/yaml'],
    ['a.yml', 'application/x-yaml', text, 'application/yaml'],
    ['a.toml', 'application/toml', 'a = 1', 'application/toml'],
    ['a.pdf', 'application/pdf', pdf, 'application/pdf'],
    ['a.png', 'image/png', png, 'image/png'],
    ['a.jpg', 'image/jpeg', jpeg, 'image/jpeg'],
    ['a.JPEG', 'image/jpg', jpeg, 'image/jpeg'],
    ['a.webp', 'image/webp', webp, 'image/webp'],
    ['a.gif', 'image/gif', gif, 'image/gif'],
    ['empty.txt', 'text/plain', '', 'text/plain'],
  ];
  for (const [fileName, mediaType, bytes, kept] of good) {
    t.equal(expectSuccess(await put(chat, bytes, { fileName, mediaType }), 201).mediaType, kept, fileName);
  }
  const bad: readonly (readonly [string, string, string | Uint8Array, string])[] = [
    ['a.exe', 'application/octet-stream', text, 'fileName'],
    ['a.html', 'text/html', text, 'fileName'],
    ['a.svg', 'image/svg+xml', text, 'fileName'],
    ['txt', 'text/plain', text, 'fileName'],
    ['a.constructor', 'text/plain', text, 'fileName'],
    ['a.txt', 'text/markdown', text, 'mediaType'],
    ['a.txt', 'text/plain; charset=latin1', text, 'mediaType'],
    ['a.txt', 'application/vnd.ms-excel', text, 'mediaType'],
    ['a.png', 'image/jpeg', png, 'mediaType'],
    ['a.png', 'application/octet-stream', png, 'mediaType'],
    ['a.png', 'junk', png, 'mediaType'],
    ['a.png', 'image/png', jpeg, 'body'],
    ['a.png', 'image/png', text, 'body'],
    ['a.png', 'image/png', '', 'body'],
    ['a.pdf', 'application/pdf', text, 'body'],
    ['a.txt', 'text/plain', png, 'body'],
    ['a.txt', 'text/plain', Buffer.from('Gr\xfc\xdfe', 'latin1'), 'body'],
    ['a.json', 'application/json', Buffer.from('{}', 'utf16le'), 'body'],
    ['a.csv', 'text/csv', Buffer.from([0xe2, 0x82]), 'body'],
  ];
  const before = await storedKeys(app, org);
  for (const [fileName, mediaType, bytes, path] of bad) {
    const reply = await put(chat, bytes, { fileName, mediaType });
    t.same([reply.status, ...issuePaths(reply)], [400, path], `${fileName} ${mediaType}`);
  }
  t.same(await storedKeys(app, org), before, 'nothing is left of them');
});

t.test('the same bytes again are the same attachment, others are refused; ids are of one chat', async (t) => {
  const chat = await createChat(app, org);
  const id = randomUUID();
  const first = expectSuccess(await put(chat, 'one', { id }), 201);
  const before = await storedKeys(app, org);
  t.same(expectSuccess(await put(chat, 'one', { id, fileName: 'renamed.txt' }), 201), first);
  t.equal(refusalOf(await put(chat, 'two', { id })), '409 attachment_not_allowed');
  t.same(await storedKeys(app, org), before);
  t.equal(await (await content(chat, id)).text(), 'one');
  const neighbour = await createChat(app, org);
  t.equal(
    refusalOf(await app.owner.get(chatPath(neighbour, `/attachments/${id}/content`))),
    '404 attachment_not_found',
  );
  expectSuccess(await put(neighbour, 'two', { id }), 201);
  const race = randomUUID();
  const replies = await Promise.all(['a', 'b', 'a', 'b'].map((bytes) => put(chat, bytes, { id: race })));
  t.equal(replies.filter((reply) => reply.status === 201).length, 2, 'one of two contents wins');
});

t.test('the same bytes again repair an attachment whose bytes were lost', async (t) => {
  const chat = await createChat(app, org);
  const id = randomUUID();
  const before = await storedKeys(app, org);
  const first = expectSuccess(await put(chat, 'precious', { id }), 201);
  const after = await storedKeys(app, org);
  const [key = ''] = after.filter((one) => !before.includes(one));
  await app.services.storage.delete(key);
  t.equal((await content(chat, id)).status, 404);
  t.equal(refusalOf(await put(chat, 'others', { id })), '409 attachment_not_allowed');
  t.same(expectSuccess(await put(chat, 'precious', { id }), 201), first);
  t.equal(await (await content(chat, id)).text(), 'precious');
  t.same(await storedKeys(app, org), after, 'in their place, and nowhere else');
});

t.test('only open chats that are there take attachments, and no bytes are taken before', async (t) => {
  const chat = await createChat(app, org);
  const id = randomUUID();
  expectSuccess(await put(chat, 'kept', { id }), 201);
  expectSuccess(await patchChat(app, chat, { status: 'archived' }));
  t.equal(refusalOf(await put(chat, 'x')), '409 attachment_not_allowed');
  t.equal((await content(chat, id)).status, 200, 'what it has stays readable');
  t.equal(refusalOf(await put({ ...chat, id: randomUUID() }, 'x')), '404 chat_not_found');
  t.equal(refusalOf(await put({ ...chat, organizationId: randomUUID() }, 'x')), '404 organization_not_found');
  t.equal(
    refusalOf(await app.owner.get(chatPath(chat, `/attachments/${randomUUID()}/content`))),
    '404 attachment_not_found',
  );
  const typed = await app.owner.put(chatPath(chat, `/attachments/${id}`), 'x', {
    query: { fileName: 'a.txt', mediaType: 'text/plain' },
    headers: { 'content-type': 'text/plain' },
  });
  t.equal(refusalOf(typed), '415 unsupported_media_type');
});

/** An upload that the test sends as it likes; resolves to the response, which may come before all is sent. */
async function send(chat: Chat, source: Readable, length?: number) {
  const target = new URL(chatPath(chat, `/attachments/${randomUUID()}`), app.url);
  target.search = String(new URLSearchParams({ fileName: 'big.txt', mediaType: 'text/plain' }));
  const headers = {
    'content-type': 'application/octet-stream',
    ...(length === undefined ? {} : { 'content-length': length }),
  };
  const outgoing = request(target, { method: 'PUT', headers, agent: false });
  outgoing.on('error', () => {});
  const received = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  source.on('error', () => {});
  source.pipe(outgoing);
  const [response] = await received;
  const body = JSON.parse((await buffer(response)).toString('utf8'));
  source.destroy();
  outgoing.destroy();
  return { status: response.statusCode, code: body.error?.code, data: body.data };
}

const piece = Buffer.alloc(65_536, 'x');
/** So many bytes of text, made as they are asked for; without a number they do not end. */
function bytes(size = Number.POSITIVE_INFINITY): Readable {
  let left = size;
  return new Readable({
    read() {
      const chunk = left > piece.length ? piece : piece.subarray(0, left);
      left -= chunk.length;
      this.push(chunk.length > 0 ? chunk : null);
    },
  });
}

t.test('50 MB are taken; a byte more is a 413 that can be read, however it is sent', async (t) => {
  const chat = await createChat(app, org);
  t.match(await send(chat, bytes(LIMIT), LIMIT), { status: 201, data: { sizeBytes: LIMIT } });
  t.match(await send(chat, bytes(LIMIT)), { status: 201, data: { sizeBytes: LIMIT } }, 'chunked');
  const before = await storedKeys(app, org);
  const refused = { status: 413, code: 'attachment_invalid' };
  t.match(await send(chat, bytes(LIMIT + 1), LIMIT + 1), refused);
  t.match(await send(chat, bytes(LIMIT + 1)), refused, 'chunked');
  t.match(await send(chat, bytes()), refused, 'without an end');
  t.same(await storedKeys(app, org), before);
});

t.test('a message refers to the attachments of its chat', async (t) => {
  const chat = await createChat(app, org);
  const attachment = expectSuccess(await put(chat, png, { fileName: 'a.png', mediaType: 'image/png' }), 201);
  const body = { parts: [{ kind: 'text', text: 'Look' }], attachmentIds: [attachment.id] };
  const { userMessage } = expectSuccess(await app.owner.post<Posted>(chatPath(chat, '/messages'), body), 202);
  const { fileName, mediaType, sizeBytes } = attachment;
  t.match(userMessage.parts, [
    { kind: 'text', text: 'Look' },
    { kind: 'attachment', attachmentId: attachment.id, fileName, mediaType, sizeBytes },
  ]);
  await replyWith(app, org, []);
  const foreign = await app.owner.post(chatPath(await createChat(app, org), '/messages'), body);
  t.same([foreign.status, ...issuePaths(foreign)], [400, 'attachmentIds.0']);
  t.equal((await app.owner.get(ownerPath(org, `/messages/${userMessage.id}`))).status, 200);
});
