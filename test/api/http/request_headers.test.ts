import t from 'tap';
import { startTestApp } from '../../support/app.ts';
import { rawConnection, statusesOf } from '../../support/raw_connection.ts';
import { sampleEndpoints } from './endpoints.ts';

const app = await startTestApp(t, { endpoints: sampleEndpoints() });
const things = '/organizations/018f3c1e-7a2b-7c3d-8e4f-5a6b7c8d9e0f/things';
const { host } = new URL(app.url);
const BODY = '{"name":"a"}';

const plain: Readonly<Record<string, string>> = {
  Host: host,
  'Content-Type': 'application/json',
  'Content-Length': String(BODY.length),
};

type Answer = Readonly<{ status: number | undefined; issues: readonly { path: string; code: string }[] }>;

async function send(headers: Readonly<Record<string, string>>, more: readonly string[], given: object = {}) {
  const { line = `POST ${things} HTTP/1.1`, body = BODY } = given as { line?: string; body?: string };
  const client = rawConnection(app.url);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  client.send([line, ...lines, ...more, '', body].join('\r\n'));
  await client.receives(/\r\n\r\n\{[\s\S]*\}$/);
  client.socket.destroy();
  const { error } = JSON.parse(client.received().slice(client.received().indexOf('{')));
  const answer: Answer = { status: statusesOf(client.received())[0], issues: error?.issues ?? [] };
  return answer;
}

t.test('the request that all of these vary is fine', async (t) => {
  t.equal((await send(plain, [])).status, 201);
});

t.test('a header that decides something is refused when it is there twice, alike or not', async (t) => {
  const doubled: Readonly<Record<string, readonly string[]>> = {
    Host: [host, 'elsewhere.example'],
    Authorization: ['Bearer a', 'Bearer b'],
    Origin: [`http://${host}`, 'http://elsewhere.example'],
    'Sec-Fetch-Site': ['same-origin', 'cross-site'],
    'Content-Type': ['application/json', 'text/plain'],
    'Content-Encoding': ['identity', 'gzip'],
    Expect: ['100-continue', '100-continue'],
    Range: ['bytes=0-1', 'bytes=2-3'],
    'If-Range': ['"a"', '"b"'],
    'Idempotency-Key': ['a', 'b'],
    'Last-Event-ID': ['a', 'b'],
    'X-Organization-Id': ['a', 'b'],
    'X-Lease-Token': ['a', 'b'],
  };
  for (const [name, [one = '', other = '']] of Object.entries(doubled)) {
    const { [name]: _own, ...others } = plain;
    for (const second of [one, other]) {
      const answer = await send(others, [`${name}: ${one}`, `${name.toLowerCase()}: ${second}`]);
      t.same(answer, {
        status: 400,
        issues: [{ path: name.toLowerCase(), message: 'is sent twice', code: 'doubled_header' }],
      });
    }
  }
  const elsewhere = await send(plain, ['hOST: b'], { line: 'POST /nowhere HTTP/1.1' });
  t.match(elsewhere, { status: 400, issues: [{ code: 'doubled_header' }] }, 'on unknown paths too');
  t.equal((await send(plain, ['Accept: a', 'Accept: b', 'X-Forwarded-For: a', 'X-Forwarded-For: b'])).status, 201);
});

t.test('where a body ends is never in doubt', async (t) => {
  const { 'Content-Length': _, ...chunked } = plain;
  const body = `c\r\n${BODY}\r\n0\r\n\r\n`;
  t.equal((await send(chunked, ['Transfer-Encoding: Chunked'], { body })).status, 201);
  const lines: readonly (readonly [string, number, readonly string[]])[] = [
    ['two lengths', 400, [`Content-Length: ${BODY.length}`]],
    ['a length of other signs', 400, ['Content-Length: +12']],
    ['a list of lengths', 400, ['Content-Length: 12, 12']],
    ['a length and a coding', 400, ['Transfer-Encoding: chunked']],
    ['a length and no coding', 400, ['Transfer-Encoding: identity']],
  ];
  for (const [name, status, more] of lines) t.equal((await send(plain, more, { body })).status, status, name);
  const codings: readonly (readonly [string, number])[] = [
    ['gzip, chunked', 415],
    ['chunked, chunked', 400],
    ['chunked, gzip', 400],
    ['identity', 400],
    ['xchunked', 400],
    ['\x0bchunked', 400],
  ];
  for (const [coding, status] of codings) {
    t.equal((await send(chunked, [`Transfer-Encoding: ${coding}`], { body })).status, status, coding);
  }
  const twice = ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'];
  t.equal((await send(chunked, twice, { body })).status, 400);
  const old = await send(chunked, ['Transfer-Encoding: chunked'], { body, line: `POST ${things} HTTP/1.0` });
  t.match(old, { status: 400, issues: [{ path: 'Transfer-Encoding' }] });
});

t.test('a request without a Host, or of another protocol, is refused in an envelope', async (t) => {
  const { Host: _, ...nameless } = plain;
  t.match(await send(nameless, []), { status: 400, issues: [{ path: 'Host', code: 'invalid_type' }] });
  const version = await send(plain, [], { line: `POST ${things} HTTP/2.0` });
  t.match(version, { status: 400, issues: [{ code: 'invalid_version' }] });
});
