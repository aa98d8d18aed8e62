import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import t, { type Test } from 'tap';
import { metricsAccess } from '../../../engine/monitoring/access.ts';

const TOKEN = 'metrics-token-of-the-tests-0123456789';

/** A server on every address of the machine that says whom it would let in. */
async function serve(t: Test, tokens: readonly string[], ownPort: boolean) {
  const refusal = metricsAccess(tokens, { ownPort });
  const server = createServer((req: IncomingMessage, res) => res.end(refusal(req) ?? 'granted'));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  return (host: string, headers: Record<string, string> = {}) =>
    new Promise<string>((resolve, reject) => {
      const sent = request({ host, port, headers, agent: false }, (res) => {
        res.setEncoding('utf8').once('data', resolve);
      });
      sent.on('error', reject).end();
    });
}

const others = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .filter(({ family, internal }) => family === 'IPv4' && !internal);

t.test('without tokens, whoever asks on this machine, and nobody whom a proxy or a rebound name brings', async (t) => {
  const ask = await serve(t, [], false);
  t.equal(await ask('127.0.0.1'), 'granted');
  t.equal(await ask('127.0.0.1', { host: 'localhost:3000' }), 'granted');
  t.equal(await ask('127.0.0.1', { authorization: `Bearer ${TOKEN}` }), 'granted');
  const refused = /^Metrics are for this machine: set METRICS_TOKENS or METRICS_PORT\.$/;
  for (const headers of [
    { 'x-forwarded-for': '203.0.113.9' },
    { 'x-forwarded-host': 'example.org' },
    { 'x-real-ip': '203.0.113.9' },
    { forwarded: 'for=203.0.113.9' },
    { via: '1.1 proxy' },
    { host: 'rebound.example' },
  ]) {
    t.match(await ask('127.0.0.1', headers), refused, JSON.stringify(headers));
  }
  for (const { address } of others) t.match(await ask(address), refused, address);
});

t.test('with tokens, whoever has one, wherever they ask', async (t) => {
  for (const ownPort of [false, true]) {
    const ask = await serve(t, ['x'.repeat(32), TOKEN], ownPort);
    t.equal(await ask('127.0.0.1', { authorization: `Bearer ${TOKEN}`, 'x-forwarded-for': '203.0.113.9' }), 'granted');
    t.equal(await ask('127.0.0.1'), 'A bearer token is required.');
    t.equal(await ask('127.0.0.1', { authorization: `Bearer ${TOKEN}x` }), 'The bearer token is not valid.');
  }
});

t.test('at a port of their own without tokens, whoever reaches it', async (t) => {
  const ask = await serve(t, [], true);
  t.equal(await ask('127.0.0.1', { 'x-forwarded-for': '203.0.113.9' }), 'granted');
  for (const { address } of others) t.equal(await ask(address), 'granted');
});
