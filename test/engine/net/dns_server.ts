import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import ipaddr from 'ipaddr.js';
import type { TearDown } from '../../support/database.ts';

const TYPES: Readonly<Record<number, 'ipv4' | 'ipv6'>> = { 1: 'ipv4', 28: 'ipv6' };
const SRV = 33;
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

/** A server and its port, without priority and weight. */
function srvData(text: string): Buffer {
  const [target = '', port] = text.split(':');
  const numbers = Buffer.alloc(6);
  numbers.writeUInt16BE(Number(port), 4);
  const labels = target.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  return Buffer.concat([numbers, ...labels, Buffer.alloc(1)]);
}

/** What of the known texts answers a question of this type: `host:port` is of SRV, all others are addresses. */
function dataOf(known: readonly string[], type: number): Buffer[] {
  const isSrv = (text: string) => !ipaddr.isValid(text);
  if (type === SRV) return known.filter(isSrv).map(srvData);
  const addresses = known.filter((text) => !isSrv(text)).map((text) => ipaddr.parse(text));
  return addresses.filter((parsed) => parsed.kind() === TYPES[type]).map((parsed) => Buffer.from(parsed.toByteArray()));
}

function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** A DNS server on loopback whose records live for zero seconds. `answer` gives null for a name that it does not have, undefined for silence. */
export async function openDns(
  t: TearDown,
  answer: (name: string, question: string) => readonly string[] | null | undefined,
): Promise<string> {
  const socket = createSocket('udp4');
  socket.on('message', (message, { port, address }) => {
    const { name, type, end } = questionOf(message);
    const known = answer(name, `${port} ${message.readUInt16BE(0)}`);
    if (known === undefined) return;
    const records = dataOf(known ?? [], type).map((data) => record(type, data));
    const head = Buffer.from(message.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (known === null ? NAME_ERROR : 0), 2);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    socket.send(Buffer.concat([head, message.subarray(12, end), ...records]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(async () => void (await new Promise<void>((resolve) => socket.close(resolve))));
  return `127.0.0.1:${socket.address().port}`;
}
