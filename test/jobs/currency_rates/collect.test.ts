import type { ServerResponse } from 'node:http';
import t from 'tap';
import { bankDay, dayAfter, nextLook } from '../../../engine/currency_rates/index.ts';
import { createTestDatabase } from '../../support/database.ts';
import { openRatesBank, ratesXml } from '../../support/rates_bank.ts';
import { until } from '../../support/wait.ts';
import { addJob, openJobs, queued, runJob } from '../support.ts';
import { newestOf, settingsFor, workingDays } from './support.ts';

const TASK = 'currency_rates__collect';

const bank = await openRatesBank(t);
const { url, owner } = await createTestDatabase(t);
const known = workingDays(120);
bank.publish(known);
const jobs = await openJobs(t, url, settingsFor(bank));

const count = async () => {
  const { rows } = await owner.query<{ n: number }>('select count(*)::int as n from app.currency_rates');
  return rows[0]?.n ?? 0;
};

async function source() {
  const { rows } = await owner.query(
    `select *, newest_day::text as newest_day, lease_expires_at is not null as leased from app.currency_rate_sources`,
  );
  return rows[0];
}

async function rateOf(day: string, currency = 'USD'): Promise<string | undefined> {
  const { rows } = await owner.query(
    'select rate::text as rate from app.currency_rates where day = $1 and currency = $2',
    [day, currency],
  );
  return rows[0]?.rate;
}

/** Looks now; what was asked for, and what was logged meanwhile. */
async function look(changes = '') {
  bank.asked.length = 0;
  const from = jobs.logged.length;
  await owner.query(`update app.currency_rate_sources set due_at = now() ${changes}`);
  await runJob(owner, TASK);
  const told = jobs.logged.slice(from).filter(({ msg, level }) => /rates/.test(msg) && level !== 'debug');
  return { asked: [...bank.asked], told };
}

t.test('the first start reads the whole history', async (test) => {
  await until('the history', async () => (await source()).history_loaded_at !== null);
  test.same(bank.asked, ['history']);
  test.equal(await count(), 120 * 3, 'with the euro');
  test.equal(await rateOf(newestOf(known), 'JPY'), '181.0600');
  const { newest_day: newestDay, due_at: dueAt, looked_at: lookedAt, leased } = await source();
  test.match({ newestDay, leased }, { newestDay: newestOf(known), leased: false });
  test.same(dueAt, nextLook(newestDay, lookedAt));
});

t.test('what is not due asks nobody', async (test) => {
  bank.asked.length = 0;
  await runJob(owner, TASK);
  test.same(bank.asked, []);
});

t.test('a working day’s rates are read from its own document, and a holiday brings none', async (test) => {
  test.same((await look()).asked, ['daily'], 'nothing new');
  test.equal(await count(), 120 * 3);
  test.match(await source(), { newest_day: newestOf(known), failure_count: 0 });
  const today = bankDay(new Date());
  bank.publish({ [today]: { USD: '1.2' }, ...known });
  test.same((await look()).asked, ['daily']);
  test.equal(await rateOf(today), '1.2');
  test.equal(await rateOf(today, 'JPY'), undefined, 'a currency that drops out is a gap');
  const { newest_day: newestDay, due_at: dueAt } = await source();
  test.equal(newestDay, today);
  test.ok(bankDay(dueAt) > today, 'the day is done');
  await owner.query('delete from app.currency_rates where day = $1', [today]);
  await owner.query('update app.currency_rate_sources set newest_day = $1', [newestOf(known)]);
  bank.publish(known);
});

t.test('a gap is closed by the document of 90 days, and a longer one by the history', async (test) => {
  const cut = async (days: number) => {
    const last = Object.keys(known)[days] ?? '';
    await owner.query('delete from app.currency_rates where day > $1', [last]);
    const { asked } = await look(`, newest_day = '${last}'`);
    test.equal(await count(), 120 * 3, 'all of them are there again');
    return asked;
  };
  test.same(await cut(10), ['recent']);
  test.same(await cut(80), ['history']);
});

t.test('a document that does not reach back far enough has the history read', async (test) => {
  const newest = Object.entries(known).slice(0, 3);
  bank.respond((request, response) => {
    const isHistory = request.url?.endsWith('hist.xml');
    response.writeHead(200).end(ratesXml(isHistory ? known : Object.fromEntries(newest)));
  });
  const last = Object.keys(known)[5] ?? '';
  await owner.query('delete from app.currency_rates where day > $1', [last]);
  test.same((await look(`, newest_day = '${last}'`)).asked, ['recent', 'history']);
  test.equal(await count(), 120 * 3);
  bank.respond(undefined);
});

t.test('what the bank corrects is replaced by the history, and the log says so', async (test) => {
  const [first = '', second = ''] = Object.keys(known);
  bank.publish({ ...known, [first]: { USD: '1.11', JPY: '181.06' }, [second]: { USD: '1.12', JPY: '181.06' } });
  const { asked, told } = await look();
  test.same(asked, ['daily', 'history'], 'another rate than before makes it look at all of them');
  test.match([await rateOf(first), await rateOf(second), await rateOf(first, 'JPY')], ['1.11', '1.12', '181.0600']);
  const warning = told.find(({ msg }) => msg.startsWith('the bank has corrected rates'));
  test.match(warning, {
    level: 'warn',
    length: 2,
    rates: [
      { was: '1.1', rate: '1.12' },
      { was: '1.1', rate: '1.11' },
    ],
  });
  bank.publish(known);
  test.same((await look(`, history_loaded_at = now() - interval '31 days'`)).asked, ['history'], 'and once a month');
  test.equal(await rateOf(first), '1.1');
});

t.test('what is no whole document of the bank stores nothing', async (test) => {
  const today = bankDay(new Date());
  const text = ratesXml({ [today]: { USD: '9.9' } });
  const bodies = {
    malformed: text.slice(0, -30),
    unexpected: text.replace('?>', '?><!DOCTYPE gesmes:Envelope [<!ENTITY x "1">]>'),
  };
  for (const [code, body] of Object.entries(bodies)) {
    bank.respond((_request, response) => response.writeHead(200).end(body));
    const { told } = await look();
    test.match(told, [{ level: 'warn', code }]);
    test.match(await source(), { error_code: code, newest_day: newestOf(known), leased: false });
  }
  test.equal(await rateOf(today), undefined);
});

t.test('as long as it fails, one line says so, and the pauses grow', async (test) => {
  bank.respond((_request, response) => response.writeHead(503).end());
  const lines = [];
  for (let failure = 0; failure < 4; failure++) lines.push(...(await look()).told);
  test.match(lines, [{ level: 'warn', code: 'unavailable' }]);
  const { due_at: dueAt, failure_count: failures } = await source();
  test.equal(failures, 6);
  test.ok(dueAt.getTime() > Date.now() + 2 * 3_600_000);
  const metrics = await jobs.registry.metrics();
  test.match(metrics, /^runner_currency_rates_failures \d$/m);
  bank.respond((_request, response) => response.writeHead(503, { 'retry-after': '80000' }).end());
  await look();
  test.ok((await source()).due_at.getTime() > Date.now() + 79_000_000, 'the bank’s own time counts');
  bank.respond(undefined);
  await look();
  test.match(await source(), { error_code: null, failure_count: 0 });
});

t.test('the metrics tell how old the rates are', async (test) => {
  const found = /^runner_currency_rates_age_seconds (\d+)/m.exec(await jobs.registry.metrics());
  const age = (Date.now() - Date.parse(newestOf(known))) / 1_000;
  test.ok(Math.abs(Number(found?.[1]) - age) < 100);
});

t.test('two processes at once ask once, and the other looks again when the lease ends', async (test) => {
  const other = await openJobs(test, url, settingsFor(bank));
  await until('its own look', async () => (await queued(owner, TASK)).length === 0);
  const asking = Promise.withResolvers<ServerResponse>();
  bank.asked.length = 0;
  bank.respond((_request, response) => asking.resolve(response));
  await owner.query('update app.currency_rate_sources set due_at = now()');
  await Promise.all([addJob(owner, TASK, {}, 'one'), addJob(owner, TASK, {}, 'two')]);
  const response = await asking.promise;
  const { lease_expires_at: leaseExpiresAt } = await source();
  const later = await until('the other one', async () =>
    (await queued(owner, TASK)).find(({ key, locked_by: lockedBy }) => key === TASK && lockedBy === null),
  );
  test.equal(later.run_at.getTime(), leaseExpiresAt.getTime());
  bank.respond(undefined);
  response.writeHead(200).end(ratesXml(Object.fromEntries(Object.entries(known).slice(0, 1))));
  await until('the look', async () => !(await source()).leased);
  test.same(bank.asked, ['daily']);
  await other.stop();
});

t.test('a stop in the middle leaves it due, for whoever comes when the lease is over', async (test) => {
  const asking = Promise.withResolvers<void>();
  bank.respond(() => asking.resolve());
  await owner.query('update app.currency_rate_sources set due_at = now(), newest_day = $1', [
    dayAfter(newestOf(known), -30),
  ]);
  await addJob(owner, TASK, {}, TASK);
  await asking.promise;
  await jobs.stop();
  bank.respond(undefined);
  test.match(await source(), { leased: true, failure_count: 0, error_code: null }, 'the bank is not blamed');
  await owner.query('update app.currency_rate_sources set lease_expires_at = now()');
  bank.asked.length = 0;
  const next = await openJobs(test, url, settingsFor(bank));
  await until('the look', async () => (await source()).newest_day === newestOf(known));
  test.same(bank.asked, ['recent']);
  await next.stop();
});

t.test('switched off, nobody is asked', async (test) => {
  await owner.query('update app.currency_rate_sources set due_at = now()');
  bank.asked.length = 0;
  const off = await openJobs(test, url, { ...settingsFor(bank), CURRENCY_RATES: 'off' });
  await runJob(owner, TASK);
  test.same(bank.asked, []);
  test.notMatch(await off.registry.metrics(), /currency_rates_age/);
  await off.stop();
});
