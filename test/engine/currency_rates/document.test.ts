import t from 'tap';
import { readRates } from '../../../engine/currency_rates/document.ts';
import { ratesXml } from '../../support/rates_bank.ts';

const error = (reason: string) => ({ name: 'CurrencyRatesError', reason });

const LAST_DAY = '2026-11-30';

/** In pieces of so many bytes. */
async function* pieces(text: string | Uint8Array, size = 7): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = (text: string | Uint8Array, size?: number) => readRates(pieces(text, size), LAST_DAY);

const DAYS = {
  '2026-11-27': { USD: '1.1594', JPY: '181.06', ISK: '147.0' },
  '2026-11-26': { USD: '1.1600', JPY: '181.1' },
};
const FOUND = [
  { day: '2026-11-27', rates: DAYS['2026-11-27'] },
  { day: '2026-11-26', rates: DAYS['2026-11-26'] },
];

t.test('rates are read as text, digit by digit, however the bytes are cut and quoted', async (test) => {
  for (const quote of ['"', "'"] as const) {
    for (const size of [1, 7, 100_000]) test.same(await read(ratesXml(DAYS, quote), size), FOUND);
  }
});

t.test('a currency that is not quoted on a day is not there', async (test) => {
  const [, day] = await read(ratesXml(DAYS));
  test.notOk('ISK' in (day?.rates ?? {}));
});

t.test('days may come in any order and twice, and one without rates is none', async (test) => {
  const [newer, older] = Object.entries(DAYS);
  const text = ratesXml(Object.fromEntries([older, newer, ['2026-11-25', {}]] as [string, Record<string, string>][]));
  test.same(await read(text), FOUND);
  const again = '<Cube time="2026-11-26"><Cube currency="USD" rate="1.1600"/><Cube currency="CHF" rate="0.93"/></Cube>';
  const [, merged] = await read(text.replace('\n</Cube>\n</gesmes', `\n${again}</Cube>\n</gesmes`));
  test.same(merged, { day: '2026-11-26', rates: { ...DAYS['2026-11-26'], CHF: '0.93' } });
});

t.test('prefixes are the document’s own choice, its namespaces are not', async (test) => {
  const prefixed = ratesXml(DAYS)
    .replaceAll('gesmes:', 'g:')
    .replace('xmlns:gesmes', 'xmlns:g')
    .replace(' xmlns=', ' xmlns:e=')
    .replaceAll('<Cube', '<e:Cube')
    .replaceAll('</Cube', '</e:Cube');
  test.same(await read(prefixed), FOUND);
  for (const space of ['http://www.gesmes.org/xml/2002-08-01', 'http://www.ecb.int/vocabulary/2002-08-01/eurofxref']) {
    await test.rejects(read(ratesXml(DAYS).replace(space, 'http://example.com/')), error('unexpected'), space);
  }
});

t.test('what is cut off anywhere, or is no XML in UTF-8, is malformed', async (test) => {
  const text = ratesXml(DAYS).trim();
  for (let end = 1; end < text.length; end += 13) {
    await test.rejects(read(text.slice(0, end)), error('malformed'), String(end));
  }
  await test.rejects(read(''), error('malformed'));
  await test.rejects(read('{"rates": []}'), error('malformed'));
  await test.rejects(read(`${text}<more/>`), error('malformed'));
  await test.rejects(read(text.replace('<Cube time', '<Cube<Cube time')), error('malformed'));
  await test.rejects(read(Buffer.from(text.replace('Reference', 'R\u00e9f\u00e9rence'), 'latin1')), error('malformed'));
});

t.test('a document type declaration is refused, so that no entity is expanded', async (test) => {
  const [head, body] = ratesXml(DAYS).split('?>\n', 2);
  const entities = '<!DOCTYPE x [<!ENTITY a "1.1"><!ENTITY b "&a;&a;&a;">]>';
  for (const doctype of ['<!DOCTYPE x>', '<!DOCTYPE x SYSTEM "file:///etc/passwd">', entities]) {
    await test.rejects(read(`${head}?>\n${doctype}\n${body}`), error('unexpected'), doctype);
  }
  await test.rejects(read(ratesXml({ '2026-11-27': { USD: '&a;' } })), error('malformed'), 'nor is another known');
});

t.test('what is not of the documented form gives no rates at all', async (test) => {
  const wrong: Readonly<Record<string, string>> = {
    'another document': '<html><body>Sorry</body></html>',
    'no rates': ratesXml({}),
    'a day without rates alone': ratesXml({ '2026-11-27': {} }),
    'too deep': ratesXml(DAYS).replace('<Cube>', `<Cube>${'<a>'.repeat(10)}${'</a>'.repeat(10)}`),
    'too many attributes': ratesXml(DAYS).replace(
      '<Cube>',
      `<Cube ${[...'abcdefghijk'].map((a) => `${a}=""`).join(' ')}>`,
    ),
    'a rate within a rate': ratesXml(DAYS).replace(
      'rate="1.1594"/>',
      'rate="1.1594"><Cube currency="CHF" rate="1"/></Cube>',
    ),
    'a currency of no day': ratesXml(DAYS).replace('<Cube>', '<Cube><Cube currency="USD" rate="1"/>'),
    'two rates': ratesXml(DAYS).replace(
      '<Cube currency="JPY"',
      '<Cube currency="USD" rate="1.2"/><Cube currency="JPY"',
    ),
    'the euro itself': ratesXml({ '2026-11-27': { EUR: '1' } }),
  };
  for (const [name, text] of Object.entries(wrong)) await test.rejects(read(text), error('unexpected'), name);
});

t.test('a rate is a decimal above zero', async (test) => {
  const quote = (rate: string) => read(ratesXml({ '2026-11-27': { USD: rate } }));
  for (const rate of ['0.000001', '1', '340750', '0.5', '123456789012.123456789012']) {
    test.same(await quote(rate), [{ day: '2026-11-27', rates: { USD: rate } }]);
  }
  for (const rate of [
    '0',
    '0.0',
    '',
    '-1',
    '+1',
    '1e3',
    '1,5',
    'N/A',
    'NaN',
    '.5',
    '1.',
    '01',
    ' 1',
    '1234567890123',
  ]) {
    await test.rejects(quote(rate), error('unexpected'), rate);
  }
});

t.test('a day exists, lies in the time of the euro, and is not still to come', async (test) => {
  const on = (day: string) => read(ratesXml({ [day]: { USD: '1.1' } }));
  for (const day of ['1999-01-04', '2024-02-29', LAST_DAY]) test.same((await on(day))[0]?.day, day);
  for (const day of [
    '2026-02-30',
    '2026-13-01',
    '2026-1-1',
    '',
    '1998-12-31',
    '2026-12-01',
    '26-11-27',
    '2026-11-27Z',
  ]) {
    await test.rejects(on(day), error('unexpected'), day);
  }
});

t.test('a currency has three letters', async (test) => {
  for (const currency of ['usd', 'US', 'USDX', '', '__proto__', 'U1D']) {
    await test.rejects(read(ratesXml({ '2026-11-27': { [currency]: '1' } })), error('unexpected'), currency);
  }
});
