import t from 'tap';
import { createQuarantine } from '../../../jobs/dispatch/quarantine.ts';

t.test('what fails is put aside for longer and longer, at most a minute', async (t) => {
  let now = 0;
  const quarantine = createQuarantine(() => now);
  const waits: number[] = [];
  for (let failure = 0; failure < 9; failure += 1) {
    quarantine.add('a');
    const since = now;
    while (quarantine.has('a')) now += 500;
    waits.push(now - since);
  }
  t.same(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  t.notOk(quarantine.has('b'));
  quarantine.remove('a');
  quarantine.add('a');
  now += 1_000;
  t.notOk(quarantine.has('a'), 'success begins the count anew');
});

t.test('what is no longer due is forgotten, and there is a bound', async (t) => {
  let now = 0;
  const quarantine = createQuarantine(() => now);
  quarantine.add('a');
  quarantine.add('b');
  t.equal(quarantine.size(), 2);
  now = 700_000;
  quarantine.add('c');
  t.equal(quarantine.size(), 1);
  for (let item = 0; item < 12_000; item += 1) quarantine.add(`item ${item}`);
  t.ok(quarantine.size() <= 10_000);
});
