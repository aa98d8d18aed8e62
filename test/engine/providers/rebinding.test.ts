// Addresses that a person or a server chooses, whose names respond with a public address and then with a private one.

import { getServers, setServers } from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t from 'tap';
import { nameResolver } from '../../../engine/net/index.ts';
import type { Access, Provider, ProviderContext } from '../../../engine/providers/index.ts';
import { clientFor, discoverAuthorization } from '../../../engine/providers/mcp/authorization.ts';
import { mcp } from '../../../engine/providers/mcp/index.ts';
import { site as mcpSite } from '../../../engine/providers/mcp/site.ts';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import { finishAuthorization, refreshTokens, revokeToken } from '../../../engine/providers/oauth/index.ts';
import type { ProviderError } from '../../../engine/providers/outgoing/index.ts';
import { upstashRedis } from '../../../engine/providers/upstash-redis/index.ts';
import { openDns } from '../net/dns_server.ts';
import { allows, openSite, PUBLIC } from '../net/support.ts';
import { openStandIn } from './mongo_stand_in.ts';
import { json, openClient } from './support.ts';

const PRIVATE = '127.0.0.1';

/** By the address that was connected to: one port of all of them. */
const reached = new Map<string | undefined, number>();
const server = createServer((socket) => {
  reached.set(socket.localAddress, (reached.get(socket.localAddress) ?? 0) + 1);
  socket.on('error', () => {});
  socket.resetAndDestroy();
});
server.listen(0, '0.0.0.0');
await once(server, 'listening');
t.teardown(() => server.close());
const { port } = server.address() as AddressInfo;
const rebinding = `https://rebinding.example:${port}`;

/** Both questions about a name, one a family, have the same answer; the next two have the other one. */
let questions = 0;
const dns = await openDns(t, (name) => {
  if (name === '_mongodb._tcp.cluster.rebinding.example') return [`shard.rebinding.example:${port}`];
  if (name === 'cluster.rebinding.example') return [];
  return Math.floor(questions++ / 2) % 2 === 0 ? [PUBLIC] : [PRIVATE];
});
// The driver of MongoDB asks the machine's own for SRV records.
const machine = getServers();
setServers([dns]);
t.teardown(() => setServers(machine));

/** A server of MCP at a public address: one path names its metadata, the other one its authorization server. */
const elsewhere = await openSite(t, ({ url = '' }, res) => {
  if (url.startsWith('/.well-known/')) {
    return json(res, 200, { resource: 'https://server.example/mcp', authorization_servers: [rebinding] });
  }
  const asked = url === '/mcp' ? 'Bearer' : `Bearer resource_metadata="${rebinding}/metadata"`;
  json(res, 401, {}, { 'www-authenticate': asked });
});
const origins = {
  'https://server.example': elsewhere.origin,
  // It takes no other port than that of https.
  'https://rebinding.upstash.io': rebinding,
};

const user = { kind: 'mongodb', username: 'a', password: 'b' };
const naming = await openStandIn(t, {
  ...user,
  address: PUBLIC,
  hello: { setName: 'rs', hosts: [`rebinding.example:${port}`], me: 'other.example:27017' },
});

const verified = (provider: Provider, access: Access) => (context: ProviderContext) => provider.verify(context, access);
const mongo = (place: object) => verified(mongodb, { credential: { ...user, ...place }, settings: null });

const client = { id: 'client', secret: undefined, authentication: 'post' } as const;
const oauth = {
  metadata: {
    issuer: 'https://server.example',
    token_endpoint: `${rebinding}/token`,
    registration_endpoint: `${rebinding}/register`,
    revocation_endpoint: `${rebinding}/revoke`,
  },
  site: mcpSite,
};
const redirectUri = 'https://runner.example/oauth/mcp/callback';
const pending = { state: 'state', verifier: 'v'.repeat(43), nonce: null };
const callback = new URLSearchParams({ code: 'code', state: pending.state });

const chosen: Readonly<Record<string, (context: ProviderContext) => Promise<unknown>>> = {
  'the server of MCP': verified(mcp, {
    credential: { kind: 'none' },
    settings: { kind: 'mcp', serverUrl: `${rebinding}/mcp` },
  }),
  'the metadata that a server of MCP names': (context) =>
    discoverAuthorization(context, 'https://server.example/other'),
  'the authorization server of one': (context) => discoverAuthorization(context, 'https://server.example/mcp'),
  'its registration of clients': (context) => {
    const found = { server: oauth, resource: 'https://server.example/mcp', scopes: [] };
    return clientFor(context, found, { configured: undefined, registered: undefined, redirectUri });
  },
  'its tokens': (context) => finishAuthorization(context, oauth, { client, callback, pending, redirectUri }),
  'its refreshed tokens': (context) => refreshTokens(context, oauth, { client, refreshToken: 'refresh' }),
  'its revocation': (context) => revokeToken(context, oauth, client, 'token'),
  'the address of Upstash Redis': verified(upstashRedis, {
    credential: { kind: 'bearer_token', token: 'token-0123456789' },
    settings: {
      kind: 'upstash_redis',
      restUrl: 'https://rebinding.upstash.io',
      keyScope: { kind: 'prefixes', prefixes: ['app:'] },
    },
  }),
  'the host of MongoDB': mongo({ host: 'rebinding.example', port, srv: false, tls: false }),
  'a host that SRV records of MongoDB name': mongo({ host: 'cluster.rebinding.example', srv: true, tls: true }),
  'a host that a server of MongoDB names': mongo({ host: PUBLIC, port: naming.port, srv: false, tls: false }),
};

for (const [name, call] of Object.entries(chosen)) {
  t.test(`${name}: each connection goes to the address that was checked, or nowhere`, async (test) => {
    reached.clear();
    questions = 0;
    const net = { resolve: nameResolver([dns]), allows, connectMs: 2_000 };
    const context = { client: openClient(test, origins, { allowPrivateAddresses: false, net }), account: 'a' };
    let reason: string | undefined;
    // What is sent once gets the private address in its second turn; all others when they try again.
    for (let turn = 0; turn < 2 && reason !== 'refused'; turn += 1) {
      reason = await call({ ...context, deadlineMs: 5_000 }).then(
        () => 'done',
        (error: ProviderError) => error.reason,
      );
    }
    test.equal(reason, 'refused', 'the private address');
    test.match(reached, new Map([[PUBLIC, Number]]), 'the public one was connected to');
    test.notOk(reached.has(PRIVATE), 'and the private one was not');
  });
}
