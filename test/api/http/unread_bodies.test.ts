import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { endpoint } from '../../../api/http/endpoint.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestDatabase } from '../../support/database.ts';
import { type RawConnection, rawConnection, statusesOf } from '../../support/raw_connection.ts';
import { until } from '../../support/wait.ts';
import { sampleEndpoints } from './endpoints.ts';

const database = await createTestDatabase(t);
const endpoints = [
  ...sampleEndpoints(),
  endpoint({
    method: 'get',
    path: '/endless',
    audience: 'public',
    tag: 'System',
    operationId: 'getEndless',
    summary: 'Writes a line, and waits until the client has gone',
    response: { stream: true, mediaType: 'text/plain', description: 'A line.' },
    async handler({ res, signal }) {
      res.type('text/plain').write('begun\n');
      if (!signal.aborted) await once(signal, 'abort');
    },
  }),
];
/** What no test waits for. */
const LONG_MS = 600_000;
const patient = await startTestApp(t, {
  ...{ database, endpoints },
  timing: { restBytes: 1024 * 1024, restMs: LONG_MS, lingerMs: LONG_MS },
});
const hasty = await startTestApp(t, {
  ...{ database, endpoints },
  timing: { bodyMs: 200, restMs: 100, lingerMs: 100 },
});
const things = '/organizations/018f3c1e-7a2b-7c3d-8e4f-5a6b7c8d9e0f/things';
const MIB = 1024 * 1024;
const LARGE = 32 * MIB;

type Given = Readonly<{ type?: string; length?: number; more?: readonly string[]; version?: string }>;

/** The head of a request; without a length its body is chunked. */
function head(line: string, { type = 'application/json', length, more = [] }: Given = {}): string {
  const framing = length === undefined ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`;
  return [`${line} HTTP/1.1`, 'Host: localhost', `Content-Type: ${type}`, framing, ...more, '', ''].join('\r\n');
}

const chunk = (size: number): Buffer =>
  Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`), Buffer.alloc(size, 'x'), Buffer.from('\r\n')]);

/** What is left to write, once it no longer changes. */
async function unwritten({ socket }: RawConnection): Promise<number> {
  for (let last = -1; ; ) {
    const now = socket.writableLength;
    if (now === last) return now;
    last = now;
    await delay(250);
  }
}

const octets = 'application/octet-stream';
const refusals: readonly (readonly [name: string, line: string, status: number, given?: Given])[] = [
  ['JSON over the limit', `POST ${things}`, 413],
  ['JSON over the limit', `POST ${things}`, 413, { length: LARGE }],
  ['an upload over the limit', 'PUT /files/a', 413, { type: octets }],
  ['an upload over the limit', 'PUT /files/a', 413, { type: octets, length: LARGE }],
  ['an unknown path', 'POST /nowhere', 404],
  ['an unknown path', 'POST /nowhere', 404, { length: LARGE }],
  ['another method', `PATCH ${things}/a`, 405],
  ['another type', `POST ${things}`, 415, { type: 'text/plain' }],
  ['a bad id', 'POST /organizations/acme/things', 400],
  ['another site', `POST ${things}`, 403, { more: ['Origin: http://elsewhere.example'] }],
  ['a doubled header', `POST ${things}`, 400, { more: ['Host: localhost'] }],
  ['a conflict before the body is read', 'PUT /refused/before', 409, { type: octets }],
  ['a conflict while the body is read', 'PUT /refused/midway', 409, { type: octets }],
];

for (const [name, line, status, given] of refusals) {
  const framing = given?.length === undefined ? 'chunked' : 'with a length';
  t.test(`a client that writes all of its body first can read its refusal: ${name}, ${framing}`, async (t) => {
    const before = patient.logged.length;
    const client = rawConnection(patient.url, { reads: false });
    t.teardown(() => client.socket.destroy());
    client.send(head(line, given));
    client.send(given?.length === undefined ? chunk(LARGE) : Buffer.alloc(LARGE, 'x'));
    await until('it is refused', () => patient.logged.slice(before).some(({ msg }) => msg === 'request'));
    t.ok((await unwritten(client)) > 0, 'the rest is held up');
    t.equal(client.error(), undefined, 'and not refused with the connection');
    let text = '';
    client.socket.setEncoding('latin1').on('data', (part) => (text += part));
    await until('the half of the server is closed', () => client.ended());
    t.same(statusesOf(text), [status]);
    t.match(text, /\r\nConnection: close\r\n/i);
    t.match(text, /\r\n\r\n\{.*\}$/);
    t.equal(client.error(), undefined);
  });
}

t.test(
  'a short body that is not read does not spoil the response either, where the client wants no other',
  async (t) => {
    for (const line of ['POST /nowhere', 'PUT /refused/before']) {
      const client = rawConnection(hasty.url);
      t.teardown(() => client.socket.destroy());
      client.send(head(line, { type: octets, length: 900_000, more: ['Connection: close'] }));
      await client.receives(/\r\n\r\n\{.*\}$/);
      t.notOk(client.ended(), 'the rest is waited for');
      client.send(Buffer.alloc(900_000));
      await until('the server closes', () => client.ended());
      t.equal(client.error(), undefined);
    }
  },
);

/** Sends on until the connection is gone. */
async function isCut(client: RawConnection): Promise<void> {
  await until('it is cut', () => {
    if (!client.closed()) client.send('x');
    return client.closed();
  });
}

t.test('a client that neither finishes its body nor closes is cut', async (t) => {
  const refused = rawConnection(hasty.url);
  refused.send(head(`POST ${things}`, { length: LARGE }));
  await refused.receives(/^HTTP\/1\.1 413 /);
  await until('the half of the server is closed', () => refused.ended());
  await isCut(refused);

  const kept = rawConnection(hasty.url);
  kept.send(head('PUT /refused/before', { type: octets, length: 1000 }));
  await kept.receives(/^HTTP\/1\.1 409 [\s\S]*\}$/);
  t.notMatch(kept.received(), /connection: close/i, 'the next request would have been served');
  await until('the half of the server is closed', () => kept.ended());
  await isCut(kept);
  t.same(statusesOf(kept.received()), [409]);
});

t.test('what is sent after the last request of a connection is not served', async (t) => {
  const before = patient.logged.length;
  const client = rawConnection(patient.url);
  t.teardown(() => client.socket.destroy());
  const body = Buffer.alloc(MIB + 1, 'x');
  client.send(head(`POST ${things}`, { length: body.length }));
  await client.receives(/^HTTP\/1\.1 413 /);
  client.send(Buffer.concat([body, Buffer.from(`DELETE ${things}/a HTTP/1.1\r\nHost: localhost\r\n\r\n`)]));
  await until('the half of the server is closed', () => client.ended());
  t.same(statusesOf(client.received()), [413]);
  t.same(
    patient.logged.slice(before).flatMap(({ msg, method }) => (msg === 'request' ? [method] : [])),
    ['POST'],
  );
});

t.test('nothing is written into a response, or after the last one', async (t) => {
  const answered = rawConnection(patient.url);
  answered.send(head(`POST ${things}`, { type: 'text/plain' }));
  await answered.receives(/^HTTP\/1\.1 415 [\s\S]*\}$/);
  answered.send('no chunk\r\n');
  await until('the half of the server is closed', () => answered.ended());
  t.same(statusesOf(answered.received()), [415]);
  answered.socket.end();
  await until('both are', () => answered.closed());

  const streaming = rawConnection(patient.url);
  streaming.send('GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await streaming.receives(/begun/);
  streaming.send('NONSENSE\r\n\r\n');
  await until('it is cut', () => streaming.ended() || streaming.closed());
  t.same(statusesOf(streaming.received()), [200]);
  streaming.socket.destroy();

  const broken = rawConnection(patient.url);
  broken.send(head(`POST ${things}`));
  broken.send('no chunk\r\n');
  await until('the half of the server is closed', () => broken.ended());
  t.same(statusesOf(broken.received()), [400], 'before it there is room');
  broken.socket.end();
  await until('both are', () => broken.closed());
});
