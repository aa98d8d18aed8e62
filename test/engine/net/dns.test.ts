import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import ipaddr from 'ipaddr.js';
import t from 'tap';
import { createWebClient, nameResolver } from '../../../engine/net/index.ts';
import type { TearDown } from '../../support/database.ts';
import { allows, openSite, PUBLIC, refuses, textOf } from './support.ts';

const TYPES: Readonly<Record<number, 'ipv4' | 'ipv6'>> = { 1: 'ipv4', 28: 'ipv6' };
const NAME_ERROR = 3;

/** The name and the type of a question; names of tests are not compressed. */
function questionOf(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function record(address: ipaddr.IPv4 | ipaddr.IPv6, type: number): Buffer {
  const data = Buffer.from(address.toByteArray());
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** A DNS server on loopback whose records live for zero seconds. `answer` gives null for a name that it does not have, undefined for silence. */
async function openDns(
  t: TearDown,
  answer: (name: string, question: string) => readonly string[] | null | undefined,
): Promise<string> {
  const socket = createSocket('udp4');
  socket.on('message', (message, { port, address }) => {
    const { name, type, end } = questionOf(message);
    const known = answer(name, `${port} ${message.readUInt16BE(0)}`);
    if (known === undefined) return;
    const kind = TYPES[type];
    const records = (known ?? []).map((text) => ipaddr.parse(text)).filter((parsed) => parsed.kind() === kind);
    const head = Buffer.from(message.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (known === null ? NAME_ERROR : 0), 2);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    const parts = [head, message.subarray(12, end), ...records.map((parsed) => record(parsed, type))];
    socket.send(Buffer.concat(parts), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(async () => void (await new Promise<void>((resolve) => socket.close(resolve))));
  return `127.0.0.1:${socket.address().port}`;
}

t.test('names are resolved by DNS, both families at once', async (t) => {
  const server = await openDns(
    t,
    (name) => ({ 'both.example': ['192.0.2.1', '2001:db8::1'], 'six.example': ['::1'] })[name] ?? null,
  );
  const resolve = nameResolver([server]);
  t.same(await resolve('both.example'), ['192.0.2.1', '2001:db8::1']);
  t.same(await resolve('six.example'), ['::1']);
  await t.rejects(resolve('nothing.invalid'), { code: /ENOTFOUND|EAI_AGAIN/ });
});

t.test(
  'a name whose answer changes with each question is refused or asked at the address that was checked',
  async (t) => {
    const forbidden = await openSite(t, (_req, res) => res.end('secret'), '127.0.0.1');
    const site = await openSite(t, (_req, res) => res.setHeader('connection', 'close').end('public'));
    let questions = 0;
    // A question is two messages, one a family.
    const server = await openDns(t, () => (Math.floor(questions++ / 2) % 2 === 0 ? [PUBLIC] : ['127.0.0.1']));
    const client = createWebClient({ allows, resolve: nameResolver([server]), connectMs: 2_000 });
    t.teardown(() => client.close());
    for (let turn = 0; turn < 3; turn += 1) {
      const response = await client.fetch(`http://rebinding.example:${site.port}/`);
      t.equal(await textOf(response.body), 'public');
      await refuses(
        t,
        client.fetch(`http://rebinding.example:${forbidden.port}/`),
        'address_refused',
        'the private turn',
      );
    }
    t.equal(forbidden.connections(), 0);
    t.equal(site.connections(), 3);
  },
);

t.test('one private address among public ones is enough', async (t) => {
  const forbidden = await openSite(t, (_req, res) => res.end('secret'), '127.0.0.1');
  const server = await openDns(t, () => [PUBLIC, '127.0.0.1', '::ffff:127.0.0.1', 'fd00::1']);
  const client = createWebClient({ allows, resolve: nameResolver([server]) });
  t.teardown(() => client.close());
  await refuses(t, client.fetch(`http://mixed.example:${forbidden.port}/`), 'address_refused', 'mixed');
  t.equal(forbidden.connections(), 0);
});

t.test('a silent name server costs no more than the time of the request', async (t) => {
  const server = await openDns(t, () => undefined);
  const client = createWebClient({ allows, resolve: nameResolver([server]) });
  t.teardown(() => client.close());
  await refuses(t, client.fetch('http://silent.example/', { totalMs: 200 }), 'timed_out', 'silent');
});
