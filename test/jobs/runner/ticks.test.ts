import { mock } from 'node:test';
import t from 'tap';
import { LOOKS, ZONE } from '../../../engine/currency_rates/index.ts';
import { createLogger } from '../../../engine/log.ts';
import { crontab } from '../../../jobs/crontab.ts';
import { startTicks } from '../../../jobs/runner/ticks.ts';
import { ticks } from '../../../jobs/ticks.ts';
import { collectLog } from '../support.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Ticks from `begin` on, by a clock that the test moves. */
function open(begin: string, add: () => Promise<unknown> = async () => undefined, spreadMs = 0) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.parse(begin) });
  const added: string[] = [];
  const { logged, write } = collectLog();
  const started = startTicks(
    { currencyRates: 'ecb' },
    async (name, _payload, { key }) => {
      added.push(`${new Date().toISOString().slice(5, 16)} ${name} ${key}`);
      return add();
    },
    createLogger('debug', 'ticks', { destination: { write } }),
    { spreadMs },
  );
  /** Minute by minute, and what each sets off has its turn. */
  async function pass(ms: number): Promise<string[]> {
    added.length = 0;
    for (let passed = 0; passed < ms; passed += MINUTE_MS) {
      mock.timers.tick(MINUTE_MS);
      for (let turn = 0; turn < 8; turn++) await Promise.resolve();
    }
    return added.map((line) => line.replace(' currency_rates__collect currency_rates__collect', ''));
  }
  return { ...started, pass, logged };
}

t.afterEach(() => mock.timers.reset());

const LOOKED = ['15', '45'];
const times = (day: string, hours: readonly number[]) =>
  hours.flatMap((hour) => LOOKED.map((minute) => `${day}T${hour}:${minute}`));

t.test('each is one that the crontab knows too, so that nothing depends on it', async (test) => {
  test.same(
    ticks.map(({ task, key, match, zone }) => [task, key, match, zone]),
    [['currency_rates__collect', 'currency_rates__collect', LOOKS, ZONE]],
  );
  for (const { task, key } of ticks) {
    test.match(crontab.find((item) => item.task === task)?.options, { jobKey: key });
  }
});

t.test('on a working day eight ticks add the job under its key, on the days of a weekend none', async (test) => {
  const { pass, stop } = open('2026-11-26T23:00:00Z');
  test.same(await pass(24 * HOUR_MS), times('11-27', [15, 16, 17, 18]));
  test.same(await pass(48 * HOUR_MS), [], 'Saturday and Sunday');
  test.same(await pass(24 * HOUR_MS), times('11-30', [15, 16, 17, 18]));
  stop();
});

t.test('they follow the clocks in Frankfurt over each change of them', async (test) => {
  const spring = open('2026-03-27T00:00:00Z');
  const inSpring = await spring.pass(4 * 24 * HOUR_MS);
  test.same(inSpring, [...times('03-27', [15, 16, 17, 18]), ...times('03-30', [14, 15, 16, 17])]);
  spring.stop();
  mock.timers.reset();
  const autumn = open('2026-10-23T00:00:00Z');
  const inAutumn = await autumn.pass(4 * 24 * HOUR_MS);
  test.same(inAutumn, [...times('10-23', [14, 15, 16, 17]), ...times('10-26', [15, 16, 17, 18])]);
  autumn.stop();
});

t.test('a machine that slept for minutes ticks late, and for hours not at all', async (test) => {
  const { pass, stop, logged } = open('2026-11-30T15:14:30Z');
  mock.timers.setTime(Date.parse('2026-11-30T15:21:00Z'));
  test.same(await pass(MINUTE_MS), ['11-30T15:22']);
  mock.timers.setTime(Date.parse('2026-11-30T18:30:00Z'));
  test.same(await pass(30 * MINUTE_MS), ['11-30T18:45'], 'those that it missed are left to the crontab');
  test.ok(logged.some(({ msg }) => msg.startsWith('a tick was missed')));
  test.notOk(logged.some(({ level }) => level !== 'debug'));
  stop();
});

t.test('each process waits for a part of a minute of its own, and a stop ends the wait', async (test) => {
  mock.method(Math, 'random', () => 0.5);
  test.teardown(() => mock.restoreAll());
  const { pass, stop } = open('2026-11-30T15:14:00Z', undefined, MINUTE_MS);
  test.same(await pass(MINUTE_MS), []);
  test.same(await pass(MINUTE_MS), ['11-30T15:16']);
  await pass(29 * MINUTE_MS);
  stop();
  test.same(await pass(HOUR_MS), []);
});

t.test('one that cannot add its job says so once, and the next one tries again', async (test) => {
  const { pass, stop, logged } = open('2026-11-30T15:00:00Z', () => Promise.reject(new Error('the database is away')));
  test.equal((await pass(HOUR_MS)).length, 2);
  const warnings = logged.filter(({ level }) => level === 'warn');
  test.match(warnings[0], { task: 'currency_rates__collect', msg: 'a tick could not add its job: the crontab does' });
  stop();
});

t.test('after a stop nothing ticks, and a second one is none too many', async (test) => {
  const { pass, stop } = open('2026-11-30T15:00:00Z');
  test.equal((await pass(20 * MINUTE_MS)).length, 1);
  stop();
  stop();
  test.same(await pass(24 * HOUR_MS), []);
});

t.test('switched off, there are none', async (test) => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.parse('2026-11-30T15:00:00Z') });
  const added: string[] = [];
  const { stop } = startTicks(
    { currencyRates: 'off' },
    async (name) => void added.push(name),
    createLogger('silent', 'ticks'),
    { spreadMs: 0 },
  );
  mock.timers.tick(24 * HOUR_MS);
  await Promise.resolve();
  test.same(added, []);
  stop();
});
