// Addresses that a person chooses, whose names respond with a public address and then with a private one.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import t from 'tap';
import type { Access, Provider } from '../../../engine/providers/index.ts';
import { mcp } from '../../../engine/providers/mcp/index.ts';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import type { ProviderError } from '../../../engine/providers/outgoing/index.ts';
import { upstashRedis } from '../../../engine/providers/upstash-redis/index.ts';
import { allows, PUBLIC } from '../net/support.ts';
import { openClient } from './support.ts';

let reached = 0;
const forbidden = createServer((socket) => {
  reached += 1;
  socket.destroy();
});
forbidden.listen(0, '127.0.0.1');
await once(forbidden, 'listening');
t.teardown(() => forbidden.close());
const { port } = forbidden.address() as AddressInfo;

const mongo = {
  kind: 'mongodb',
  host: 'rebinding.example',
  port,
  srv: false,
  tls: false,
  username: 'a',
  password: 'b',
};
const chosen: Readonly<Record<string, readonly [Provider, Access]>> = {
  'the server of MCP': [
    mcp,
    { credential: { kind: 'none' }, settings: { kind: 'mcp', serverUrl: `https://rebinding.example:${port}/mcp` } },
  ],
  'the address of Upstash Redis': [
    upstashRedis,
    {
      credential: { kind: 'bearer_token', token: 'token-0123456789' },
      settings: {
        kind: 'upstash_redis',
        restUrl: 'https://rebinding.upstash.io',
        keyScope: { kind: 'prefixes', prefixes: ['app:'] },
      },
    },
  ],
  'the host of MongoDB': [
    mongodb,
    { credential: mongo, settings: { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] } },
  ],
};

for (const [name, [provider, access]] of Object.entries(chosen)) {
  t.test(`${name}: each connection goes to the address that was checked, or nowhere`, async (test) => {
    const questions: string[] = [];
    let isPrivate = false;
    const resolve = async (host: string) => {
      questions.push(host);
      const answer = isPrivate ? '127.0.0.1' : PUBLIC;
      isPrivate = !isPrivate;
      return [answer];
    };
    const client = openClient(test, {}, { allowPrivateAddresses: false, net: { resolve, allows, connectMs: 500 } });
    for (let turn = 0; turn < 4; turn += 1) {
      const context = { client, account: 'a', deadlineMs: 3_000 };
      const error = await provider.verify(context, access).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      // Nobody is at the public address; the private one is not even tried.
      test.match((error as ProviderError | undefined)?.reason, /^(unavailable|refused)$/);
    }
    test.ok(questions.length >= 4, `${questions.length} questions`);
    test.equal(reached, 0);
  });
}
