import { once } from 'node:events';
import t from 'tap';
import { bytesOf, fileOf, openGoogle } from '../../../engine/providers/google_workspace_support.ts';
import { openUploads } from '../../../engine/providers/google_workspace_uploads.ts';
import { fails } from '../../../engine/providers/support.ts';
import { ACTION } from '../../../engine/providers/tool_calls.ts';
import { until } from '../../../support/wait.ts';

const tool = (name: string) => `google_workspace.drive.files.${name}`;
const UPLOAD = tool('upload');
const MIB = 1024 * 1024;

t.test('a file is read no faster than it is taken, and what breaks off is an error', async (test) => {
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
