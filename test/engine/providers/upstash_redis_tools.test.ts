import type * as Tap from 'tap';
import t from 'tap';
import { CursorError } from '../../../engine/providers/tool.ts';
import { upstashRedis } from '../../../engine/providers/upstash-redis/index.ts';
import { fails, json, openClient, openServer, type Reply } from './support.ts';
import { failsAsDocumented, toolsOf } from './tool_calls.ts';

const ORIGIN = 'https://tidy-cat-1.upstash.io';
const credential = { kind: 'bearer_token', token: 'AX-token-0123456789' };
const settings = {
  kind: 'upstash_redis',
  restUrl: ORIGIN,
  keyScope: { kind: 'prefixes', prefixes: ['app:', 'job*['] },
};

async function open(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  const client = openClient(test, { [ORIGIN]: server.origin });
  const commands = () => server.calls.map(({ body }): unknown => JSON.parse(body));
  return { server, client, commands, tools: toolsOf(upstashRedis, { client, credential, settings }) };
}

type Row = readonly [args: object, command: readonly (string | number)[], result: unknown, data: unknown];

const READS: Readonly<Record<string, Row>> = {
  get: [{ key: 'app:a' }, ['GET', 'app:a'], null, null],
  mget: [
    { keys: ['app:a', 'app:b'] },
    ['MGET', 'app:a', 'app:b'],
    ['1', null],
    [
      { key: 'app:a', value: '1' },
      { key: 'app:b', value: null },
    ],
  ],
  exists: [{ keys: ['app:a', 'app:b'] }, ['EXISTS', 'app:a', 'app:b'], 1, 1],
  type: [{ key: 'app:a' }, ['TYPE', 'app:a'], 'hash', 'hash'],
  ttl: [{ key: 'app:a' }, ['TTL', 'app:a'], -1, -1],
  hget: [{ key: 'app:a', field: 'f' }, ['HGET', 'app:a', 'f'], 'v', 'v'],
  hgetall: [{ key: 'app:a' }, ['HGETALL', 'app:a'], ['f', 'v', 'g', ''], { f: 'v', g: '' }],
  llen: [{ key: 'app:a' }, ['LLEN', 'app:a'], 3, 3],
  lrange: [{ key: 'app:a', start: 0, stop: 9 }, ['LRANGE', 'app:a', 0, 9], ['x', 'y'], ['x', 'y']],
  scard: [{ key: 'app:a' }, ['SCARD', 'app:a'], 3, 3],
  smembers: [{ key: 'app:a' }, ['SMEMBERS', 'app:a'], ['x'], ['x']],
  zrange: [
    { key: 'app:a', start: 1, stop: 2 },
    ['ZRANGE', 'app:a', 1, 2, 'WITHSCORES'],
    ['x', '1.5', 'y', '2'],
    [
      { member: 'x', score: '1.5' },
      { member: 'y', score: '2' },
    ],
  ],
  scan: [{ prefix: 'app:' }, ['SCAN', '0', 'MATCH', 'app:*', 'COUNT', 200], ['0', ['app:a']], ['app:a']],
};

const WRITES: Readonly<Record<string, Row>> = {
  set: [{ key: 'app:a', value: 'v', ex: 60, nx: true }, ['SET', 'app:a', 'v', 'EX', 60, 'NX'], 'OK', { isSet: true }],
  hset: [{ key: 'app:a', fields: { f: 'v', g: 'w' } }, ['HSET', 'app:a', 'f', 'v', 'g', 'w'], 2, { added: 2 }],
  incr: [{ key: 'app:a', increment: -2 }, ['INCRBY', 'app:a', -2], 4, { value: 4 }],
  rpush: [{ key: 'app:a', values: ['x', 'y'] }, ['RPUSH', 'app:a', 'x', 'y'], 5, { length: 5 }],
  sadd: [{ key: 'app:a', members: ['x', 'y'] }, ['SADD', 'app:a', 'x', 'y'], 1, { added: 1 }],
  expire: [{ key: 'app:a', seconds: 60 }, ['EXPIRE', 'app:a', 60], 0, { isSet: false }],
  del: [{ keys: ['app:a', 'app:b'] }, ['DEL', 'app:a', 'app:b'], 2, { deleted: 2 }],
  hdel: [{ key: 'app:a', fields: ['f'] }, ['HDEL', 'app:a', 'f'], 1, { deleted: 1 }],
  srem: [{ key: 'app:a', members: ['x'] }, ['SREM', 'app:a', 'x'], 1, { removed: 1 }],
};
const keysOf = (effect: string) =>
  upstashRedis.tools.filter((tool) => tool.effect === effect).map(({ key }) => key.replace('upstash_redis.', ''));

t.test('each tool is one command, sent as documented', async (test) => {
  let result: unknown;
  const { server, commands, tools } = await open(test, () => ({ result }));
  test.same(keysOf('read').sort(), Object.keys(READS).sort());
  test.same(keysOf('write').sort(), Object.keys(WRITES).sort());
  for (const [key, [args, command, given, data]] of Object.entries(READS)) {
    result = given;
    const read = await tools.read(`upstash_redis.${key}`, args);
    test.same(read.data, data, key);
    test.notOk(read.nextCursor, key);
    test.same(commands(), [command], key);
    test.match(server.calls.splice(0), [
      { method: 'POST', headers: { authorization: `Bearer ${credential.token}`, 'content-type': 'application/json' } },
    ]);
  }
  for (const [key, [args, command, given, data]] of Object.entries(WRITES)) {
    result = given;
    test.same(await tools.execute(`upstash_redis.${key}`, args), data, key);
    test.same(commands(), [command], key);
    server.calls.splice(0);
  }
  result = null;
  test.same(await tools.execute('upstash_redis.set', { key: 'app:a', value: 'v', nx: true }), { isSet: false });
});

t.test('keys outside of the prefixes are in no position of a command', async (test) => {
  const { server, client, tools } = await open(test, () => ({ result: 'OK' }));
  const none = toolsOf(upstashRedis, { client, credential, settings: null });
  for (const [key, [args]] of Object.entries({ ...READS, ...WRITES })) {
    const tool = `upstash_redis.${key}`;
    const effect = key in READS ? 'read' : 'write';
    test.same(tools.issues(tool, effect, args), [], key);
    test.ok(none.issues(tool, effect, args).length > 0, key);
    for (const outside of ['other:a', 'ap', 'App:a', ' app:a', 'xapp:a', 'jobs']) {
      const wrong =
        'keys' in args ? { keys: ['app:a', outside] } : 'prefix' in args ? { prefix: outside } : { key: outside };
      const path = 'keys' in args ? ['keys', 1] : Object.keys(wrong);
      test.match(tools.issues(tool, effect, { ...args, ...wrong }), [{ path }], `${key} ${outside}`);
    }
  }
  test.same(tools.issues('upstash_redis.get', 'read', { key: 'job*[1' }), []);
  test.match(tools.issues('upstash_redis.hset', 'write', { key: 'app:a', fields: {} }), [{ path: ['fields'] }]);
  test.equal(server.calls.length, 0);
});

t.test('a scan looks for the prefix itself, a few steps at a time', async (test) => {
  const steps: Record<string, [string, string[]]> = {
    0: ['17', ['jobs']],
    17: ['18', ['job*[1', 'job*[2', 'jobx']],
    18: ['0', []],
  };
  const { server, commands, tools } = await open(test, ({ body }) => ({ result: steps[JSON.parse(body)[1]] }));
  const args = { prefix: 'job*[', count: 10 };
  test.same(await tools.read('upstash_redis.scan', args), { data: ['job*[1', 'job*[2'], nextCursor: '18' });
  test.same(commands(), [
    ['SCAN', '0', 'MATCH', 'job\\*\\[*', 'COUNT', 10],
    ['SCAN', '17', 'MATCH', 'job\\*\\[*', 'COUNT', 10],
  ]);
  test.same(await tools.read('upstash_redis.scan', args, '18'), { data: [], nextCursor: null });
  for (const cursor of ['', '0', '-1', 'x', '1'.repeat(30)]) {
    await test.rejects(tools.read('upstash_redis.scan', args, cursor), CursorError, cursor);
  }
  server.calls.splice(0);
  steps['0'] = ['0', []];
  steps['17'] = ['17', []];
  test.same(await tools.read('upstash_redis.scan', args, '17'), { data: [], nextCursor: '17' });
  test.equal(server.calls.length, 10, 'where there are none, it goes on in another call');
});

t.test('a list is read a page of 200 at a time', async (test) => {
  const all = Array.from({ length: 450 }, (_, n) => String(n));
  const { commands, tools } = await open(test, ({ body }) => {
    const [, , start, stop] = JSON.parse(body);
    return { result: all.slice(start, stop + 1) };
  });
  const args = { key: 'app:a', start: 10, stop: 1_000 };
  const seen: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await tools.read('upstash_redis.lrange', args, cursor);
    seen.push(...(page.data as unknown[]));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  test.same(seen, all.slice(10));
  test.same(
    commands().map((command) => (command as unknown[]).slice(2)),
    [
      [10, 209],
      [210, 409],
      [410, 609],
    ],
  );
  for (const wrong of ['', '-1', '10', '1001', 'x']) {
    await test.rejects(tools.read('upstash_redis.lrange', args, wrong), CursorError, wrong);
  }
});

t.test('what goes wrong says whether a write was done', async (test) => {
  for (const [key, [args]] of Object.entries(WRITES)) {
    await failsAsDocumented(test, key, 'write', async (reply) => {
      const { server, tools } = await open(test, (_call, res) => void reply(res));
      return { done: tools.execute(`upstash_redis.${key}`, args), sent: () => server.calls.length };
    });
  }
  await failsAsDocumented(test, 'get', 'read', async (reply) => {
    const { server, tools } = await open(test, (_call, res) => void reply(res));
    return { done: tools.read('upstash_redis.get', { key: 'app:a' }), sent: () => server.calls.length };
  });
  for (const status of [200, 400]) {
    const { tools } = await open(test, (_call, res) => json(res, status, { error: 'WRONGTYPE planted-4711' }));
    const error = await fails(test, tools.execute('upstash_redis.incr', { key: 'app:a' }), 'failed', String(status));
    test.match(error, { status, code: 'WRONGTYPE' });
    test.equal(error.isRefusal, status === 200);
    test.notMatch(error.message, 'planted');
    const echo = await open(test, (_call, res) => json(res, status, { error: `${credential.token} is read only` }));
    const echoed = await fails(test, echo.tools.execute('upstash_redis.incr', { key: 'app:a' }), 'failed', 'echo');
    test.equal(echoed.code, undefined, 'a token that is repeated as a code');
  }
  const { tools } = await open(test, () => ({ result: 'x'.repeat(6 * 1024 * 1024) }));
  await fails(test, tools.read('upstash_redis.get', { key: 'app:a' }), 'too_large', 'a long value');
});

t.test('what was written is seen in what keys hold', async (test) => {
  const looks: Readonly<Record<string, readonly [command: unknown[], done: unknown, other: unknown, result: object]>> =
    {
      hset: [['HMGET', 'app:a', 'f', 'g'], ['v', 'w'], ['v', null], { added: null }],
      sadd: [['SMISMEMBER', 'app:a', 'x', 'y'], [1, 1], [1, 0], { added: null }],
      del: [['EXISTS', 'app:a', 'app:b'], 0, 1, { deleted: null }],
      hdel: [['HMGET', 'app:a', 'f'], [null], ['v'], { deleted: null }],
      srem: [['SMISMEMBER', 'app:a', 'x'], [0], [1], { removed: null }],
    };
  let result: unknown;
  const { commands, tools } = await open(test, () => ({ result }));
  for (const [key, [command, done, other, found]] of Object.entries(looks)) {
    const args = WRITES[key]?.[0];
    result = done;
    test.same(await tools.lookUp(`upstash_redis.${key}`, args), { outcome: 'found', result: found }, key);
    test.same(commands().at(-1), command, key);
    result = other;
    test.same(await tools.lookUp(`upstash_redis.${key}`, args), { outcome: 'none' }, key);
  }
  const set = { key: 'app:a', value: 'v' };
  result = 'v';
  test.same(await tools.lookUp('upstash_redis.set', set), { outcome: 'found', result: { isSet: true } });
  test.same(await tools.lookUp('upstash_redis.set', { ...set, nx: true }), { outcome: 'none' });
  result = 'other';
  test.same(await tools.lookUp('upstash_redis.set', set), { outcome: 'none' });
  for (const key of ['incr', 'rpush', 'expire'])
    test.notOk(tools.canLookUp(`upstash_redis.${key}`, WRITES[key]?.[0]), key);
});

t.test('a summary says which key, what and where', async (test) => {
  const { tools } = await open(test, () => ({}));
  const summary = (key: string, args = WRITES[key]?.[0]) => tools.summary(`upstash_redis.${key}`, args);
  const at = '“app:a” at tidy-cat-1.upstash.io';
  test.equal(summary('set'), `Write to the key ${at}, if it does not exist, the value “v” for 60 seconds`);
  test.equal(summary('hset'), `Write to the hash ${at} the fields “{"f":"v","g":"w"}”`);
  test.equal(summary('incr'), `Add -2 to the key ${at}`);
  test.equal(summary('rpush'), `Append 2 values to the list ${at}: “x, y”`);
  test.equal(summary('sadd'), `Add 2 members to the set ${at}: “x, y”`);
  test.equal(summary('expire'), `Let the key ${at} end in 60 seconds`);
  test.equal(summary('del'), 'Delete 2 keys at tidy-cat-1.upstash.io: “app:a, app:b”');
  test.equal(summary('hdel'), `Delete from the hash ${at} the fields “f”`);
  test.equal(summary('srem'), `Remove from the set ${at} the members “x”`);
  test.ok(summary('set', { key: `app:${'k'.repeat(1_000)}`, value: 'v'.repeat(60_000) }).length < 2_000);
  for (const key of ['del', 'hdel', 'srem']) {
    test.equal(upstashRedis.tools.find((tool) => tool.key === `upstash_redis.${key}`)?.risk, 'high');
  }
});
