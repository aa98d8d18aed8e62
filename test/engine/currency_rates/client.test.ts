import t from 'tap';
import { type CurrencyRatesClient, createCurrencyRatesClient } from '../../../engine/currency_rates/index.ts';
import { BANK, openRatesBank, ratesXml } from '../../support/rates_bank.ts';

const error = (reason: string) => ({ name: 'CurrencyRatesError', reason });

const bank = await openRatesBank(t);
const DAYS = { '2026-11-27': { USD: '1.1594' }, '2026-11-26': { USD: '1.16' }, '2026-01-02': { USD: '1.2' } };
const LAST_DAY = '2026-11-30';
const NOW = Date.parse('2026-11-30T15:15:00Z');

type Options = Partial<Parameters<typeof createCurrencyRatesClient>[0]>;

function open(options: Options = {}): CurrencyRatesClient {
  const client = createCurrencyRatesClient({
    allowPrivateAddresses: true,
    origins: bank.origins,
    now: () => NOW,
    ...options,
  });
  t.teardown(() => client.close());
  return client;
}

const client = open();
bank.publish(DAYS);
t.afterEach(() => bank.respond(undefined));

t.test('each document is at the bank’s address', async (test) => {
  const days = async (document: Parameters<CurrencyRatesClient['read']>[0]) =>
    (await client.read(document, LAST_DAY)).map(({ day }) => day);
  test.same(await days('daily'), ['2026-11-27']);
  test.same(await days('recent'), ['2026-11-27', '2026-11-26']);
  test.same(await days('history'), ['2026-11-27', '2026-11-26', '2026-01-02']);
  test.same(bank.asked, ['daily', 'recent', 'history']);
});

t.test('a bank that cannot respond says when to ask again', async (test) => {
  const after = async (status: number, header?: string) => {
    bank.respond((_request, response) => response.writeHead(status, header ? { 'retry-after': header } : {}).end('x'));
    const error = await client.read('daily', LAST_DAY).catch((reason: unknown) => reason);
    const { reason, notBefore } = error as { reason: string; notBefore: Date | undefined };
    return [reason, notBefore?.toISOString()];
  };
  test.same(await after(503, '120'), ['unavailable', '2026-11-30T15:17:00.000Z']);
  test.same(await after(503, 'Mon, 30 Nov 2026 16:00:00 GMT'), ['unavailable', '2026-11-30T16:00:00.000Z']);
  test.same(await after(503), ['unavailable', undefined]);
  test.same(await after(429, '60'), ['rate_limited', '2026-11-30T15:16:00.000Z']);
  test.same(await after(404), ['refused', undefined]);
  test.same(await after(204), ['refused', undefined]);
});

t.test('a longer document than there can be ends at its limit, however it is compressed', async (test) => {
  const small = open({ maxBytes: 500 });
  await test.rejects(small.read('history', LAST_DAY), error('too_large'));
  bank.respond((_request, response) => response.writeHead(200).end(ratesXml(DAYS).padEnd(2_000)));
  await test.rejects(small.read('daily', LAST_DAY), error('too_large'));
});

t.test('a response that breaks off stores nothing', async (test) => {
  const text = ratesXml(DAYS);
  bank.respond((_request, response) => {
    response.writeHead(200, { 'content-length': text.length });
    response.write(text.slice(0, -50), () => response.destroy());
  });
  await test.rejects(client.read('daily', LAST_DAY), error('unreachable'));
  bank.respond((_request, response) => response.writeHead(200).end(text.slice(0, -50)));
  await test.rejects(client.read('daily', LAST_DAY), error('malformed'));
  bank.respond((_request, response) => response.writeHead(200).end('<html><body>Maintenance</body></html>'));
  await test.rejects(client.read('daily', LAST_DAY), error('unexpected'));
});

t.test('one that is silent ends with its time', async (test) => {
  bank.respond((_request, response) => response.writeHead(200).write('<?xml version="1.0"?>'));
  await test.rejects(open({ totalMs: 50 }).read('daily', LAST_DAY), error('timed_out'));
});

t.test('a redirect is followed within the bank, and to no other server', async (test) => {
  bank.respond((request, response) => {
    if (request.url === '/moved.xml') return response.writeHead(200).end(ratesXml(DAYS));
    return response.writeHead(302, { location: '/moved.xml' }).end();
  });
  test.equal((await client.read('daily', LAST_DAY)).length, 3);
  const other = await openRatesBank(test);
  other.publish(DAYS);
  bank.respond((request, response) => response.writeHead(302, { location: `${other.origin}${request.url}` }).end());
  await test.rejects(client.read('daily', LAST_DAY), error('refused'));
  test.same(other.asked, []);
});

t.test('a private address is not asked in place of the bank', async (test) => {
  const guarded = open({ allowPrivateAddresses: false });
  const count = bank.asked.length;
  await test.rejects(guarded.read('daily', LAST_DAY), error('address_refused'));
  test.equal(bank.asked.length, count);
  const unknown = open({ origins: new Map(), net: { resolve: async () => [] } });
  await test.rejects(unknown.read('daily', LAST_DAY), error('name_unknown'), BANK);
});

t.test('whoever leaves gets the reason for it', async (test) => {
  const leaving = new AbortController();
  bank.respond(() => leaving.abort(new Error('stopped')));
  await test.rejects(client.read('daily', LAST_DAY, leaving.signal), { message: 'stopped' });
});
