import { Writable } from 'node:stream';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import t from 'tap';
import { z } from 'zod';
import {
  callObserver,
  type ProviderRequest,
  type Site,
  withoutDomains,
} from '../../../engine/providers/outgoing/index.ts';
import { until } from '../../support/wait.ts';
import { fails, json, openClient, openServer } from './support.ts';

const ORIGIN = 'https://api.example.com';
const site: Site = { provider: 'example', origins: [ORIGIN] };
const buckets = [{ key: 'example:account:1', capacity: 10, perSecond: 1 }];
const read = (path: string, more: Partial<ProviderRequest> = {}): ProviderRequest => ({
  effect: 'read',
  url: ORIGIN + path,
  buckets,
  ...more,
});

t.test('a response is read by its schema, from the origin that stands in', async (test) => {
  const server = await openServer(test, () => ({ id: 'a', more: 1 }));
  const client = openClient(test, { [ORIGIN]: server.origin });
  const headers = { authorization: 'Bearer x' };
  test.same(await client.json(site, read('/v1/a?b=c', { headers }), z.object({ id: z.string() })), { id: 'a' });
  test.match(server.calls, [{ method: 'GET', headers: { authorization: 'Bearer x', accept: 'application/json' } }]);
  test.equal(server.calls[0]?.url.href, 'http://server/v1/a?b=c');
  test.match(client.observed, [{ provider: 'example', target: 'api.example.com/v1/a', outcome: 'ok', status: 200 }]);
  test.same(client.taken, [buckets]);
  test.equal(client.browserUrl(new URL(`${ORIGIN}/authorize?a=b`)).href, `${server.origin}/authorize?a=b`);
});

t.test('texts of a response are without what cannot be stored', async (test) => {
  const server = await openServer(test, () => ({ id: 'a\0b\ud800c😀', 'n\0': '\\u0000' }));
  const client = openClient(test, { [ORIGIN]: server.origin });
  const found = await client.json(site, read('/v1/a'), z.record(z.string(), z.string()));
  test.same(found, { id: 'ab\ufffdc😀', 'n\0': '\\u0000' });
});

t.test('nothing is sent to an origin that is none of the provider', async (test) => {
  const server = await openServer(test, () => ({}));
  const client = openClient(test, { 'https://other.example': server.origin });
  for (const url of ['https://other.example/a', `${server.origin}/a`, 'http://api.example.com/a']) {
    await fails(test, client.send(site, { ...read(''), url }), 'refused', url);
  }
  test.equal(server.calls.length, 0);
});

t.test('an address that somebody chose is https and public', async (test) => {
  const server = await openServer(test, () => ({}));
  const chosen: Site = { provider: 'example', origins: 'chosen' };
  const client = openClient(test, {}, { allowPrivateAddresses: false, net: { resolve: async () => ['127.0.0.1'] } });
  const { port } = new URL(server.origin);
  for (const url of [
    server.origin,
    `https://127.0.0.1:${port}/`,
    `https://rebound.example:${port}/`,
    `https://user:pass@rebound.example:${port}/`,
    'ftp://rebound.example/',
    'https://[::ffff:127.0.0.1]/',
  ]) {
    await fails(test, client.send(chosen, { ...read(''), url }), 'refused', url);
  }
  test.equal(server.calls.length, 0);
  const local = openClient(test, {});
  test.equal((await local.send(chosen, { ...read(''), url: server.origin })).status, 200, 'loopback in tests');
  await fails(test, local.send(chosen, { ...read(''), url: 'http://server.example/' }), 'refused', 'http elsewhere');
  test.notOk(JSON.stringify(local.observed).includes('/?'), 'no path of a chosen address');
});

t.test('a domain that the organization blocks is sent nothing, nor what lies below it', async (test) => {
  const server = await openServer(test, () => ({}));
  const chosen: Site = { provider: 'example', origins: 'chosen' };
  const origins = { [ORIGIN]: server.origin, 'https://other.example': server.origin };
  const client = withoutDomains(openClient(test, origins), ['Example.com.', '']);
  for (const url of [ORIGIN, 'https://EXAMPLE.com/', 'https://a.b.example.com./', 'https://example.com:8443/']) {
    await fails(test, client.send(chosen, { ...read(''), url }), 'blocked', url);
    await fails(test, client.json(chosen, { ...read(''), url }, z.unknown()), 'blocked', url);
    test.throws(() => client.secureUrl('example', url), { message: /blocks the domain/ });
  }
  await fails(test, client.connect('example', 'db.example.com', 27_017), 'blocked', 'a connection');
  const call = { provider: 'example', method: 'SESSION', target: 'db.example.com', buckets };
  await fails(
    test,
    client.counted(call, async () => 1),
    'blocked',
    'a session',
  );
  test.equal(server.calls.length, 0);
  test.equal((await client.send(chosen, { ...read(''), url: 'https://other.example' })).status, 200);
});

t.test('a redirect stays at its origin, and the credential with it', async (test) => {
  const other = await openServer(test, () => ({ stolen: true }));
  const server = await openServer(test, ({ url }, res) => {
    if (url.pathname === '/here') res.writeHead(302, { location: '/there' }).end();
    else if (url.pathname === '/away') res.writeHead(307, { location: `${other.origin}/` }).end();
    else if (url.pathname === '/metadata') res.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    else return { path: url.pathname };
    return undefined;
  });
  const client = openClient(test, { [ORIGIN]: server.origin });
  test.equal((await client.send(site, read('/here'))).status, 200);
  await fails(test, client.send(site, read('/away')), 'failed', 'another origin');
  await fails(test, client.send(site, read('/metadata')), 'failed', 'a private address');
  await fails(test, client.send(site, read('/here', { method: 'POST', effect: 'write' })), 'failed', 'of a write');
  test.equal(other.calls.length, 0);
});

t.test('reads are tried again and writes are not', async (test) => {
  let failures = 0;
  const server = await openServer(test, (_call, res) => {
    if (failures === 0) return { id: 1 };
    failures -= 1;
    json(res, 502, {});
    return undefined;
  });
  const client = openClient(test, { [ORIGIN]: server.origin });
  failures = 2;
  test.equal((await client.send(site, read('/a'))).status, 200);
  test.same(
    client.observed.map(({ outcome, attempt }) => [attempt, outcome]),
    [
      [1, 'unavailable'],
      [2, 'unavailable'],
      [3, 'ok'],
    ],
  );
  failures = 9;
  await fails(test, client.send(site, read('/a')), 'unavailable', 'in vain');
  test.equal(server.calls.length, 6, 'at most three times');
  await fails(test, client.send(site, read('/a', { effect: 'write', method: 'POST' })), 'unavailable', 'write');
  test.equal(server.calls.length, 7);
});

t.test('a limit is told to all processes, and waited for where that is short', async (test) => {
  const now = Date.parse('2026-11-29T12:00:00Z');
  let header: Record<string, string> = { 'retry-after': '120' };
  let limited = 1;
  const server = await openServer(test, (_call, res) => {
    if (limited === 0) return {};
    limited -= 1;
    json(res, 429, { error: 'secret text' }, header);
    return undefined;
  });
  const client = openClient(test, { [ORIGIN]: server.origin }, { now: () => now });
  const long = await fails(test, client.send(site, read('/a')), 'rate_limited', 'two minutes');
  test.same(long.retryNotBefore, new Date(now + 120_000));
  test.same(client.postponed, [{ keys: ['example:account:1'], until: new Date(now + 120_000) }]);
  limited = 1;
  header = { 'retry-after': 'Sun, 29 Nov 2026 12:00:30 GMT' };
  const date = await fails(test, client.send(site, read('/a')), 'rate_limited', 'a date');
  test.same(date.retryNotBefore, new Date(now + 30_000));
  limited = 1;
  header = {};
  const silent = await fails(test, client.send(site, read('/a')), 'rate_limited', 'without a word');
  test.same(silent.retryNotBefore, new Date(now + 60_000));
  limited = 1;
  header = { 'retry-after': '0' };
  test.equal((await client.send(site, read('/a'))).status, 200, 'waited for');
  limited = 1;
  header = { 'retry-after': '99999999' };
  const forever = await fails(test, client.send(site, read('/a')), 'rate_limited', 'years');
  test.same(forever.retryNotBefore, new Date(now + 24 * 60 * 60_000), 'at most a day');
});

t.test('what all organizations share is held for a minute at most', async (test) => {
  const now = 1_000_000;
  const server = await openServer(test, (_call, res) => {
    json(res, 429, {}, { 'retry-after': '86400' });
    return undefined;
  });
  const client = openClient(test, { [ORIGIN]: server.origin }, { now: () => now });
  const own = { key: 'example:account:1', capacity: 1, perSecond: 1 };
  const shared = { key: 'example:oauth', capacity: 1, perSecond: 1, isShared: true };
  const request = read('/a', { effect: 'write', method: 'POST', buckets: [own, shared] });
  await fails(test, client.send(site, request), 'rate_limited', 'a day');
  test.same(client.postponed, [
    { keys: [own.key], until: new Date(now + 86_400_000) },
    { keys: [shared.key], until: new Date(now + 60_000) },
  ]);
});

t.test('a response is looked at chunk by chunk, each once, until it is complete', async (test) => {
  const server = await openServer(test, async (_call, res) => {
    for (let number = 0; number < 64; number += 1) {
      await new Promise((written) => res.write('x'.repeat(4_096), written));
    }
    res.write('end');
    return undefined;
  });
  const client = openClient(test, { [ORIGIN]: server.origin });
  let made = 0;
  let seen = 0;
  const isComplete = () => {
    made += 1;
    return (chunk: Uint8Array) => {
      seen += chunk.length;
      return chunk.at(-1) === 'd'.charCodeAt(0);
    };
  };
  const { body } = await client.send(site, read('/a', { isComplete }));
  test.equal(made, 1);
  test.equal(seen, body.length);
  test.equal(body.length, 64 * 4_096 + 3);
});

t.test('a 403 with a rate reason is a limit', async (test) => {
  const server = await openServer(test, (_call, res) => json(res, 403, { reason: 'rateLimitExceeded' }));
  const client = openClient(test, { [ORIGIN]: server.origin });
  const limiting: Site = {
    ...site,
    readRefusal: ({ json: body }) => ({
      reason: JSON.stringify(body).includes('rateLimit') ? 'rate_limited' : undefined,
      code: 'rateLimitExceeded',
    }),
  };
  const error = await fails(test, client.send(limiting, read('/a')), 'rate_limited', '403');
  test.match(error, { status: 403, code: 'rateLimitExceeded' });
  await fails(test, client.send(site, read('/a')), 'forbidden', 'without it');
});

t.test('without a budget nothing is sent', async (test) => {
  const server = await openServer(test, () => ({}));
  const until = new Date(Date.now() + 60_000);
  const client = openClient(test, { [ORIGIN]: server.origin }, { take: () => until });
  const error = await fails(test, client.send(site, read('/a')), 'rate_limited', 'used up');
  test.same(error.retryNotBefore, until);
  test.match(client.observed, [{ outcome: 'throttled', status: undefined }]);
  test.equal(server.calls.length, 0);
});

t.test('each fault has its reason, and no text of the provider goes further', async (test) => {
  const faults: Record<string, [Parameters<typeof json>[1] | 'text' | 'slow' | 'cut' | 'large', string]> = {
    '/401': [401, 'rejected'],
    '/403': [403, 'forbidden'],
    '/404': [404, 'not_found'],
    '/400': [400, 'failed'],
    '/500': [500, 'unavailable'],
    '/text': ['text', 'failed'],
    '/slow': ['slow', 'unavailable'],
    '/cut': ['cut', 'unavailable'],
    '/large': ['large', 'too_large'],
  };
  const PLANTED = 'planted-4711';
  const server = await openServer(test, ({ url }, res) => {
    const [fault] = faults[url.pathname] ?? ['text'];
    if (typeof fault === 'number') json(res, fault, { error: { code: PLANTED.repeat(20), message: PLANTED } });
    else if (fault === 'text') res.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${PLANTED}`);
    else if (fault === 'large') json(res, 200, { text: PLANTED.repeat(10_000) });
    else if (fault === 'cut') {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      res.write(`{"a": "${PLANTED}`, () => res.destroy());
    }
  });
  const lines: string[] = [];
  const registry = new Registry();
  const log = pino(
    { level: 'debug' },
    new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) }),
  );
  const observe = callObserver(registry, log);
  const client = openClient(test, { [ORIGIN]: server.origin });
  for (const [path, [, reason]] of Object.entries(faults)) {
    const request = read(`${path}?key=${PLANTED}`, { totalMs: path === '/slow' ? 100 : 5_000, maxBytes: 10_000 });
    const error = await fails(test, client.json(site, request, z.object({ id: z.string() })), reason as never, path);
    test.notMatch(JSON.stringify([error, error.message, error.stack]), PLANTED);
  }
  client.observed.forEach(observe);
  test.notMatch(lines.join(''), PLANTED);
  const metrics = await registry.metrics();
  test.match(metrics, 'provider_requests_total{provider="example",outcome="rejected"} 1');
  test.notMatch(metrics, PLANTED);
});

t.test('who stops waiting gets their own reason, in a request and in a pause', async (test) => {
  const controller = new AbortController();
  const reason = new Error('gone');
  const server = await openServer(test, () => void controller.abort(reason));
  const client = openClient(test, { [ORIGIN]: server.origin });
  await test.rejects(client.send(site, read('/a', { signal: controller.signal })), reason);
  const later = new AbortController();
  const limiting = await openServer(test, (_call, res) => json(res, 503, {}));
  const pausing = openClient(test, { [ORIGIN]: limiting.origin }, { random: () => 1 });
  const sent = pausing.send(site, read('/a', { signal: later.signal }));
  void until('a failure', () => pausing.observed.length > 0).then(() => later.abort(reason));
  await test.rejects(sent, reason);
  test.equal(limiting.calls.length, 1);
});
