import { type ClientRequest, request } from 'node:http';

// Many readers of event streams, in a process of their own. Run by streams.ts.
const STAMP = '"updatedAt":"';
const EVENT = /(?:^|\n)id: (\S+)\nevent: chat\.message\n/;

/** A revision that came: its event id, when it came and when it was written, in milliseconds since 1970. */
export type Sample = Readonly<{ id: string; at: number; written: number }>;

const open: ClientRequest[] = [];
let samples: Sample[] = [];

function onData(chunk: Buffer): void {
  const at = performance.timeOrigin + performance.now();
  const text = chunk.toString('latin1');
  const [, id] = EVENT.exec(text) ?? [];
  const stamp = text.lastIndexOf(STAMP);
  if (id === undefined || stamp === -1) return;
  samples.push({ id, at, written: Date.parse(text.slice(stamp + STAMP.length, stamp + STAMP.length + 24)) });
}

/** Resolves with the first bytes, so that the stream is known to be open. */
function follow(url: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const outgoing = request(url, { agent: false }, (response) => {
    if (response.statusCode !== 200) reject(new Error(`${url}: ${response.statusCode}`));
    response.once('data', () => resolve());
    response.on('data', onData);
    response.on('error', () => {});
  });
  outgoing.on('error', reject);
  outgoing.end();
  open.push(outgoing);
  return promise;
}

type Ask = Readonly<{ follow?: readonly string[]; drop?: true; samples?: true }>;

async function respond(ask: Ask): Promise<unknown> {
  if (ask.follow) {
    const left = [...ask.follow];
    const lane = async () => {
      for (let url = left.pop(); url !== undefined; url = left.pop()) await follow(url);
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    return { open: open.length };
  }
  if (ask.drop) for (const outgoing of open.splice(0)) outgoing.destroy();
  const taken = samples;
  samples = [];
  return { samples: taken };
}

process.on('message', (ask: Ask) => {
  respond(ask).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => process.exit());
