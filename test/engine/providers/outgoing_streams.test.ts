import { once } from 'node:events';
import { Readable } from 'node:stream';
import t from 'tap';
import { type Site, withoutDomains } from '../../../engine/providers/outgoing/index.ts';
import { bytesOf } from './google_workspace_support.ts';
import { fails, json, openClient, openServer } from './support.ts';

const ORIGIN = 'https://api.example.com';
const site: Site = { provider: 'example', origins: [ORIGIN] };
const buckets = [{ key: 'example:account:1', capacity: 10, perSecond: 1 }];
const at = (path: string) => ({ url: ORIGIN + path, buckets, idleMs: 5_000, totalMs: 10_000 });

t.test('a response is a stream, in its budget, counted, and bounded', async (test) => {
  const server = await openServer(test, (_call, res) => {
    res.writeHead(200, { 'content-type': 'application/octet-stream' });
    res.write('x'.repeat(5_000), () => res.end('y'.repeat(5_000)));
  });
  const client = openClient(test, { [ORIGIN]: server.origin });
  const whole = await client.open(site, { ...at('/a?b=c'), headers: { authorization: 'Bearer x' }, maxBytes: 10_000 });
  test.equal((await bytesOf(whole.body)).toString(), 'x'.repeat(5_000) + 'y'.repeat(5_000));
  test.match(server.calls, [{ method: 'GET', headers: { authorization: 'Bearer x', 'accept-encoding': 'identity' } }]);
  test.match(client.observed, [{ outcome: 'ok', status: 200, target: 'api.example.com/a' }]);
  test.same(client.taken, [buckets]);
  const bounded = await client.open(site, { ...at('/a'), maxBytes: 9_999 });
  await fails(test, bytesOf(bounded.body), 'too_large', 'a byte more');
});

t.test('a body is sent as it is made, and one of another length is not taken', async (test) => {
  const server = await openServer(test, ({ body }) => ({ length: body.length }));
  const client = openClient(test, { [ORIGIN]: server.origin });
  async function* pieces() {
    for (let number = 0; number < 40; number += 1) yield Buffer.alloc(50_000, 'a');
  }
  const send = (length: number) =>
    client.open(site, {
      ...at('/a'),
      method: 'POST',
      headers: { 'content-length': String(length) },
      body: Readable.from(pieces(), { objectMode: false }),
    });
  const { body } = await send(2_000_000);
  test.same(JSON.parse((await bytesOf(body)).toString()), { length: 2_000_000 });
  test.equal(server.calls[0]?.headers['content-length'], '2000000');
  for (const length of [1_999_999, 2_000_001]) await test.rejects(send(length), `${length}`);
  test.equal(server.calls.length, 1);
});

t.test('a refusal has its reason and is not tried again, however long it is', async (test) => {
  let status = 503;
  const server = await openServer(test, (_call, res) => {
    if (status !== 400) return json(res, status, { error: 'x' }, { 'retry-after': '40' }) ?? undefined;
    res.writeHead(400, { 'content-type': 'application/json' });
    const more = () => void (res.destroyed || res.write('x'.repeat(65_536), more));
    more();
    return undefined;
  });
  const client = openClient(test, { [ORIGIN]: server.origin });
  for (const [code, reason] of [
    [503, 'unavailable'],
    [401, 'rejected'],
    [429, 'rate_limited'],
    [400, 'failed'],
  ] as const) {
    status = code;
    const before = server.calls.length;
    const error = await fails(test, client.open(site, at('/a')), reason, reason);
    test.equal(error.status, code);
    test.equal(server.calls.length, before + 1);
  }
  test.equal(client.postponed.length, 3, 'where it says when to come again, the budget is held');
});

t.test('a server that stalls or breaks off is one that is unavailable', async (test) => {
  const server = await openServer(test, async ({ url }, res) => {
    res.writeHead(200, { 'content-type': 'text/plain', 'content-length': '9' });
    res.write('abc', () => void (url.pathname === '/cut' && res.destroy()));
    await once(res, 'close');
    return undefined;
  });
  const client = openClient(test, { [ORIGIN]: server.origin });
  const slow = await client.open(site, { ...at('/slow'), idleMs: 100 });
  await fails(test, bytesOf(slow.body), 'unavailable', 'no next bytes');
  const late = await client.open(site, { ...at('/slow'), totalMs: 100 });
  await fails(test, bytesOf(late.body), 'unavailable', 'too long');
  const cut = await client.open(site, at('/cut'));
  await fails(test, bytesOf(cut.body), 'unavailable', 'cut');
  const controller = new AbortController();
  const reason = new Error('gone');
  const left = await client.open(site, { ...at('/slow'), signal: controller.signal });
  controller.abort(reason);
  await test.rejects(bytesOf(left.body), reason);
});

t.test('the guard is that of all requests', async (test) => {
  const other = await openServer(test, () => ({}));
  const server = await openServer(
    test,
    (_call, res) => void res.writeHead(302, { location: `${other.origin}/` }).end(),
  );
  const client = openClient(test, { [ORIGIN]: server.origin });
  await fails(test, client.open(site, at('/a')), 'failed', 'a redirect to another server');
  await fails(test, client.open(site, { ...at(''), url: 'https://other.example/' }), 'refused', 'another origin');
  await fails(test, withoutDomains(client, ['example.com']).open(site, at('/a')), 'blocked', 'a blocked domain');
  test.equal(other.calls.length, 0);
  const used = openClient(test, { [ORIGIN]: server.origin }, { take: () => new Date(Date.now() + 60_000) });
  await fails(test, used.open(site, at('/a')), 'rate_limited', 'no budget');
});
