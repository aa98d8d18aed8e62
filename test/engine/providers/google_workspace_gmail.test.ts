import { randomBytes } from 'node:crypto';
import type * as Tap from 'tap';
import t from 'tap';
import { googleWorkspace } from '../../../engine/providers/google-workspace/index.ts';
import { headerParameter, headerText } from '../../../engine/providers/google-workspace/mime.ts';
import { fileOf, openGoogle } from './google_workspace_support.ts';
import { type Call, fails, type json } from './support.ts';
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
  test.match(
    summary(DRAFT, plain),
    /^Write a draft, which is not sent: “Hello” to 1 recipient; to ann@example\.com; without attachments/,
  );
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
    'Send an e-mail: “Angebot für März” to 4 recipients; to ann@example.com, bob@example.com; cc cleo@example.com; bcc dan@example.com; with “Angebot.pdf” (1.2 MB); text: “Guten Tag”',
  );
  const many = Array.from({ length: 50 }, (_, index) => `somebody.with.a.long.name.${index}@example.com`);
  const crowded = { ...mail, subject: 's'.repeat(900), to: many, cc: many.slice(2), bcc: ['dan@example.com'] };
  const names = Array.from({ length: 10 }, (_, index) => [
    `attachment${index}`,
    fileOf('n'.repeat(200), 'a/b', Buffer.alloc(0)),
  ]);
  const text = summary(SEND, crowded, Object.fromEntries(names));
  test.ok(text.length < 2_000, 'it is read as a whole');
  test.match(
    text,
    /to 99 recipients; to .* and \d+ more, which the arguments name; cc .* more, .*; bcc dan@example\.com; with /,
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
  const broken = {
    ...file,
    open: async () =>
      (async function* () {
        yield Buffer.alloc(1_000);
        throw new Error('the file was changed');
      })(),
  };
  const ended = await fails(test, execute(SEND, mail, { attachment1: broken }), 'failed', 'another file');
  test.equal(ended.isRefusal, true, 'Google takes no part of a message');
  const short = { ...file, sizeBytes: 400_000 };
  await test.rejects(execute(SEND, mail, { attachment1: short }));
  test.equal(server.calls.length, 0, 'no request came to its end');
});

t.test('failures of sending are distinguished, and it is sent once', async (test) => {
  let reply: (res: Parameters<typeof json>[0]) => void = () => {};
  const { execute, server } = await openGoogle(test, (_call, res) => void reply(res));
  await failsAsDocumented(test, 'send', 'write', async (fault) => {
    reply = fault;
    const before = server.calls.length;
    return { done: execute(SEND, mail), sent: () => server.calls.length - before };
  });
});
