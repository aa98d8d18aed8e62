import t from 'tap';
import { countPresses } from '../../scripts/presses.ts';

t.test('a signal that npm passes on is no second Ctrl-C', async (test) => {
  let now = 1_000;
  const press = countPresses(() => now);
  const at = (time: number) => {
    now = time;
    return press();
  };
  test.same([1_000, 1_002, 1_500, 1_501, 1_600, 9_000].map(at), [1, 0, 0, 2, 0, 3]);
});
