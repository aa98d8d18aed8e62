import { randomBytes } from 'node:crypto';
import type * as Tap from 'tap';
import t from 'tap';
import { googleWorkspace } from '../../../engine/providers/google-workspace/index.ts';
import { headerParameter, headerText } from '../../../engine/providers/google-workspace/mime.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import { bytesOf, fileOf, openGoogle } from './google_workspace_support.ts';
import { type Call, fails, json } from './support.ts';
import { ACTION, failsAsDocumented, runsAll } from './tool_calls.ts';

const tool = (name: string) => `google_workspace.gmail.${name}`;
const SEND = tool('messages.send');
const DRAFT = tool('drafts.create');
const MESSAGE_ID = `${ACTION}@business-runner.invalid`;

type Entity = Readonly<{ headers: Record<string, string>; body: string }>;

/** Header fields, unfolded, and what comes after them. */
function entity(text: string): Entity {
  const end = text.indexOf('\r\n\r\n');
  const fields = text
    .slice(0, end)
    .replace(/\r\n[ \t]/g, ' ')
    .split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 2)]),
  );
  return { headers, body: text.slice(end + 4) };
}

function partsOf({ headers, body }: Entity): Entity[] {
  const [, boundary = ''] = /boundary="([^"]+)"/.exec(headers['content-type'] ?? '') ?? [];
  const [before = '', ...parts] = body.split(`--${boundary}`);
  if (before !== '' || !parts.at(-1)?.startsWith('--')) throw new Error('no multipart');
  return parts.slice(0, -1).map((part) => entity(part.slice(2)));
}

/** What was said of a message, and the message: the two parts of an upload. */
function uploadOf(test: Tap.Test, call: Call | undefined) {
  test.equal(Number(call?.headers['content-length']), Buffer.byteLength(call?.body ?? ''));
  const [metadata, message] = partsOf({
    headers: { 'content-type': call?.headers['content-type'] ?? '' },
    body: call?.body ?? '',
  });
  test.equal(message?.headers['content-type'], 'message/rfc822');
  return { metadata: JSON.parse(metadata?.body ?? '') as unknown, message: entity(message?.body ?? '') };
}

const decoded = (text: string) => Buffer.from(text, 'base64');
const words = (text = '') =>
  text.replace(/=\?UTF-8\?B\?([^?]*)\?= ?/g, (_, word: string) => decoded(word).toString('utf8'));

t.test('each tool is one that runs', (test) => {
  runsAll(test, googleWorkspace);
  test.end();
});

t.test('headers hold any text, and none ends them', (test) => {
  for (const text of [
    'Grüße 🎉',
    'a\r\nBcc: x@example.com',
    '=?UTF-8?B?eA==?=',
    ' edge ',
    'é'.repeat(300),
    'x'.repeat(901),
  ]) {
    const header = headerText(text);
    test.equal(words(header.replace(/\r\n /g, ' ')), text);
    for (const line of header.split('\r\n '))
      test.match(line, /^=\?UTF-8\?B\?[A-Za-z0-9+/=]{1,63}\?=$/, text.slice(0, 9));
  }
  for (const text of ['', 'Invoice 12 (final)']) test.equal(headerText(text), text);
  test.equal(headerParameter('filename', 'plan.pdf'), 'filename="plan.pdf"');
  for (const name of ['Übersicht "2026".pdf', 'a\r\nX-Evil: 1.txt', 'b\\c', '名'.repeat(200), 'x'.repeat(255)]) {
    const header = headerParameter('filename', name);
    const sections = header.split(';\r\n ');
    test.notMatch(sections.join(''), /[\r\n"]/);
    const value = sections
      .map((one, index) => one.replace(sections.length === 1 ? 'filename*=' : `filename*${index}*=`, ''))
      .join('');
    test.equal(decodeURIComponent(value.replace("UTF-8''", '')), name);
    for (const section of sections) test.ok(section.length <= 78, section);
  }
  test.end();
});

const mail = {
  to: ['ann@example.com', 'bob@example.com'],
  cc: ['cleo@example.com'],
  bcc: ['dan@example.com'],
  subject: 'Angebot für März',
  body: 'Guten Tag,\nanbei das Angebot.\n'.repeat(20),
};

t.test('a message is sent as one upload, with what is attached', async (test) => {
  const { execute, server } = await openGoogle(test, () => ({ id: 'm1', threadId: 't1', labelIds: ['SENT'] }));
  const pdf = randomBytes(100_001);
  const files = {
    attachment1: fileOf('Angebot März.pdf', 'application/pdf', pdf, 977),
    attachment2: fileOf('empty.txt', 'text/plain; charset=x', Buffer.alloc(0)),
    attachment3: fileOf('mail.eml', 'message/rfc822', Buffer.from('Subject: x\r\n\r\ny')),
    attachment4: fileOf('odd', 'text/html\r\nX-Evil: 1', Buffer.from('57 bytes'.repeat(57))),
  };
  const given = { ...mail, threadId: 't1', inReplyTo: '<first@mail.example.com>' };
  test.same(await execute(SEND, given, files), { id: 'm1', threadId: 't1' });
  test.equal(server.calls.length, 1);
  const [call] = server.calls;
  test.equal(
    `${call?.method} ${call?.url.pathname}${call?.url.search}`,
    'POST /upload/gmail/v1/users/me/messages/send?uploadType=multipart',
  );
  test.equal(call?.headers.authorization, 'Bearer ya29.x');
  const { metadata, message } = uploadOf(test, call);
  test.same(metadata, { threadId: 't1' });
  test.match(message.headers, {
    to: 'ann@example.com, bob@example.com',
    cc: 'cleo@example.com',
    bcc: 'dan@example.com',
    'message-id': `<${MESSAGE_ID}>`,
    'in-reply-to': '<first@mail.example.com>',
    references: '<first@mail.example.com>',
    'mime-version': '1.0',
  });
  test.equal(words(message.headers['subject']), mail.subject);
  const [text, ...attached] = partsOf(message);
  test.equal(text?.headers['content-type'], 'text/plain; charset=UTF-8');
  test.equal(decoded(text?.body ?? '').toString('utf8'), mail.body);
  test.same(
    attached.map(({ headers }) => headers['content-type']),
    ['application/pdf', 'text/plain', 'application/octet-stream', 'application/octet-stream'],
  );
  test.ok(decoded(attached[0]?.body ?? '').equals(pdf));
  test.equal(attached[1]?.body, '');
  test.equal(decoded(attached[3]?.body ?? '').toString(), '57 bytes'.repeat(57));
  test.match(attached[0]?.headers['content-disposition'], "attachment; filename*=UTF-8''Angebot%20M%C3%A4rz.pdf");
  test.notOk((call?.body ?? '').split('\r\n').some((line) => line.length > 998));
  test.notMatch(call?.body, /^X-Evil/m);
});

t.test('a draft is written without being sent', async (test) => {
  const { execute, summary, server } = await openGoogle(test, () => ({
    id: 'd1',
    message: { id: 'm1', threadId: 't1' },
  }));
  const plain = { to: ['ann@example.com'], subject: 'Hello', body: '' };
  test.match(summary(DRAFT, plain), /^Write a draft, which is not sent: “Hello” to ann@example\.com \(1 recipient\)/);
  test.same(await execute(DRAFT, plain), { id: 'd1', message: { id: 'm1', threadId: 't1' } });
  test.equal(server.calls[0]?.url.pathname, '/upload/gmail/v1/users/me/drafts');
  const { metadata, message } = uploadOf(test, server.calls[0]);
  test.same(metadata, { message: {} });
  test.match(message, { headers: { subject: 'Hello', 'content-type': 'text/plain; charset=UTF-8' } });
  test.notOk('cc' in message.headers || 'bcc' in message.headers);
});

t.test('a person decides by whom, what and which files', async (test) => {
  const { summary, wrong } = await openGoogle(test, () => ({}));
  const files = { attachment1: fileOf('Angebot.pdf', 'application/pdf', Buffer.alloc(1_234_567)) };
  test.equal(
    summary(SEND, { ...mail, body: 'Guten Tag' }, files),
    'Send an e-mail: “Angebot für März” to ann@example.com, bob@example.com; cc cleo@example.com; bcc dan@example.com (4 recipients); with “Angebot.pdf” (1.2 MB); text: “Guten Tag”',
  );
  const many = Array.from({ length: 50 }, (_, index) => `somebody.with.a.long.name.${index}@example.com`);
  test.match(
    summary(SEND, { to: many, subject: mail.subject, body: '' }),
    /and \d+ more, who stand in the arguments \(50 recipients\)/,
  );
  for (const [change, field] of [
    [{ to: [] }, 'to'],
    [{ to: ['ann@example.com\r\nBcc: x@example.com'] }, 'to.0'],
    [{ to: ['Ann <ann@example.com>'] }, 'to.0'],
    [{ subject: 'a\r\nBcc: x@example.com' }, 'subject'],
    [{ inReplyTo: '<a@b>\r\nX: y' }, 'inReplyTo'],
    [{ threadId: '../x' }, 'threadId'],
    [{ to: many, cc: many, bcc: ['x@example.com'] }, 'to'],
    [{ from: 'me@example.com' }, 'from'],
  ] as const) {
    test.same(wrong(SEND, { ...mail, ...change }), [field], field);
  }
});

t.test('a message is looked up by its id, and not being found says nothing', async (test) => {
  let there = false;
  const { lookUp, server } = await openGoogle(test, ({ url }) => {
    if (!there) return { resultSizeEstimate: 0 };
    return url.pathname.endsWith('/drafts') ? { drafts: [{ id: 'd1' }] } : { messages: [{ id: 'm1', threadId: 't1' }] };
  });
  test.same(await lookUp(SEND, mail), { outcome: 'none' });
  test.same(await lookUp(DRAFT, mail), { outcome: 'none' });
  there = true;
  test.same(await lookUp(SEND, mail), { outcome: 'found', result: { id: 'm1', threadId: 't1' } });
  test.same(await lookUp(DRAFT, mail), { outcome: 'found', result: { id: 'd1' } });
  for (const { url } of server.calls) test.equal(url.searchParams.get('q'), `rfc822msgid:${MESSAGE_ID}`);
});

t.test('what is too large for Gmail is not sent, and what is broken off is not taken', async (test) => {
  const { execute, server } = await openGoogle(test, () => ({ id: 'm1' }));
  const huge = { ...fileOf('a.zip', 'application/zip', Buffer.alloc(0)), sizeBytes: 25 * 1024 * 1024 };
  const error = await fails(test, execute(SEND, mail, { attachment1: huge, attachment2: huge }), 'too_large', 'two');
  test.equal(error.isRefusal, true);
  const file = fileOf('a.bin', 'application/zip', randomBytes(300_000));
  const changed = new Error('the file was changed');
  const broken = {
    ...file,
    open: async () =>
      (async function* () {
        yield Buffer.alloc(1_000);
        throw changed;
      })(),
  };
  await test.rejects(execute(SEND, mail, { attachment1: broken }), changed);
  const short = { ...file, sizeBytes: 400_000 };
  await test.rejects(execute(SEND, mail, { attachment1: short }));
  test.equal(server.calls.length, 0, 'no request came to its end');
});

t.test('what goes wrong with sending is told apart, and it is sent once', async (test) => {
  let reply: (res: Parameters<typeof json>[0]) => void = () => {};
  const { execute, server } = await openGoogle(test, (_call, res) => void reply(res));
  await failsAsDocumented(test, 'send', 'write', async (fault) => {
    reply = fault;
    const before = server.calls.length;
    return { done: execute(SEND, mail), sent: () => server.calls.length - before };
  });
});

t.test('messages are found page by page', async (test) => {
  const { read, server } = await openGoogle(test, ({ url }, res) => {
    if (url.searchParams.get('pageToken') === 'old')
      return json(res, 400, { error: { status: 'INVALID_ARGUMENT' } }) ?? undefined;
    return { messages: [{ id: 'm1', threadId: 't1' }], nextPageToken: '42', resultSizeEstimate: 2, more: 1 };
  });
  const given = { q: 'from:ann has:attachment', labelIds: ['INBOX', 'UNREAD'], maxResults: 200 };
  test.same(await read(tool('messages.list'), given), {
    data: { messages: [{ id: 'm1', threadId: 't1' }], resultSizeEstimate: 2 },
    nextCursor: '42',
  });
  await read(tool('messages.list'), given, '42');
  test.equal(
    server.calls[1]?.url.search,
    '?q=from%3Aann+has%3Aattachment&maxResults=200&labelIds=INBOX&labelIds=UNREAD&pageToken=42',
  );
  await test.rejects(read(tool('messages.list'), given, 'old'), CursorError);
  await test.rejects(read(tool('messages.list'), given, 'a b'), CursorError);
});

const base64url = (text: string) => Buffer.from(text).toString('base64url');
const full = {
  id: 'm1',
  threadId: 't1',
  labelIds: ['INBOX'],
  snippet: 'Hi',
  internalDate: '1767225600000',
  sizeEstimate: 5_000,
  payload: {
    mimeType: 'multipart/mixed',
    headers: [
      { name: 'Received', value: 'by …' },
      { name: 'from', value: 'Ann <ann@example.com>' },
      { name: 'Message-Id', value: '<a@b>' },
    ],
    parts: [
      {
        mimeType: 'multipart/alternative',
        parts: [
          { partId: '0.0', mimeType: 'text/plain', filename: '', body: { size: 3, data: base64url('Grüß dich') } },
          { partId: '0.1', mimeType: 'text/html', filename: '', body: { size: 9, data: base64url('<p>Hi') } },
        ],
      },
      {
        partId: '1',
        mimeType: 'application/pdf',
        filename: 'a.pdf',
        body: { attachmentId: 'x'.repeat(300), size: 12 },
      },
      { partId: '2', mimeType: 'text/plain', filename: 'small.txt', body: { size: 5, data: base64url('small') } },
    ],
  },
};

t.test('a message is read as people see it', async (test) => {
  const { read } = await openGoogle(test, () => full);
  test.same((await read(tool('messages.get'), { id: 'm1' })).data, {
    id: 'm1',
    threadId: 't1',
    labelIds: ['INBOX'],
    snippet: 'Hi',
    internalDate: '1767225600000',
    headers: { from: 'Ann <ann@example.com>', messageId: '<a@b>' },
    text: 'Grüß dich',
    html: null,
    attachments: [
      { partId: '1', filename: 'a.pdf', mimeType: 'application/pdf', size: 12 },
      { partId: '2', filename: 'small.txt', mimeType: 'text/plain', size: 5 },
    ],
  });
  const html = await openGoogle(test, () => ({
    id: 'm2',
    payload: { mimeType: 'text/html', body: { data: base64url('<p>Hi') } },
  }));
  test.match((await html.read(tool('messages.get'), { id: 'm2' })).data, { text: null, html: '<p>Hi' });
});

t.test('an attachment is read as it comes, however its JSON is cut', async (test) => {
  const bytes = randomBytes(100_000);
  let raw = '';
  let step = 7;
  const { read, server } = await openGoogle(test, async ({ url }, res) => {
    if (!url.pathname.includes('/attachments/')) return full;
    res.writeHead(200, { 'content-type': 'application/json; charset=UTF-8' });
    for (let at = 0; at < raw.length; at += step) {
      if (!res.write(raw.slice(at, at + step))) await new Promise((drained) => res.once('drain', drained));
    }
    res.end();
    return undefined;
  });
  const given = { messageId: 'm1', partId: '1' };
  const encoded = bytes.toString('base64url');
  for (const [text, size] of [
    [`{\n  "size": 100000,\n  "data": "${encoded}"\n}`, 7_919],
    [`{"data":"${encoded}\\u003d\\u003d","size":100000}`, 1_001],
    [`{"size":1,"attachmentId":"x","data":"${encoded}=="}`, 65_536],
  ] as const) {
    raw = text;
    step = size;
    const { data, file } = await read(tool('attachments.get'), given);
    test.same(data, { partId: '1', filename: 'a.pdf', mimeType: 'application/pdf', size: 12 });
    test.match(file, { name: 'a.pdf', contentType: 'application/pdf' });
    test.ok((await bytesOf(file?.body)).equals(bytes), text.slice(0, 9));
  }
  raw = '{"data":"QUI\\u003d"}';
  step = 1;
  test.equal((await bytesOf((await read(tool('attachments.get'), given)).file?.body)).toString(), 'AB');
  test.equal(server.calls.at(-1)?.url.pathname, `/gmail/v1/users/me/messages/m1/attachments/${'x'.repeat(300)}`);
  for (const [text, reason] of [
    ['{"size": 3}', 'unavailable'],
    [`{"data":"${encoded}`, 'unavailable'],
    ['{"data":"a*b*c*d*"}', 'failed'],
    ['{"data":"\\n\\n\\n\\n\\n"}', 'failed'],
    ['x'.repeat(20_000), 'failed'],
  ] as const) {
    raw = text;
    step = 1_000;
    const { file } = await read(tool('attachments.get'), given);
    await fails(test, bytesOf(file?.body), reason, text.slice(0, 20));
  }
  const small = await read(tool('attachments.get'), { messageId: 'm1', partId: '2' });
  test.equal((await bytesOf(small.file?.body)).toString(), 'small');
  await fails(test, read(tool('attachments.get'), { messageId: 'm1', partId: '0.0' }), 'not_found', 'no attachment');
});
