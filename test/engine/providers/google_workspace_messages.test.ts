import { randomBytes } from 'node:crypto';
import t from 'tap';
import { CursorError } from '../../../engine/providers/tool.ts';
import { bytesOf, openGoogle } from './google_workspace_support.ts';
import { fails, json } from './support.ts';

const tool = (name: string) => `google_workspace.gmail.${name}`;

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
