import t from 'tap';
import { cachedRead } from '../../../engine/monitoring/cached_read.ts';

t.test('those who ask at once, and soon after, share one read', async (t) => {
  let reads = 0;
  const read = cachedRead(async () => ++reads, 0);
  t.same(await Promise.all([read(), read(), read()]), [1, 1, 1]);
  t.equal(await read(), 1);
  const always = cachedRead(async () => ++reads, 0, { keptMs: 0 });
  t.same([await always(), await always()], [2, 3]);
});

t.test('one that fails is nothing, and is tried again', async (t) => {
  let fails = true;
  const read = cachedRead(
    async () => {
      if (fails) throw new Error('no');
      return 7;
    },
    0,
    { keptMs: 0 },
  );
  t.equal(await read(), 0);
  fails = false;
  t.equal(await read(), 7);
});

t.test('one that stalls holds up nobody, and is not begun again meanwhile', async (t) => {
  const stalled = Promise.withResolvers<number>();
  let reads = 0;
  const read = cachedRead(
    () => {
      reads += 1;
      return stalled.promise;
    },
    0,
    { keptMs: 0, timeoutMs: 5 },
  );
  t.same([await read(), await read()], [0, 0]);
  t.equal(reads, 1);
  stalled.resolve(7);
  t.equal(await read(), 7);
});
