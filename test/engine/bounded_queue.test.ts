import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { createBoundedQueue, createShares } from '../../engine/bounded_queue.ts';

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, open: resolve };
}

t.test('work starts in order, at most as much at a time as allowed', async (t) => {
  const queue = createBoundedQueue({ concurrency: 2, maxWaiting: 10, waitTimeoutMs: 10_000 });
  const started: number[] = [];
  const gates = [gate(), gate(), gate(), gate()];
  const results = gates.map(({ promise }, index) =>
    queue.run(async () => {
      started.push(index);
      await promise;
      return index;
    }),
  );
  t.same([started, queue.running(), queue.waiting()], [[0, 1], 2, 2]);
  gates[1]?.open();
  t.equal(await results[1], 1);
  await setImmediate();
  t.same([started, queue.running(), queue.waiting()], [[0, 1, 2], 2, 1]);
  for (const { open } of gates) open();
  t.same(await Promise.all(results), [0, 1, 2, 3]);
  await setImmediate();
  t.same([queue.running(), queue.waiting()], [0, 0]);
});

t.test('a full queue refuses at once, and a place that becomes free is taken again', async (t) => {
  const queue = createBoundedQueue({ concurrency: 1, maxWaiting: 1, waitTimeoutMs: 10_000 });
  const { promise, open } = gate();
  const first = queue.run(() => promise);
  const second = queue.run(async () => 'second');
  await t.rejects(
    queue.run(async () => t.fail('it must not start')),
    { name: 'QueueRefusedError', message: 'the queue is full' },
  );
  open();
  await first;
  t.equal(await second, 'second');
  t.equal(await queue.run(async () => 'third'), 'third');
});

t.test('work that waits too long never starts, and leaves the queue', async (t) => {
  const queue = createBoundedQueue({ concurrency: 1, maxWaiting: 1, waitTimeoutMs: 20 });
  const { promise, open } = gate();
  const first = queue.run(() => promise);
  await t.rejects(
    queue.run(async () => t.fail('it must not start')),
    { name: 'QueueRefusedError', message: 'waited 20 ms in vain' },
  );
  t.equal(queue.waiting(), 0);
  open();
  await first;
});

t.test('the time-out ends with the wait: what runs may take longer', async (t) => {
  const queue = createBoundedQueue({ concurrency: 1, maxWaiting: 1, waitTimeoutMs: 50 });
  const first = gate();
  const second = gate();
  const running = queue.run(() => first.promise);
  const waiting = queue.run(() => second.promise.then(() => 'done'));
  first.open();
  await running;
  // A later call waits in vain: by then the time-out of the second one is long over.
  await t.rejects(
    queue.run(async () => t.fail('it must not start')),
    { name: 'QueueRefusedError' },
  );
  second.open();
  t.equal(await waiting, 'done');
});

t.test('work that fails makes way for the next', async (t) => {
  const queue = createBoundedQueue({ concurrency: 1, maxWaiting: 2, waitTimeoutMs: 10_000 });
  const failing = queue.run(async () => {
    throw new Error('no');
  });
  const next = queue.run(async () => 'next');
  await t.rejects(failing, { message: 'no' });
  t.equal(await next, 'next');
});

t.test('each owner has a share and a queue', async (t) => {
  const shares = createShares({ concurrency: 1, maxWaiting: 1, waitTimeoutMs: 10_000 });
  const started: string[] = [];
  const gates = { a: gate(), b: gate(), other: gate() };
  const begin = (owner: string, name: keyof typeof gates) =>
    shares.run(owner, async () => {
      started.push(name);
      await gates[name].promise;
    });
  const [a, b] = [begin('one', 'a'), begin('one', 'b')];
  const other = begin('two', 'other');
  await t.rejects(begin('one', 'b'), { message: 'the queue is full' });
  t.same([started, shares.waiting()], [['a', 'other'], 1]);
  for (const { open } of Object.values(gates)) open();
  await Promise.all([a, b, other]);
  t.same([started, shares.waiting()], [['a', 'other', 'b'], 0]);
});
