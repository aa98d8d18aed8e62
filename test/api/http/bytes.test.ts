import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readlink, rm, truncate, unlink } from 'node:fs/promises';
import { type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import express from 'express';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { sendBytes } from '../../../api/http/bytes.ts';
import { noneMatchHits, parseRange } from '../../../api/http/ranges.ts';
import { Problem } from '../../../engine/db/problem.ts';
import { openStorage } from '../../../engine/storage/index.ts';

type SentResponse = { status: number; headers: IncomingHttpHeaders; body: Buffer };

/** A real server that serves one stored file, and a client that sends just the headers it is given. */
async function serve(t: Test, content: Uint8Array, given: { mediaType?: string; fileName?: string } = {}) {
  const root = await mkdtemp(path.join(tmpdir(), 'bytes-test-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const storage = openStorage(pathToFileURL(root).href);
  const stored = await storage.put('a/b', Readable.from([content]));
  const thrown: unknown[] = [];
  const finished: string[] = [];
  const app = express().set('etag', false);
  app.all('/', async (req, res) => {
    const abort = new AbortController();
    res.on('close', () => abort.abort());
    try {
      const file = { mediaType: 'text/csv', fileName: 'sales.csv', ...given, ...stored };
      await sendBytes(req, res, { storage, key: 'a/b', signal: abort.signal, ...file });
      finished.push('returned');
    } catch (error) {
      thrown.push(error);
      if (res.headersSent) res.destroy();
      else if (error instanceof Problem) res.status(error.status).set(error.headers).json({ code: error.code });
      else res.status(500).end();
    }
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const ask = async (headers: Record<string, string> = {}, method = 'GET'): Promise<SentResponse> => {
    const sent = request({ port, method, headers });
    sent.end();
    const [response] = await once(sent, 'response');
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  };
  return { ask, etag: `"${stored.sha256}"`, file: path.join(root, 'a/b'), thrown, finished, port };
}

const ten = Buffer.from('0123456789');

t.test('a whole file comes with all that a client needs to know', async (t) => {
  const { ask, etag } = await serve(t, ten);
  const { status, headers, body } = await ask();
  t.equal(status, 200);
  t.equal(body.toString(), '0123456789');
  t.match(headers, {
    'content-type': 'application/octet-stream',
    'x-media-type': 'text/csv',
    'content-length': '10',
    etag,
    'accept-ranges': 'bytes',
    'x-content-type-options': 'nosniff',
    'content-disposition': 'attachment; filename=sales.csv',
  });
  t.equal(etag, `"${createHash('sha256').update(ten).digest('hex')}"`);
});

t.test('HEAD returns the headers of GET and no body', async (t) => {
  const { ask } = await serve(t, ten);
  const get = await ask();
  const head = await ask({}, 'HEAD');
  t.equal(head.status, 200);
  t.equal(head.body.length, 0);
  const without = ({ date: _, ...rest }: IncomingHttpHeaders) => rest;
  t.same(without(head.headers), without(get.headers));
  t.equal((await ask({ range: 'bytes=0-1' }, 'HEAD')).status, 200, 'ranges are for GET');
});

t.test('single ranges are 206', async (t) => {
  const { ask } = await serve(t, ten);
  const cases: [string, string, string][] = [
    ['bytes=0-0', '0', 'bytes 0-0/10'],
    ['bytes=2-4', '234', 'bytes 2-4/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-3', '789', 'bytes 7-9/10'],
    ['bytes=-99', '0123456789', 'bytes 0-9/10'],
    ['bytes=8-99999999999999999999999', '89', 'bytes 8-9/10'],
    ['BYTES= 1-2', '12', 'bytes 1-2/10'],
  ];
  for (const [range, expected, contentRange] of cases) {
    const { status, headers, body } = await ask({ range });
    t.same([status, body.toString(), headers['content-range']], [206, expected, contentRange], range);
    t.equal(headers['content-length'], String(expected.length), range);
  }
});

t.test('several ranges, other units and malformed ranges get the whole file', async (t) => {
  const { ask } = await serve(t, ten);
  for (const range of ['bytes=0-1,3-4', 'items=0-1', 'bytes=4-2', 'bytes=', 'bytes=-', 'bytes=a-b', 'nonsense']) {
    const { status, headers, body } = await ask({ range });
    t.same([status, body.toString(), headers['content-range']], [200, '0123456789', undefined], range);
  }
});

t.test('a range beyond the end is 416 with the size', async (t) => {
  const { ask } = await serve(t, ten);
  for (const range of ['bytes=10-', 'bytes=10-12', 'bytes=99999999999999999999-', 'bytes=-0']) {
    const { status, headers, body } = await ask({ range });
    t.same([status, headers['content-range'], headers.etag], [416, 'bytes */10', undefined], range);
    t.same(JSON.parse(body.toString()), { code: 'range_not_satisfiable' });
  }
});

t.test('an empty file is served, and has no ranges', async (t) => {
  const { ask } = await serve(t, Buffer.alloc(0));
  t.match(await ask(), { status: 200, headers: { 'content-length': '0' } });
  t.equal((await ask({ range: 'bytes=0-' })).status, 416);
  t.equal((await ask({ range: 'bytes=-5' })).status, 200);
});

t.test('If-None-Match returns 304 before ranges are looked at', async (t) => {
  const { ask, etag } = await serve(t, ten);
  for (const value of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const { status, headers, body } = await ask({ 'if-none-match': value, range: 'bytes=99-' });
    t.same([status, headers.etag, body.length], [304, etag, 0], value);
  }
  t.equal((await ask({ 'if-none-match': etag }, 'HEAD')).status, 304);
  t.equal((await ask({ 'if-none-match': '"other"' })).status, 200);
});

t.test('If-Range serves the range of the same bytes alone', async (t) => {
  const { ask, etag } = await serve(t, ten);
  t.equal((await ask({ range: 'bytes=0-1', 'if-range': etag })).status, 206);
  for (const value of ['"other"', `W/${etag}`, 'Wed, 21 Oct 2015 07:28:00 GMT']) {
    t.equal((await ask({ range: 'bytes=0-1', 'if-range': value })).status, 200, value);
    t.equal((await ask({ range: 'bytes=99-', 'if-range': value })).status, 200, `${value} beyond the end`);
  }
});

t.test('any file name makes one safe header', async (t) => {
  const names: [string, string][] = [
    ['Größe.csv', `attachment; filename="Gr??e.csv"; filename*=UTF-8''Gr%C3%B6%C3%9Fe.csv`],
    ['a "b".txt', String.raw`attachment; filename="a \"b\".txt"`],
    ['folder/x.txt', 'attachment; filename=x.txt'],
    ['x\r\nSet-Cookie: a', `attachment; filename="x??Set-Cookie: a"; filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a`],
    ['\ud800.txt', `attachment; filename="?.txt"; filename*=UTF-8''%EF%BF%BD.txt`],
  ];
  for (const [fileName, expected] of names) {
    const { ask } = await serve(t, ten, { fileName });
    t.equal((await ask()).headers['content-disposition'], expected, JSON.stringify(fileName));
  }
});

t.test('no file is of a type that a browser renders: what it is stands beside, as it is recorded', async (t) => {
  for (const mediaType of ['application/json', 'image/svg+xml', 'text/html; charset=iso-8859-1']) {
    const { ask } = await serve(t, ten, { mediaType });
    for (const response of [await ask(), await ask({}, 'HEAD'), await ask({ range: 'bytes=0-1' })]) {
      t.match(response.headers, { 'content-type': /^application\/octet-stream$/, 'x-media-type': mediaType });
    }
  }
});

t.test('a file that vanished or was cut is an error before the headers', async (t) => {
  const { ask, file, thrown } = await serve(t, ten);
  await truncate(file, 4);
  t.equal((await ask()).status, 500);
  t.match(thrown[0], { message: /4 bytes where 10 are recorded/ });
  await unlink(file);
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await ask({}, method);
    t.same([status, headers.etag, headers['content-disposition']], [404, undefined, undefined], method);
  }
});

t.test('a client that hangs up ends the reading of the file', async (t) => {
  const { port, file, finished, thrown } = await serve(t, randomBytes(30_000_000));
  const sent = request({ port });
  sent.on('error', () => {});
  sent.end();
  const [response] = await once(sent, 'response');
  response.on('error', () => {});
  await once(response, 'data');
  response.destroy();
  const open = async () => {
    const links = await readdir('/proc/self/fd');
    const targets = await Promise.all(links.map((link) => readlink(`/proc/self/fd/${link}`).catch(() => '')));
    return targets.includes(file);
  };
  const deadline = Date.now() + 30_000;
  while (finished.length === 0 && thrown.length === 0 && Date.now() < deadline) await new Promise(setImmediate);
  t.same([finished, thrown], [['returned'], []]);
  if (process.platform === 'linux') {
    while ((await open()) && Date.now() < deadline) await new Promise(setImmediate);
    t.equal(await open(), false, 'the file is closed');
  }
});

t.test('a parsed range always lies within the file', async (t) => {
  const header = fc.oneof(
    fc.string(),
    fc.tuple(fc.nat(30), fc.nat(30)).map(([a, b]) => `bytes=${a}-${b}`),
    fc.nat(30).map((a) => `bytes=-${a}`),
    fc.nat(30).map((a) => `bytes=${a}-`),
  );
  const within = fc.property(header, fc.nat(20), (value, size) => {
    const range = parseRange(value, size);
    return typeof range === 'string' || (range.start >= 0 && range.start <= range.end && range.end < size);
  });
  t.doesNotThrow(() => fc.assert(within, { numRuns: 3000 }));
  t.equal(noneMatchHits(undefined, '"a"'), false);
});
