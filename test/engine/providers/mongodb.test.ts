import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { SocksClient } from 'socks';
import type * as Tap from 'tap';
import t from 'tap';
import { addFieldNames } from '../../../engine/providers/mongodb/fields.ts';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import { openSocksProxy } from '../../../engine/providers/mongodb/socks_proxy.ts';
import { ProviderError } from '../../../engine/providers/outgoing/index.ts';
import { openStandIn } from './mongo_stand_in.ts';
import { fails, openClient } from './support.ts';

const user = { username: 'reader', password: 'pass-word-4711' };
const credentialAt = (port: number, more = {}) => ({
  kind: 'mongodb',
  host: '127.0.0.1',
  port,
  srv: false,
  ...user,
  tls: false,
  ...more,
});
const settings = { kind: 'mongodb', databaseName: 'shop', collections: [] };

/** Sends back what it gets. */
async function openEcho(test: Tap.Test): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => void server.close());
  return (server.address() as AddressInfo).port;
}

t.test('the proxy connects where the guard lets it, for who has its password', async (test) => {
  const port = await openEcho(test);
  const asked: string[] = [];
  await using proxy = await openSocksProxy(async (host, to) => {
    asked.push(`${host}:${to}`);
    if (host === 'private.example') throw new ProviderError('mongodb', 'refused', 'no');
    return connect(to, '127.0.0.1');
  }, 100);
  const { proxyHost: host, proxyPort, proxyUsername: userId, proxyPassword: password } = proxy.options;
  const open = (destination: { host: string; port: number }, secret = password) =>
    SocksClient.createConnection({
      command: 'connect',
      destination,
      proxy: { host, port: proxyPort, type: 5, userId, password: secret },
      timeout: 5_000,
    });
  const { socket } = await open({ host: 'db.example', port });
  socket.write('hello');
  const [echoed] = await once(socket, 'data');
  test.equal(String(echoed), 'hello');
  await test.rejects(open({ host: 'private.example', port }));
  test.equal((await proxy.refused).reason, 'refused');
  await test.rejects(open({ host: 'db.example', port }, 'x'.repeat(password.length)), 'another password');
  await test.rejects(open({ host: 'db.example', port: 25 }), 'a port of other protocols');
  test.same(asked, [`db.example:${port}`, `private.example:${port}`]);
  // More than may be read ends the connection.
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write('x'.repeat(200));
  socket.resume();
  await closed;
});

t.test('user and password are verified by the official driver', async (test) => {
  const server = await openStandIn(test, user);
  const client = openClient(test, {});
  const context = { client, account: 'i1' };
  const account = await mongodb.verify(context, { credential: credentialAt(server.port), settings: null });
  test.same(account, { subject: `127.0.0.1:${server.port}/admin.reader`, label: '…der@127.0.0.1' });
  test.match(client.observed, [{ provider: 'mongodb', target: '127.0.0.1', outcome: 'ok' }]);
  const wrong = { credential: credentialAt(server.port, { password: 'wrong-password' }), settings: null };
  const error = await fails(test, mongodb.verify(context, wrong), 'rejected', 'another password');
  test.equal(error.code, 'AuthenticationFailed');
  test.notMatch(error.message, 'planted');
});

t.test('collections come with the dotted names of their fields, and no values', async (test) => {
  const server = await openStandIn(test, {
    ...user,
    collections: {
      orders: [
        { _id: 1, customer: { name: 'planted-4711', tags: ['a'] } },
        { _id: 2, lines: [{ sku: 'x', n: 1 }] },
      ],
      'system.views': [],
      customers: [],
    },
  });
  const context = { client: openClient(test, {}), account: 'i1' };
  const access = { credential: credentialAt(server.port), settings };
  const found = await mongodb.discover(context, access);
  test.same(found, {
    items: [
      { name: 'customers', fields: [] },
      {
        name: 'orders',
        fields: ['_id', 'customer', 'customer.name', 'customer.tags', 'lines', 'lines.n', 'lines.sku'],
      },
    ],
    truncated: false,
    partial: false,
  });
  test.match(
    server.commands.find((command) => 'listCollections' in command),
    { nameOnly: true, authorizedCollections: true, $db: 'shop' },
  );
  test.match(
    server.commands.find((command) => 'aggregate' in command),
    { maxTimeMS: 2_000 },
  );
  test.match(mongodb.checkSettings({ ...settings, collections: ['orders', 'x'] }, found), [
    { path: ['collections', 1] },
  ]);
  await fails(test, mongodb.discover(context, { ...access, settings: null }), 'refused', 'without a database');
});

t.test('what a user may not do is told from what the server cannot do', async (test) => {
  let reply = { ok: 0, code: 13, codeName: 'Unauthorized', errmsg: 'planted-4711' };
  const server = await openStandIn(test, {
    ...user,
    reply: (command) => ('listCollections' in command ? reply : undefined),
  });
  const context = { client: openClient(test, {}), account: 'i1' };
  const access = { credential: credentialAt(server.port), settings };
  await fails(test, mongodb.discover(context, access), 'forbidden', 'Unauthorized');
  reply = { ok: 0, code: 13, codeName: user.password, errmsg: 'planted-4711' };
  const echoed = await fails(test, mongodb.discover(context, access), 'forbidden', 'a password for a code');
  test.equal(echoed.code, undefined);
  reply = { ok: 0, code: 50, codeName: 'MaxTimeMSExpired', errmsg: 'planted-4711' };
  await fails(test, mongodb.discover(context, access), 'unavailable', 'MaxTimeMSExpired');
});

t.test('a private server is not connected to, whoever names it', async (test) => {
  const server = await openStandIn(test, user);
  const guarded = openClient(test, {}, { allowPrivateAddresses: false });
  const context = { client: guarded, account: 'i1' };
  const access = { credential: credentialAt(server.port), settings: null };
  await fails(test, mongodb.verify(context, access), 'refused', 'chosen');
  test.equal(server.connections(), 0);
});

t.test('a host that a server names is checked like the one that was chosen', async (test) => {
  const hidden = await openStandIn(test, user);
  const server = await openStandIn(test, {
    ...user,
    hello: {
      setName: 'rs',
      hosts: [`hidden.example:${hidden.port}`],
      primary: `hidden.example:${hidden.port}`,
      ismaster: false,
      isWritablePrimary: false,
      secondary: true,
      me: `hidden.example:${hidden.port}`,
    },
  });
  const addresses: Record<string, string> = { 'public.example': '127.0.0.2', 'hidden.example': '127.0.0.1' };
  const client = openClient(
    test,
    {},
    {
      allowPrivateAddresses: false,
      net: {
        resolve: async (name) => [addresses[name] ?? '127.0.0.1'],
        allows: (address) => address === '127.0.0.2',
      },
    },
  );
  const forwarded = createServer((socket) => {
    const upstream = connect(server.port, '127.0.0.1');
    for (const one of [socket, upstream]) one.on('error', () => {});
    socket.pipe(upstream).pipe(socket);
  });
  forwarded.listen(0, '127.0.0.2');
  await once(forwarded, 'listening');
  test.teardown(() => void forwarded.close());
  const { port } = forwarded.address() as AddressInfo;
  const access = { credential: credentialAt(port, { host: 'public.example' }), settings: null };
  await fails(test, mongodb.verify({ client, account: 'i1' }, access), 'refused', 'named by the server');
  test.equal(hidden.connections(), 0);
  test.ok(server.connections() > 0);
});

t.test('a credential has no options, and no other form than its own', (test) => {
  const good = credentialAt(27_017);
  const { credential } = mongodb;
  test.ok(credential.safeParse(good).success);
  test.ok(credential.safeParse({ ...good, port: undefined, host: 'a.example', srv: true, tls: true }).success);
  for (const [what, wrong] of Object.entries({
    'a path': { ...good, host: 'a.example/?tlsInsecure=true' },
    'two hosts': { ...good, host: 'a.example,b.example' },
    'a user': { ...good, host: 'u@a.example' },
    'a socket': { ...good, host: '%2Ftmp%2Fmongodb.sock' },
    'a port with SRV': { ...good, host: 'a.example', srv: true, tls: true },
    'SRV without TLS': { ...good, port: undefined, srv: true },
    'a low port': { ...good, port: 25 },
    options: { ...good, tlsCAFile: '/etc/passwd' },
  })) {
    test.notOk(credential.safeParse(wrong).success, what);
  }
  test.end();
});

t.test('names of fields are bounded in depth and number', (test) => {
  const deep = new Set<string>();
  addFieldNames(deep, { a: { b: { c: { d: { e: { f: 1 } } } } } });
  test.same([...deep], ['a', 'a.b', 'a.b.c', 'a.b.c.d', 'a.b.c.d.e']);
  const wide = new Set<string>();
  addFieldNames(wide, Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`f${index}`, index])));
  test.equal(wide.size, 200);
  const odd = new Set<string>();
  addFieldNames(odd, { date: new Date(), bytes: Buffer.from('x'), ['x'.repeat(500)]: 1, none: null });
  test.same([...odd], ['date', 'bytes', 'none']);
  test.end();
});
