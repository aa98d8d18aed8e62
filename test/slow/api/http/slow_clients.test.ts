import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { z } from 'zod';
import { endpoint } from '../../../../api/http/endpoint.ts';
import { TIMING } from '../../../../api/http/timing.ts';
import { sampleEndpoints } from '../../../api/http/endpoints.ts';
import { runTask, sqlOf, workerOf } from '../../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp, type TestAppOptions } from '../../../support/app.ts';
import { createTestDatabase } from '../../../support/database.ts';
import { createTestOrganization } from '../../../support/fixtures.ts';
import { type RawConnection, rawConnection, statusesOf } from '../../../support/raw_connection.ts';
import { until } from '../../../support/wait.ts';

const database = await createTestDatabase(t);
const things = '/organizations/018f3c1e-7a2b-7c3d-8e4f-5a6b7c8d9e0f/things';
const LONG_MS = 600_000;
/** How long what is slow may take here. */
const SHORT_MS = 400;

/** Reads its body when the test says so. */
const taking = Promise.withResolvers<void>();
const endpoints = [
  ...sampleEndpoints(),
  endpoint({
    method: 'put',
    path: '/taken-late',
    audience: 'public',
    tag: 'System',
    operationId: 'takeFileLate',
    summary: 'Takes its body late',
    body: { stream: true, mediaTypes: ['application/octet-stream'], maxBytes: 4_000_000 },
    response: { data: z.object({ size: z.int() }) },
    async handler({ openBody }) {
      const body = openBody();
      let size = 0;
      for await (const chunk of body) {
        size += (chunk as Buffer).length;
        await Promise.race([taking.promise, once(body, 'close')]);
      }
      return { size };
    },
  }),
];
const start = (timing: TestAppOptions['timing']) => startTestApp(t, { database, endpoints, timing: { ...timing } });

function head(line: string, headers: readonly string[]): string {
  return [`${line} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');
}
const json = (length: number) => ['Content-Type: application/json', `Content-Length: ${length}`];
const octets = (length: number) => ['Content-Type: application/octet-stream', `Content-Length: ${length}`];

/** Sends a byte every few milliseconds until the connection is over. */
async function trickle(client: RawConnection, bytes: string): Promise<void> {
  for (const byte of bytes) {
    if (client.closed() || client.ended()) return;
    client.send(byte);
    await delay(5);
  }
}

t.test('the times are those of the interface', async (t) => {
  t.match(TIMING, { bodyMs: 30_000, bodyBytesPerSecond: 16_384, pauseMs: 60_000 });
  t.match(TIMING, { restBytes: 33_554_432, restMs: 2_000 }, 'and what is read after a response');
});

t.test('headers that never come, or never end, end the connection', async (t) => {
  const app = await start({ headersMs: SHORT_MS, checkMs: 50, lingerMs: 50 });
  const silent = rawConnection(app.url);
  const half = rawConnection(app.url);
  half.send('GET /healthz HTTP/1.1\r\nHost: loc');
  const dripping = rawConnection(app.url);
  const drips = trickle(dripping, `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(10_000)}`);
  const kept = rawConnection(app.url);
  kept.send(head('GET /healthz', []));
  await kept.receives(/^HTTP\/1\.1 200 [\s\S]*\}$/);
  kept.send('GET /healthz HTTP/1.1\r\nHost: loc');
  for (const client of [silent, half, dripping, kept]) {
    await until('the server closes', () => client.ended());
    client.socket.end();
    await until('it is over', () => client.closed());
  }
  await drips;
  t.same(
    [half, dripping].map((client) => statusesOf(client.received())),
    [[408], [408]],
  );
  t.same(statusesOf(kept.received()), [200, 408]);
  t.match(half.received(), /"code":"request_timeout"/);
});

t.test('a body that stalls or drips is 408, and its connection ends', async (t) => {
  const app = await start({ bodyMs: SHORT_MS, bodyBytesPerSecond: 1_000_000, lingerMs: 50, restMs: 50 });
  const cases = [
    ['JSON that never comes', head(`POST ${things}`, json(100)), ''],
    ['JSON that stalls', head(`POST ${things}`, json(100)), '{"name":'],
    ['an upload that never comes', head('PUT /files/a', octets(100)), ''],
    ['an upload that stalls', head('PUT /files/a', octets(100)), 'abc'],
    [
      'a chunk that stalls',
      head('PUT /files/a', ['Content-Type: application/octet-stream', 'Transfer-Encoding: chunked']),
      '5\r\nab',
    ],
    [
      'a trailer that never ends',
      head(`POST ${things}`, ['Content-Type: application/json', 'Transfer-Encoding: chunked']),
      '2\r\n{}\r\n0\r\nX-Rest: ',
    ],
  ] as const;
  for (const [name, first, rest] of cases) {
    const client = rawConnection(app.url);
    client.send(first);
    client.send(rest);
    await until(`${name}: the server closes`, () => client.ended());
    t.same(statusesOf(client.received()), [408], name);
    t.match(client.received(), /\r\nConnection: close\r\n[\s\S]*"code":"request_timeout"/i, name);
    client.socket.destroy();
  }
  for (const first of [head(`POST ${things}`, json(100_000)), head('PUT /files/a', octets(100_000))]) {
    const client = rawConnection(app.url);
    client.send(first);
    await Promise.all([trickle(client, ' '.repeat(50_000)), until('the server closes', () => client.ended())]);
    t.same(statusesOf(client.received()), [408], 'too few bytes a second');
    client.socket.destroy();
  }
});

t.test('a body may take longer while it comes fast enough, but not pause for long', async (t) => {
  const app = await start({ bodyMs: 50, bodyBytesPerSecond: 1, pauseMs: LONG_MS });
  const steady = rawConnection(app.url);
  const begun = performance.now();
  steady.send(head('PUT /files/a', octets(1_000)) + 'x'.repeat(900));
  await until('the time of a short body is over', () => performance.now() > begun + 100);
  steady.send('x'.repeat(100));
  await steady.receives(/"size":1000/);
  t.same(statusesOf(steady.received()), [201]);
  steady.socket.destroy();

  const strict = await start({ bodyMs: 50, bodyBytesPerSecond: 1, pauseMs: SHORT_MS });
  const pausing = rawConnection(strict.url);
  pausing.send(head('PUT /files/a', octets(1_000)) + 'x'.repeat(900));
  await pausing.receives(/^HTTP\/1\.1 408 /);
  pausing.socket.destroy();
});

t.test('a body that is not read for too long is 503', async (t) => {
  const app = await start({ pauseMs: SHORT_MS });
  const client = rawConnection(app.url);
  client.send(head('PUT /taken-late', octets(1_000_000)));
  client.send(Buffer.alloc(1_000_000));
  await client.receives(/"service_unavailable"/);
  t.same(statusesOf(client.received()), [503]);
  client.socket.destroy();
});

t.test('a client is not blamed for the time in which its body is not read', async (t) => {
  const app = await start({ bodyMs: 2_000, bodyBytesPerSecond: Number.MAX_SAFE_INTEGER, pauseMs: LONG_MS });
  const client = rawConnection(app.url);
  const begun = performance.now();
  client.send(head('PUT /taken-late', octets(1_000_000)));
  client.send(Buffer.alloc(1_000_000));
  await until('the time of a body is over', () => performance.now() > begun + 2_200);
  t.equal(client.received(), '');
  taking.resolve();
  await client.receives(/^HTTP\/1\.1 200 [\s\S]*"size":1000000/);
  client.socket.destroy();
});

t.test('an upload that stalls leaves nothing behind', async (t) => {
  const app = await startTestApp(t, { timing: { bodyMs: SHORT_MS, bodyBytesPerSecond: 1_000_000 } });
  const org = await createTestOrganization(sqlOf(app));
  const run = await runTask(app, org);
  const { headers, outputPath } = workerOf(app, run);
  const unfinished = () =>
    readdir(path.join(fileURLToPath(app.config.storageUrl), '.incoming')).catch((): string[] => []);
  const client = rawConnection(app.url);
  t.teardown(() => client.socket.destroy());
  const fields = Object.entries({ ...headers, authorization: `Bearer ${SERVICE_TOKEN}` });
  const lines = fields.map(([name, value]) => `${name}: ${value}`);
  client.send(head(`PUT ${outputPath('a.bin')}`, [...lines, ...octets(1_000)]));
  client.send(Buffer.alloc(500));
  await until('the upload has begun', async () => (await unfinished()).length > 0);
  await client.receives(/^HTTP\/1\.1 408 [\s\S]*"request_timeout"/);
  await until('it is given up', async () => (await unfinished()).length === 0);
  t.same((await app.database.owner.query('select from app.run_outputs')).rows, []);
  t.match(await workerOf(app, run).put('a.bin', 'whole'), { status: 201 });
});
