import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type * as Tap from 'tap';
import t from 'tap';
import type { ToolFile } from '../../../engine/providers/tool.ts';
import { until } from '../../support/wait.ts';
import { bytesOf, fileOf, GOOGLE, openGoogle, toolsAt } from './google_workspace_support.ts';
import { fails, json } from './support.ts';
import { ACTION, failsAsDocumented } from './tool_calls.ts';

const tool = (name: string) => `google_workspace.drive.files.${name}`;
const MIB = 1024 * 1024;

t.test('files are found page by page', async (test) => {
  const { read, wrong, server } = await openGoogle(test, () => ({
    kind: 'drive#fileList',
    files: [{ id: 'f1' }],
    nextPageToken: '~!!~p',
  }));
  const given = { q: "name contains 'plan'", orderBy: 'modifiedTime desc,name', pageSize: 200 };
  test.same(await read(tool('list'), given, '~!!~o'), { data: { files: [{ id: 'f1' }] }, nextCursor: '~!!~p' });
  test.match(Object.fromEntries(server.calls[0]?.url.searchParams ?? []), {
    ...given,
    pageSize: '200',
    pageToken: '~!!~o',
  });
  test.same(wrong(tool('list'), { pageSize: 201 }), ['pageSize']);
  test.same(wrong(tool('get'), { fileId: '..' }), ['fileId']);
});

t.test('a file is read as it is, and a document of Google is exported', async (test) => {
  let mimeType = 'image/png';
  let size: string | undefined = '5';
  const { read, server } = await openGoogle(test, ({ url }, res) => {
    const isContent = url.pathname.endsWith('/export') || url.searchParams.get('alt') === 'media';
    if (!isContent) return { id: 'f1', name: 'Plan', mimeType, size };
    res.writeHead(200, { 'content-type': 'text/whatever' }).end('bytes');
    return undefined;
  });
  const get = async (more: object = {}) => {
    const { data, file } = await read(tool('get'), { fileId: 'f1', ...more });
    test.match(data, { id: 'f1', mimeType });
    test.equal((await bytesOf(file?.body)).toString(), 'bytes');
    return [file?.name, file?.contentType, `${server.calls.at(-1)?.url.pathname}${server.calls.at(-1)?.url.search}`];
  };
  test.same(await get(), ['Plan', 'image/png', '/drive/v3/files/f1?alt=media&supportsAllDrives=true']);
  size = undefined;
  mimeType = 'application/vnd.google-apps.document';
  test.same(await get(), ['Plan.md', 'text/markdown', '/drive/v3/files/f1/export?mimeType=text%2Fmarkdown']);
  test.same(await get({ mimeType: 'application/pdf' }), [
    'Plan.pdf',
    'application/pdf',
    '/drive/v3/files/f1/export?mimeType=application%2Fpdf',
  ]);
  mimeType = 'application/vnd.google-apps.spreadsheet';
  test.match(await get(), ['Plan.xlsx', /spreadsheetml\.sheet$/]);
  mimeType = 'application/vnd.google-apps.folder';
  await fails(test, read(tool('get'), { fileId: 'f1' }), 'not_found', 'a folder');
  mimeType = 'video/mp4';
  size = String(1024 ** 3 + 1);
  const before = server.calls.length;
  await fails(test, read(tool('get'), { fileId: 'f1' }), 'too_large', 'larger than files are');
  test.equal(server.calls.length, before + 1, 'its content is not asked for');
});

t.test('a file is read no faster than it is taken, and what breaks off is told', async (test) => {
  const CHUNKS = 32;
  let written = 0;
  let isCut = false;
  let waits = false;
  const { read } = await openGoogle(test, async ({ url }, res) => {
    if (url.searchParams.get('alt') !== 'media') return { id: 'f1', name: 'a.bin', mimeType: 'application/zip' };
    res.writeHead(200, { 'content-length': String(CHUNKS * MIB) });
    for (; written < CHUNKS; written += 1) {
      if (isCut && written === 3) return void res.destroy();
      if (!res.write(Buffer.alloc(MIB, written))) {
        waits = true;
        await once(res, 'drain').catch(() => {});
        waits = false;
      }
    }
    res.end();
    return undefined;
  });
  const { file } = await read(tool('get'), { fileId: 'f1' });
  const iterator = file?.body[Symbol.asyncIterator]();
  const first = await iterator?.next();
  await until('the server waits', () => waits);
  test.ok(written < CHUNKS - 8, `${written} MiB are under way`);
  let size = first?.value?.length ?? 0;
  for (let step = await iterator?.next(); step && !step.done; step = await iterator?.next()) size += step.value.length;
  test.equal(size, CHUNKS * MIB);
  isCut = true;
  written = 0;
  const cut = await read(tool('get'), { fileId: 'f1' });
  await fails(test, bytesOf(cut.file?.body), 'unavailable', 'cut');
});

t.test('a refused content has its reason before a file begins', async (test) => {
  let reply: (res: Parameters<typeof json>[0]) => void = () => {};
  const { read } = await openGoogle(test, ({ url }, res) => {
    if (url.searchParams.get('alt') !== 'media') return { id: 'f1', name: 'a.bin', mimeType: 'application/zip' };
    reply(res);
    return undefined;
  });
  const scope = { error: { errors: [{ reason: 'insufficientPermissions' }] } };
  for (const [status, body, reason] of [
    [401, {}, 'rejected'],
    [403, scope, 'forbidden'],
    [403, { error: { errors: [{ reason: 'userRateLimitExceeded' }] } }, 'rate_limited'],
    [404, {}, 'not_found'],
    [500, {}, 'unavailable'],
  ] as const) {
    reply = (res) => json(res, status, body);
    await fails(test, read(tool('get'), { fileId: 'f1' }), reason, `${status} ${reason}`);
  }
});

type Put = Readonly<{ range: string; bytes: Buffer }>;

/** Drive's resumable uploads: `keeps` says how much of a chunk is kept. */
async function openUploads(test: Tap.Test, keeps: (put: Put, number: number) => number = ({ bytes }) => bytes.length) {
  const begun: { headers: Record<string, unknown>; url: URL; metadata: Record<string, unknown> }[] = [];
  const puts: Put[] = [];
  const kept: Buffer[] = [];
  const has = () => kept.reduce((sum, { length }) => sum + length, 0);
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk);
    } catch {
      return;
    }
    const bytes = Buffer.concat(chunks);
    const url = new URL(req.url ?? '', GOOGLE);
    if (req.method === 'POST') {
      begun.push({ headers: req.headers, url, metadata: JSON.parse(bytes.toString()) });
      res.writeHead(200, { location: `${GOOGLE}/upload/drive/v3/files?uploadType=resumable&upload_id=u1` }).end();
      return;
    }
    const put = { range: String(req.headers['content-range']), bytes };
    puts.push(put);
    kept.push(bytes.subarray(0, keeps(put, puts.length)));
    const total = Number(put.range.split('/')[1]);
    if (has() === total) json(res, 200, { id: 'f9', name: 'x', size: String(total), kind: 'drive#file' });
    else res.writeHead(308, has() === 0 ? {} : { range: `bytes=0-${has() - 1}` }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => new Promise((closed) => server.close(closed)));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { begun, puts, bytes: () => Buffer.concat(kept), ...toolsAt(test, origin) };
}

const UPLOAD = tool('upload');

t.test('a file is uploaded in chunks that come one after the other', async (test) => {
  const { execute, summary, begun, puts, bytes } = await openUploads(test);
  const content = Buffer.alloc(20 * MIB + 5, 'abc');
  const file = fileOf('Bericht.pdf', 'application/pdf', content, 3 * MIB + 1);
  const given = { name: 'Bericht 2026.pdf', parents: ['folder1'] };
  test.equal(
    summary(UPLOAD, given, { file }),
    'Upload the file “Bericht.pdf” (application/pdf, 21.0 MB) to folder folder1 of Drive as “Bericht 2026.pdf”; whoever the folder is shared with sees it',
  );
  test.same(await execute(UPLOAD, given, { file }), { id: 'f9', name: 'x', size: String(content.length) });
  test.match(begun, [
    {
      headers: {
        authorization: 'Bearer ya29.x',
        'x-upload-content-type': 'application/pdf',
        'x-upload-content-length': String(content.length),
      },
      metadata: { ...given, mimeType: 'application/pdf', appProperties: { businessRunnerAction: ACTION } },
    },
  ]);
  test.equal(begun[0]?.url.searchParams.get('uploadType'), 'resumable');
  const total = content.length;
  test.same(
    puts.map(({ range }) => range),
    [
      `bytes 0-${8 * MIB - 1}/${total}`,
      `bytes ${8 * MIB}-${16 * MIB - 1}/${total}`,
      `bytes ${16 * MIB}-${total - 1}/${total}`,
    ],
  );
  test.ok(bytes().equals(content));
});

t.test('what a session did not keep of a chunk is sent again', async (test) => {
  const { execute, puts, bytes } = await openUploads(test, ({ bytes: sent }, number) =>
    number === 1 ? 5 * MIB : sent.length,
  );
  const content = Buffer.alloc(9 * MIB, 'xyz');
  await execute(UPLOAD, {}, { file: fileOf('a.bin', 'no type', content, MIB) });
  test.same(
    puts.map(({ range }) => range.split('/')[0]),
    [`bytes 0-${8 * MIB - 1}`, `bytes ${5 * MIB}-${8 * MIB - 1}`, `bytes ${8 * MIB}-${9 * MIB - 1}`],
  );
  test.ok(bytes().equals(content));
  const lost = await openUploads(test, () => 0);
  await fails(
    test,
    lost.execute(UPLOAD, {}, { file: fileOf('a.bin', 'text/plain', content) }),
    'failed',
    'kept nothing',
  );
  test.equal(lost.puts.length, 1, 'it does not go on for ever');
});

t.test('an empty file is uploaded', async (test) => {
  const { execute, begun, puts } = await openUploads(test);
  await execute(UPLOAD, {}, { file: fileOf('empty.bin', 'no type', Buffer.alloc(0)) });
  test.same(puts, [{ range: 'bytes */0', bytes: Buffer.alloc(0) }]);
  test.match(begun[0]?.metadata, { name: 'empty.bin', mimeType: 'application/octet-stream' });
});

t.test('a text is created as a file or a document', async (test) => {
  const { execute, summary, begun, bytes } = await openUploads(test);
  const given = { name: 'Notizen', mimeType: 'application/vnd.google-apps.document', content: '# Größe' };
  test.equal(
    summary(tool('create'), given),
    'Create the file “Notizen” (application/vnd.google-apps.document) in My Drive; text: “# Größe”',
  );
  await execute(tool('create'), given);
  test.match(begun, [
    {
      headers: { 'x-upload-content-type': 'text/markdown', 'x-upload-content-length': '9' },
      metadata: { name: 'Notizen', mimeType: given.mimeType },
    },
  ]);
  test.equal(bytes().toString(), '# Größe');
});

t.test('a file that is not what was approved is not uploaded to its end', async (test) => {
  const { execute, puts } = await openUploads(test);
  const changed = new Error('the file was changed');
  const file: ToolFile = {
    ...fileOf('a.bin', 'text/plain', Buffer.alloc(12 * MIB)),
    open: async () =>
      (async function* () {
        yield Buffer.alloc(8 * MIB);
        throw changed;
      })(),
  };
  await test.rejects(execute(UPLOAD, {}, { file }), changed);
  test.equal(puts.length, 1);
});

t.test('an upload is looked up by the mark of its action, and not being found says nothing', async (test) => {
  let found: unknown[] = [];
  const { lookUp, server } = await openGoogle(test, () => ({ files: found }));
  test.same(await lookUp(UPLOAD, {}), { outcome: 'none' });
  found = [{ id: 'f9', name: 'x' }];
  test.same(await lookUp(UPLOAD, {}), { outcome: 'found', result: { id: 'f9', name: 'x' } });
  test.equal(
    server.calls[0]?.url.searchParams.get('q'),
    `appProperties has { key='businessRunnerAction' and value='${ACTION}' }`,
  );
});

t.test('whatever goes wrong before the bytes are sent, nothing was made', async (test) => {
  let reply: (res: Parameters<typeof json>[0]) => void = () => {};
  const { execute, server } = await openGoogle(test, (_call, res) => void reply(res));
  const file = fileOf('a.txt', 'text/plain', Buffer.from('abc'));
  for (const [fault, reason] of [
    [(res: Parameters<typeof json>[0]) => json(res, 503, {}), 'unavailable'],
    [(res: Parameters<typeof json>[0]) => res.destroy(), 'unavailable'],
    [(res: Parameters<typeof json>[0]) => json(res, 200, {}), 'failed'],
    [(res: Parameters<typeof json>[0]) => json(res, 200, {}, { location: 'no address' }), 'failed'],
  ] as const) {
    reply = fault;
    const error = await fails(test, execute(UPLOAD, {}, { file }), reason, reason);
    test.equal(error.isRefusal, true);
  }
  reply = (res) => json(res, 200, {}, { location: 'https://evil.example/upload' });
  const before = server.calls.length;
  await fails(test, execute(UPLOAD, {}, { file }), 'refused', 'another origin');
  test.equal(server.calls.length, before + 1, 'no byte of the file goes anywhere');
});

t.test('what goes wrong with the bytes is told apart', async (test) => {
  let reply: (res: Parameters<typeof json>[0]) => void = () => {};
  let puts = 0;
  const { execute } = await openGoogle(test, ({ method }, res) => {
    if (method === 'POST')
      return json(res, 200, {}, { location: `${GOOGLE}/upload/drive/v3/files?upload_id=u` }) ?? undefined;
    puts += 1;
    reply(res);
    return undefined;
  });
  const file = fileOf('a.txt', 'text/plain', Buffer.from('abc'));
  await failsAsDocumented(test, 'upload', 'write', async (fault) => {
    reply = fault;
    puts = 0;
    return { done: execute(UPLOAD, {}, { file }), sent: () => puts };
  });
});
