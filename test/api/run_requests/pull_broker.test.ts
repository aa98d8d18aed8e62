import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { createMetrics } from '../../../api/http/metrics.ts';
import { type Claim, createPullBrokers, deal, type PullBrokers } from '../../../api/run_requests/pull_broker.ts';
import { markWakes, PULL_CHANNEL } from '../../../engine/db/channels.ts';
import { openDatabase } from '../../../engine/db/database.ts';
import { openListener } from '../../../engine/db/listen.ts';
import { openNotifier } from '../../../engine/db/notify.ts';
import { openPool, roleUrl } from '../../../engine/db/pool.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startProxy } from '../../support/proxy.ts';
import { until } from '../../support/wait.ts';
import { createOrganization, createTask } from '../http/started_run.ts';

/** A broker with connections of its own, over a database of its own. */
async function start(t: Test) {
  const database = await createTestDatabase(t);
  const proxy = await startProxy(t, database.url);
  const log = pino({ level: 'silent' });
  const url = roleUrl(proxy.url, { role: 'runner_api' });
  const pool = openDatabase({
    open: () => openPool(proxy.url, { role: 'runner_api', size: 4 }),
    size: 4,
    maxWaiting: 100,
    waitTimeoutMs: 20_000,
    responseTimeoutMs: 20_000,
    onWakes: (wakes) => markWakes({ mark: (_channel, payload = '') => brokers.wake(payload) }, wakes),
  });
  let statements = 0;
  let returned = 0;
  const db = {
    ...pool,
    one: ((query, values) => {
      statements += 1;
      return pool.one(query, values).finally(() => {
        returned += 1;
      });
    }) as typeof pool.one,
  };
  const listener = openListener({ url, log });
  const own = openNotifier({ url, log });
  /** That of another process: what one's own marks is left to `wake`. */
  const notifier = openNotifier({ url, log });
  const metrics = createMetrics({ defaults: false });
  const brokers = createPullBrokers({ db, listener, notifier: own, metrics, log, claimSeconds: 30 });
  t.teardown(async () => {
    await brokers.close();
    await Promise.all([own.close(), notifier.close(), listener.close()]);
    await pool.end();
  });
  await until('listening', () => listener.connected());
  const organizationId = await createOrganization(database.api);
  const publish = async (count: number, organization = organizationId) => {
    for (let made = 0; made < count; made += 1) await createTask(database.api, organization);
  };
  const published = async () => {
    const { rows } = await database.owner.query(
      `select count(*)::int as n from app.run_requests where state = 'published'`,
    );
    return rows[0].n as number;
  };
  const waiters = async () => (await metrics.pullWaiters.get()).values[0]?.value ?? 0;
  return {
    database,
    proxy,
    brokers,
    notifier,
    own,
    listener,
    metrics,
    organizationId,
    publish,
    published,
    waiters,
    statements: () => statements,
    returned: () => returned,
  };
}

function pull(
  brokers: PullBrokers,
  options: Partial<{ workerId: string; limit: number; waitMs: number; signal: AbortSignal }> = {},
) {
  return brokers.pull(
    {},
    { workerId: 'w', limit: 1, waitMs: 20_000, signal: new AbortController().signal, ...options },
  );
}

t.test('a claim is dealt one each in order, then a second one each, at most fifty', async (t) => {
  const waiter = (name: string, limit: number) => ({ name, limit });
  const names = (waiters: readonly { name: string; limit: number }[]) =>
    deal(waiters)
      .map((one) => one.name)
      .join('');
  t.equal(names([waiter('a', 3), waiter('b', 1), waiter('c', 2)]), 'abcaca');
  t.equal(names([]), '');
  t.equal(deal([waiter('a', 50), waiter('b', 50)]).filter((one) => one.name === 'a').length, 25);
  const many = deal(Array.from({ length: 60 }, (_, index) => waiter(String(index), 1)));
  t.same([many.length, many.at(-1)?.name], [50, '49']);
});

t.test('what is there is handed out at once; else a look is made and the wait begins', async (t) => {
  const { brokers, publish, waiters } = await start(t);
  t.same(await pull(brokers, { waitMs: 0 }), [], 'nothing there, no wait');
  await publish(3);
  const items = await pull(brokers, { waitMs: 0, limit: 2 });
  t.equal(items.length, 2);
  for (const item of items) t.match(item, { kind: 'task', mode: 'execute', leaseToken: /^\d+\.[0-9a-f]{64}$/ });
  t.equal((await pull(brokers, { waitMs: 0, limit: 50 })).length, 1);
  const began = Date.now();
  t.same(await pull(brokers, { waitMs: 150 }), []);
  t.ok(Date.now() - began >= 149);
  t.equal(await waiters(), 0);
});

t.test('each worker gets the claims that were made in its name', async (t) => {
  const { brokers, publish, database, notifier, waiters } = await start(t);
  const pulls = ['a', 'b', 'c'].map((workerId) => pull(brokers, { workerId, limit: 2 }));
  await until('three wait', async () => (await waiters()) === 3);
  await publish(6);
  notifier.mark(PULL_CHANNEL);
  const pulled = await Promise.all(pulls);
  const { rows } = await database.owner.query('select id, worker_id from app.run_requests');
  const worker = new Map(rows.map((row) => [row.id, row.worker_id]));
  for (const [index, items] of pulled.entries()) {
    t.ok(items.length >= 1);
    for (const item of items) t.equal(worker.get(item.runRequestId), ['a', 'b', 'c'][index]);
  }
  const ids = pulled.flat().map((item) => item.runRequestId);
  t.equal(new Set(ids).size, ids.length, 'nothing is handed out twice');
});

t.test(
  'what this process made ready is looked for without a notification, and its own are not listened to',
  async (t) => {
    const { brokers, publish, waiters, own, listener, statements, returned } = await start(t);
    const first = pull(brokers, { workerId: 'first' });
    await until('it waits', async () => (await waiters()) === 1 && returned() === statements());
    await publish(1);
    brokers.wake('');
    t.equal((await first).length, 1);

    const second = pull(brokers, { workerId: 'second' });
    await until('it waits', async () => (await waiters()) === 1 && returned() === statements());
    await until('the notifying connection is known', () => own.sender() !== undefined);
    const heard: string[] = [];
    const stop = listener.subscribe(PULL_CHANNEL, (payload) => void heard.push(payload));
    const sent: number[] = [];
    // More than once, as a look that is due anyway may come in between.
    for (const payload of ['own 1', 'own 2', 'own 3']) {
      await until('no look is under way', () => returned() === statements());
      const before = statements();
      own.mark(PULL_CHANNEL, payload);
      await until('it is heard', () => heard.includes(payload));
      sent.push(statements() - before);
    }
    stop();
    t.equal(Math.min(...sent), 0);
    await publish(1);
    brokers.wake('');
    t.equal((await second).length, 1);
  },
);

t.test('a notification wakes the waiters at once, in their order', async (t) => {
  const { brokers, publish, notifier, waiters } = await start(t);
  const order: string[] = [];
  const pulls = ['first', 'second', 'third'].map(async (workerId) => {
    await pull(brokers, { workerId });
    order.push(workerId);
  });
  await until('three wait', async () => (await waiters()) === 3);
  const took: number[] = [];
  for (const expected of [1, 2, 3]) {
    await publish(1);
    const began = performance.now();
    notifier.mark(PULL_CHANNEL);
    await until('one more', () => order.length === expected);
    took.push(performance.now() - began);
  }
  // Two of three: the look every 2 s would bring none of them as soon, and a busy machine may hold up one.
  t.ok(took.filter((ms) => ms < 1_200).length >= 2, `${took} ms`);
  await Promise.all(pulls);
  t.same(order, ['first', 'second', 'third']);
});

t.test('a lost notification costs two seconds, not the work', async (t) => {
  const { brokers, publish, returned } = await start(t);
  const waiting = pull(brokers);
  await until('it has looked in vain', () => returned() === 1);
  await publish(1);
  t.equal((await waiting).length, 1);
  t.ok(returned() > 1);
});

t.test('many waiters share claims: ninety get one each in a few statements', async (t) => {
  const { brokers, publish, notifier, waiters, statements } = await start(t);
  const pulls = Array.from({ length: 90 }, (_, index) => pull(brokers, { workerId: `w${index}` }));
  await until('all wait', async () => (await waiters()) === 90);
  const before = statements();
  await publish(90);
  notifier.mark(PULL_CHANNEL);
  const pulled = await Promise.all(pulls);
  t.ok(pulled.every((items) => items.length === 1));
  t.equal(new Set(pulled.flat().map((item) => item.runRequestId)).size, 90);
  t.ok(statements() - before < 45, `${statements() - before} statements for 90 claims`);
});

t.test('a claim for a client that has gone is released, and goes to the next', async (t) => {
  const { brokers, publish, published, metrics, notifier, waiters } = await start(t);
  const gone = new AbortController();
  const waiting = pull(brokers, { workerId: 'gone', signal: gone.signal });
  await until('it waits', async () => (await waiters()) === 1);
  gone.abort();
  t.same(await waiting, [], 'it waits no more');
  t.equal(await waiters(), 0);

  await publish(1);
  const late = new AbortController();
  const claims: readonly Claim[] = await pull(brokers, { workerId: 'late', signal: late.signal });
  t.equal(claims.length, 1);
  t.equal(await published(), 0);
  late.abort(); // before the last byte of its response was written
  await until('released', async () => (await published()) === 1);
  t.equal((await metrics.pullReleases.get()).values[0]?.value, 1);

  const during = new AbortController();
  const raced = pull(brokers, { workerId: 'raced', signal: during.signal });
  const next = pull(brokers, { workerId: 'next' });
  during.abort(); // while its claim is under way
  t.same(await raced, []);
  notifier.mark(PULL_CHANNEL);
  t.equal((await next).length, 1);
  t.same(await pull(brokers, { signal: AbortSignal.abort() }), []);
});

t.test('filters have brokers of their own', async (t) => {
  const { brokers, publish, organizationId, database } = await start(t);
  const other = await createOrganization(database.api);
  await publish(1, other);
  const request = { workerId: 'w', limit: 5, waitMs: 0, signal: new AbortController().signal };
  t.same(await brokers.pull({ organizationIds: [organizationId] }, request), []);
  t.same(await brokers.pull({ kinds: ['chat'] }, request), []);
  t.same(await brokers.pull({ profileKeys: ['support'] }, request), []);
  const [item] = await brokers.pull(
    { organizationIds: [other, organizationId], profileKeys: ['growth'], kinds: ['task'] },
    request,
  );
  t.equal(item?.organizationId, other);
});

t.test('nobody waits: no statements are sent, whatever is notified', async (t) => {
  const { brokers, notifier, statements } = await start(t);
  await pull(brokers, { waitMs: 0 });
  const before = statements();
  for (let i = 0; i < 20; i += 1) {
    notifier.mark(PULL_CHANNEL, String(i));
    await delay(10);
  }
  t.equal(statements(), before);
});

t.test('while Postgres is down waits fail, without a hot loop, and later ones work', async (t) => {
  const { brokers, proxy, publish, statements, waiters } = await start(t);
  const waiting = pull(brokers);
  await until('it waits', async () => (await waiters()) === 1);
  proxy.cut();
  await t.rejects(waiting);
  const before = statements();
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, () => pull(brokers)));
  t.ok(outcomes.every((outcome) => outcome.status === 'rejected'));
  t.ok(statements() - before <= 5, `${statements() - before} claims for 100 pulls`);
  proxy.restore();
  await publish(1);
  const items = await until('works again', () => pull(brokers, { waitMs: 0 }).catch(() => undefined));
  t.equal(items.length, 1);
  t.equal(await waiters(), 0);
});

t.test('closing gives all waiters nothing, at once', async (t) => {
  const { brokers, publish, waiters } = await start(t);
  const pulls = Array.from({ length: 10 }, () => pull(brokers));
  await until('they wait', async () => (await waiters()) === 10);
  const began = Date.now();
  await brokers.close();
  t.ok((await Promise.all(pulls)).every((items) => items.length === 0));
  t.ok(Date.now() - began < 1_000);
  await publish(1);
  t.same(await pull(brokers), [], 'and all later ones');
});
