import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { pino } from 'pino';
import { sql } from 'slonik';
import t, { type Test } from 'tap';
import { z } from 'zod';
import { openDatabase } from '../../../engine/db/database.ts';
import { isUnavailable } from '../../../engine/db/errors.ts';
import { openListener } from '../../../engine/db/listen.ts';
import { openNotifier } from '../../../engine/db/notify.ts';
import { openPool, roleUrl } from '../../../engine/db/pool.ts';
import { Problem } from '../../../engine/db/problem.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startProxy } from '../../support/proxy.ts';
import { until } from '../../support/wait.ts';

const database = await createTestDatabase(t);
const log = pino({ level: 'silent' });

async function start(t: Test, applicationName: string) {
  const proxy = await startProxy(t, database.url);
  return { proxy, url: roleUrl(proxy.url, { role: 'runner_api', applicationName }) };
}

async function listen(t: Test) {
  const { proxy, url } = await start(t, 'test listener');
  const listener = openListener({ url, log });
  t.teardown(() => listener.close());
  const heard: string[] = [];
  let resyncs = 0;
  listener.onResync(() => {
    resyncs += 1;
  });
  listener.subscribe('probe_one', (payload) => heard.push(payload));
  await until('connected', () => listener.connected());
  return { proxy, listener, heard, resyncs: () => resyncs };
}

const notify = (channel: string, payload: string) =>
  database.owner.query('select pg_notify($1, $2)', [channel, payload]);

t.test('notifications arrive, on channels subscribed before and after the connect', async (t) => {
  const { listener, heard } = await listen(t);
  await notify('probe_one', 'a');
  const late: string[] = [];
  const stop = listener.subscribe('probe_two', (payload) => late.push(payload));
  await until('the late channel', async () => {
    await notify('probe_two', 'b');
    return late.length > 0;
  });
  await until('the first', () => heard.includes('a'));
  stop();
  const before = late.length;
  await notify('probe_two', 'c');
  await notify('probe_one', 'd');
  await until('d', () => heard.includes('d'));
  t.equal(late.length, before, 'nothing after unsubscribing');
  t.throws(() => listener.subscribe('a; drop table x', () => {}), RangeError);
});

t.test('a callback that fails does not keep the others from theirs', async (t) => {
  const { listener, heard } = await listen(t);
  listener.subscribe('probe_three', () => {
    throw new Error('a faulty subscriber');
  });
  listener.subscribe('probe_three', (payload) => heard.push(payload));
  await until('the second one', async () => {
    await notify('probe_three', 'x');
    return heard.includes('x');
  });
  t.ok(listener.connected());
});

t.test('a lost connection is made again, with all channels, and asks for a resync each time', async (t) => {
  const { proxy, listener, heard, resyncs } = await listen(t);
  t.equal(resyncs(), 1);
  for (const [round, lose] of [() => proxy.cut(), () => killed('test listener')].entries()) {
    await lose();
    await until('noticed', () => !listener.connected());
    proxy.restore();
    await until('connected again', () => listener.connected());
    await until('resynced', () => resyncs() === round + 2);
    await notify('probe_one', `round ${round}`);
    await until('heard', () => heard.includes(`round ${round}`));
  }
});

async function killed(applicationName: string): Promise<void> {
  await database.owner.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = $1',
    [applicationName],
  );
}

t.test('a listener closes whatever state it is in', async (t) => {
  const { proxy, url } = await start(t, 'closing listener');
  const connected = openListener({ url, log });
  await until('connected', () => connected.connected());
  await connected.close();
  proxy.cut();
  const refused = openListener({ url, log });
  await refused.close();
  proxy.freeze();
  const began = Date.now();
  const hanging = openListener({ url, log });
  await hanging.close();
  t.ok(Date.now() - began < 2_000);
});

t.test('marks are merged and sent at once', async (t) => {
  const { listener, heard } = await listen(t);
  const { url } = await start(t, 'test notifier');
  const results: string[] = [];
  const notifier = openNotifier({ url, log, onSent: (result) => results.push(result) });
  t.teardown(() => notifier.close());
  for (let i = 0; i < 1_000; i += 1) notifier.mark('probe_one', 'same');
  notifier.mark('probe_one', 'other');
  await until('both', () => heard.includes('same') && heard.includes('other'));
  t.equal(heard.length, 2);
  await until('the result of the statement', () => results.length > 0);
  t.same(results, ['sent'], 'one statement for all');
  // One of three: a machine that is busy may hold up the others.
  const took: number[] = [];
  for (const word of ['fast', 'faster', 'fastest']) {
    const began = performance.now();
    notifier.mark('probe_one', word);
    await until(word, () => heard.includes(word));
    took.push(performance.now() - began);
  }
  t.ok(Math.min(...took) < 1_500, `${took} ms`);
  t.ok(listener.connected());
  t.throws(() => notifier.mark('probe_one', 'x'.repeat(8_000)), RangeError);
});

t.test('what is marked while Postgres is away is sent when it is back', async (t) => {
  const { heard } = await listen(t);
  const { proxy, url } = await start(t, 'cut notifier');
  const notifier = openNotifier({ url, log });
  t.teardown(() => notifier.close());
  notifier.mark('probe_one', 'before');
  await until('before', () => heard.includes('before'));
  proxy.cut();
  for (let i = 0; i < 20_000; i += 1) notifier.mark('probe_one', `lost ${i}`);
  notifier.mark('probe_one', 'meanwhile');
  proxy.restore();
  await until('meanwhile', () => heard.includes('meanwhile'));
  t.notOk(heard.includes('lost 0'), 'the oldest gave way: memory is bounded');
});

t.test('closing sends what is left', async (t) => {
  const { heard } = await listen(t);
  const { url } = await start(t, 'closing notifier');
  const notifier = openNotifier({ url, log });
  notifier.mark('probe_one', 'ready');
  await until('ready', () => heard.includes('ready'));
  notifier.mark('probe_one', 'last words');
  await notifier.close();
  await until('last words', () => heard.includes('last words'));
});

const one = sql.type(z.object({ one: z.int() }))`select 1 as one`;

t.test('a database is opened by its first statement, whether Postgres is there or not', async (t) => {
  const { proxy } = await start(t, 'x');
  proxy.cut();
  let opened = 0;
  const onOpen = () => {
    opened += 1;
  };
  const db = open(t, proxy.url, { onOpen });
  t.equal(opened, 0);
  await t.rejects(db.one(one));
  proxy.restore();
  t.same(await db.one(one), { one: 1 });
  t.same(await Promise.all([db.one(one), db.one(one)]), [{ one: 1 }, { one: 1 }]);
  t.equal(opened, 1, 'once for all of them');
});

t.test('a server that breaks off at any moment of a connection ends no process', async (t) => {
  const { hostname, port } = new URL(database.url);
  // Cuts the connection at its nth packet: while it connects, asks for the first time, or says good-bye.
  let packets = 0;
  const server = createServer((socket) => {
    const upstream = connect(Number(port), hostname);
    let left = packets;
    socket.on('data', (chunk) => {
      if (left === 0) return void socket.resetAndDestroy();
      left -= 1;
      upstream.write(chunk);
    });
    upstream.pipe(socket);
    for (const one of [socket, upstream]) {
      one.on('error', () => {});
      one.on('close', () => {
        socket.destroy();
        upstream.destroy();
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  const url = new URL(database.url);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  let served = 0;
  for (packets = 0; packets < 8; packets += 1) {
    const db = open(t, url.href);
    const outcome = await db.one(one).catch((error: unknown) => error);
    if (!(outcome instanceof Error)) served += 1;
    else t.ok(isUnavailable(outcome), `${packets} packets: ${outcome.message}`);
    await db.end();
  }
  t.ok(served > 0 && served < packets, 'cut before the response and after it');
});

t.test('statements stand in a line that is bounded in length and time', async (t) => {
  const db = open(t, database.url);
  const sleep = (seconds: number) => db.query(sql.unsafe`select pg_sleep(${seconds})`).then(() => 'done', String);
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => sleep(0.1)));
  t.equal(outcomes.filter((outcome) => outcome === 'done').length, 5, 'two run, three wait');
  t.ok(outcomes.every((outcome) => outcome === 'done' || /the queue is full/.test(outcome)));
  const impatient = open(t, database.url, { waitTimeoutMs: 200 });
  await Promise.all([impatient.one(one), impatient.one(one)]);
  const holder = await database.owner.connect();
  await holder.query('begin; lock table app.organizations');
  const held = [1, 2].map(() => impatient.query(sql.unsafe`select count(*) from app.organizations`));
  await t.rejects(impatient.one(one), { name: 'DatabaseUnavailableError', message: /waited 200 ms in vain/ });
  await holder.query('commit');
  holder.release();
  await Promise.all(held);
  t.same(impatient.load(), { running: 0, waiting: 0 });
  t.same(db.load(), { running: 0, waiting: 0 });
});

t.test('nobody is forgotten in the line when connections fail', async (t) => {
  const { proxy } = await start(t, 'x');
  const db = open(t, proxy.url);
  for (let round = 0; round < 20; round += 1) {
    await until('works', () =>
      db.one(one).then(
        () => true,
        () => false,
      ),
    );
    const early = Array.from({ length: round % 4 }, () => db.one(one));
    proxy.cut();
    const began = Date.now();
    await Promise.allSettled([...early, ...Array.from({ length: 5 }, () => db.one(one))]);
    t.ok(Date.now() - began < 5_000, 'refused at once, not by a time-out');
    proxy.restore();
  }
});

t.test('a connection that does not respond is given up, and new ones are made', async (t) => {
  const { proxy } = await start(t, 'x');
  let opened = 0;
  const onOpen = () => {
    opened += 1;
  };
  const db = open(t, proxy.url, { onOpen, responseTimeoutMs: 3_000 });
  await db.one(one);
  proxy.freezeExisting();
  await t.rejects(db.one(one), { name: 'DatabaseUnavailableError', message: /no response within 3000 ms/ });
  t.same(await db.one(one), { one: 1 }, 'the next statement has a new connection');
  t.equal(opened, 2);
});

type Options = { onOpen?: () => void; waitTimeoutMs?: number; responseTimeoutMs?: number };

function open(t: Test, url: string, { onOpen = () => {}, ...limits }: Options = {}) {
  const db = openDatabase({
    open: () => {
      onOpen();
      return openPool(url, { role: 'runner_api', size: 2 });
    },
    size: 2,
    maxWaiting: 3,
    responseTimeoutMs: 20_000,
    ...limits,
  });
  t.teardown(() => db.end());
  return db;
}

t.test('a transaction is one attempt: it commits whole or not at all', async (t) => {
  const db = open(t, database.url);
  let runs = 0;
  await t.rejects(
    db.transaction(async (connection) => {
      runs += 1;
      await connection.query(sql.unsafe`do $$ begin raise exception 'again' using errcode = '40001'; end $$`);
    }),
  );
  t.equal(runs, 1);
  await db.end();
  await t.rejects(db.one(one), { name: 'DatabaseUnavailableError' });
});

t.test('a refusal leaves the connection as it was; one that is ended is replaced', async (t) => {
  const db = open(t, database.url);
  const backend = sql.type(z.object({ pid: z.int() }))`select pg_backend_pid() as pid`;
  const { pid } = await db.one(backend);
  await database.owner.query(`create function app.refuse(p_code text) returns void language plpgsql
    as $$ begin raise exception 'no' using errcode = p_code; end $$; grant execute on function app.refuse to runner_api`);
  const raise = (code: string) => sql.unsafe`select app.refuse(${code})`;
  for (const code of ['RN409', '23505', '22P02', '55P03', '40001', '57014']) {
    await t.rejects(db.query(raise(code)), { code });
    await t.rejects(
      db.transaction((connection) => connection.query(raise(code))),
      { code },
    );
    t.equal((await db.one(backend)).pid, pid, code);
  }
  await t.rejects(db.one(sql.unsafe`select 1 where false`), { message: 'Query returned no rows.' });
  await t.rejects(db.one(sql.type(z.object({ one: z.string() }))`select 1 as one`), { message: /do not conform/ });
  await t.rejects(
    db.transaction(async (connection) => {
      await connection.query(sql.unsafe`select set_config('runner.left', 'over', true)`);
      throw new Problem(409, 'conflict', 'No.');
    }),
    { name: 'Problem', message: 'No.' },
  );
  t.same(
    await db.one(sql.unsafe`select pg_backend_pid() as pid, nullif(current_setting('runner.left', true), '') as left`),
    { pid, left: null },
  );
  await database.owner.query('select pg_terminate_backend($1)', [pid]);
  await until('another connection', async () => (await db.one(backend).catch(() => ({ pid }))).pid !== pid);
});
