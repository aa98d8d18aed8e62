import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t from 'tap';
import { rawRequest } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';

const app = await startTestApp(t);
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  rawRequest(app.url, { method, path, headers });

const plain = await get('/openapi.json');

t.test('the document is sent in the best encoding that the client takes', async (t) => {
  t.match(plain, { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' } });
  t.equal(plain.headers['content-encoding'], undefined);
  t.match(JSON.parse(plain.body.toString('utf8')), { openapi: '3.1.0', paths: { '/openapi.json': {} } });
  const wanted = {
    'gzip, deflate, br, zstd': 'br',
    'br;q=0.1, gzip': 'br',
    'gzip, deflate': 'gzip',
    'gzip, br;q=0': 'gzip',
    '*': 'br',
    deflate: undefined,
    identity: undefined,
    'gzip;q=0, br;q=0': undefined,
  };
  for (const [accepted, encoding] of Object.entries(wanted)) {
    const response = await get('/openapi.json', { 'accept-encoding': accepted });
    t.equal(response.headers['content-encoding'], encoding, accepted);
    t.equal(response.headers['content-length'], String(response.body.length));
    t.equal(response.headers['vary'], 'Accept-Encoding');
    const unpack = { br: brotliDecompressSync, gzip: gunzipSync };
    const body = encoding ? unpack[encoding as 'br' | 'gzip'](response.body) : response.body;
    t.ok(body.equals(plain.body), `${accepted}: the same document`);
    if (encoding) t.ok(response.body.length * 6 < plain.body.length, `${response.body.length} bytes`);
  }
});

t.test('a client that has it is told so, in each encoding by its own entity tag', async (t) => {
  const tags = new Set<string>();
  for (const encoding of ['br', 'gzip', 'identity']) {
    const { etag = '' } = (await get('/openapi.json', { 'accept-encoding': encoding })).headers;
    t.match(etag, /^"[\w-]+"$/);
    tags.add(etag);
    const again = { 'accept-encoding': encoding, 'if-none-match': `"other", W/${etag}` };
    const unchanged = await get('/openapi.json', again);
    t.match(unchanged, { status: 304, headers: { etag, vary: 'Accept-Encoding', 'cache-control': 'no-cache' } });
    t.equal(unchanged.body.length, 0);
    t.equal(unchanged.headers['content-encoding'], undefined);
    const head = await get('/openapi.json', { 'accept-encoding': encoding }, 'HEAD');
    t.match(head, { status: 200, headers: { etag } });
    t.ok(Number(head.headers['content-length']) > 1000 && head.body.length === 0);
  }
  t.equal(tags.size, 3);
  const other = await get('/openapi.json', { 'accept-encoding': 'gzip', 'if-none-match': [...tags][0] ?? '' });
  t.equal(other.status, 200, 'the tag of another encoding names other bytes');
});

t.test('two at once get the one document', async (t) => {
  const responses = await Promise.all(Array.from({ length: 5 }, () => get('/openapi.json')));
  t.ok(responses.every(({ body }) => body.equals(plain.body)));
});

t.test('files of the documentation are compressed', async (t) => {
  const accepted = { 'accept-encoding': 'gzip, br' };
  const script = await get('/docs/reference.js', accepted);
  t.match(script.headers, { 'content-encoding': 'br', 'content-type': 'text/javascript; charset=utf-8' });
  t.ok(script.body.length < 1_500_000, `${script.body.length} bytes`);
  t.match((await get('/docs/icon.svg', accepted)).headers, { 'content-type': 'image/svg+xml; charset=utf-8' });
});

t.test('event streams, stored files and envelopes are never compressed', async (t) => {
  const accepted = { 'accept-encoding': 'gzip, br', 'content-type': 'application/json' };
  const organization = `/organizations/${randomUUID()}`;
  const send = async (method: string, path: string, body: object) =>
    (
      await rawRequest(app.url, {
        method,
        path: `${organization}${path}`,
        headers: accepted,
        body: JSON.stringify(body),
      })
    ).body;
  await send('POST', '', { slug: `s-${randomUUID()}`, name: 'Lamp Studio' });
  const chat = JSON.parse((await send('POST', '/chats', { title: 'Sales' })).toString('utf8')) as {
    data: { id: string };
  };
  const attachment = `${organization}/chats/${chat.data.id}/attachments/${randomUUID()}`;
  const text = 'north,412\n'.repeat(10_000);
  await rawRequest(app.url, {
    method: 'PUT',
    path: `${attachment}?fileName=sales.csv&mediaType=text/csv`,
    headers: { 'content-type': 'application/octet-stream' },
    body: text,
  });
  const file = await get(`${attachment}/content`, accepted);
  t.match(file, { status: 200, headers: { 'content-length': String(text.length) } });
  t.equal(file.headers['content-encoding'], undefined);
  const part = await get(`${attachment}/content`, { ...accepted, range: 'bytes=0-8' });
  t.equal(part.status, 206);
  t.equal(part.body.toString('utf8'), 'north,412');
  const list = await get(`${organization}/chats`, accepted);
  t.equal(list.headers['content-encoding'], undefined);

  const { hostname, port } = new URL(app.url);
  const path = `${organization}/chats/${chat.data.id}/events`;
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const stream = request({ hostname, port, path, headers: accepted }, (response) => {
    response.once('data', (chunk: Buffer) => {
      t.match(String(chunk), /^retry: /, 'its first bytes arrive at once, as text');
      resolve(response.headers['content-encoding']);
    });
  });
  stream.on('error', reject).end();
  t.equal(await promise, undefined);
  stream.off('error', reject).on('error', () => {});
  stream.destroy();
});
