import t from 'tap';
import type { ToolFile } from '../../../engine/providers/tool.ts';
import { bytesOf, fileOf, GOOGLE, openGoogle } from './google_workspace_support.ts';
import { openUploads } from './google_workspace_uploads.ts';
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

const UPLOAD = tool('upload');

t.test('an empty file is uploaded', async (test) => {
  const { execute, begun, puts } = await openUploads(test);
  await execute(UPLOAD, {}, { file: fileOf('empty.bin', 'no type', Buffer.alloc(0)) });
  test.same(puts, [{ range: 'bytes */0', bytes: Buffer.alloc(0) }]);
  test.match(begun[0]?.metadata, { name: 'empty.bin', mimeType: 'application/octet-stream' });
});

t.test('a text is created as a file or a document', async (test) => {
  const { execute, summary, riskOf, begun, bytes } = await openUploads(test);
  const given = { name: 'Notizen', mimeType: 'application/vnd.google-apps.document', content: '# Größe' };
  test.equal(
    summary(tool('create'), given),
    'Create the file “Notizen” (application/vnd.google-apps.document) in My Drive; text: “# Größe”',
  );
  test.equal(riskOf(tool('create'), given), 'low');
  test.equal(riskOf(tool('create'), { ...given, parents: ['folder1'] }), 'external', 'others may see the folder');
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
  const file: ToolFile = {
    ...fileOf('a.bin', 'text/plain', Buffer.alloc(12 * MIB)),
    open: async () =>
      (async function* () {
        yield Buffer.alloc(8 * MIB);
        throw new Error('the file was changed');
      })(),
  };
  const error = await fails(test, execute(UPLOAD, {}, { file }), 'failed', 'changed');
  test.equal(error.isRefusal, true);
  test.equal(puts.length, 1);
});

t.test('a file whose last chunk was not sent is not there', async (test) => {
  const { execute, begun } = await openUploads(test, () => {
    throw new Error('the server ends');
  });
  const file = fileOf('a.bin', 'text/plain', Buffer.alloc(9 * MIB), MIB);
  const error = await fails(test, execute(UPLOAD, {}, { file }), 'unavailable', 'the first of two');
  test.equal(error.isRefusal, true);
  test.equal(begun.length, 1);
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

t.test('failures of the bytes are distinguished', async (test) => {
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
