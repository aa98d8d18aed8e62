import t from 'tap';
import { maskedEmail, maskedId } from '../../../engine/providers/mask.ts';
import { providerCode, resetAt, retryAfter } from '../../../engine/providers/outgoing/index.ts';

const now = Date.parse('2026-11-29T12:00:00Z');
const seconds = (date: Date | undefined) => (date === undefined ? undefined : (date.getTime() - now) / 1_000);

t.test('Retry-After is seconds or a date, and bounded', (test) => {
  for (const [header, expected] of [
    ['0', 0],
    ['7', 7],
    [' 120 ', 120],
    ['999999999', 86_400],
    ['Sun, 29 Nov 2026 12:01:00 GMT', 60],
    ['Sun, 29 Nov 2026 11:00:00 GMT', 0],
    ['Sunday, 29-Nov-26 12:01:00 GMT', 60],
    ['-5', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['2', 2],
    ['', undefined],
    [undefined, undefined],
  ] as const) {
    test.equal(seconds(retryAfter(header, now)), expected, String(header));
  }
  test.end();
});

t.test('a reset is a second since 1970', (test) => {
  const second = now / 1_000;
  test.equal(seconds(resetAt(String(second + 90), now)), 90);
  test.equal(seconds(resetAt(String(second - 90), now)), 0);
  test.equal(resetAt('90', now), undefined, 'seconds from now are something else');
  test.equal(resetAt(undefined, now), undefined);
  test.end();
});

t.test('a code of a provider is a word', (test) => {
  for (const code of ['rateLimitExceeded', 'invalid_grant', 'TOO_MANY.REQUESTS', 'a-b'])
    test.equal(providerCode(code), code);
  for (const other of [
    '',
    'Invalid key rk_live',
    '123',
    'a'.repeat(65),
    'x4e5f60718293a4b5c6d7e8f90a1b2c3d',
    7,
    null,
  ]) {
    test.equal(providerCode(other), undefined, String(other));
  }
  test.end();
});

t.test('a code that repeats a credential of the request is none', (test) => {
  const basic = `Basic ${Buffer.from('someone:p4ss-word').toString('base64')}`;
  for (const [code, sent] of [
    ['rk_test_0815', 'Bearer rk_test_0815'],
    ['bad_rk_test_0815', 'Bearer rk_test_0815'],
    ['rk_test_', 'Bearer rk_test_0815'],
    ['p4ss-word', basic],
    ['no.p4ss-word', basic],
    ['n0nce-4711', 'OAuth oauth_nonce="n0nce-4711", oauth_token="t"'],
    ['p4ss-word', 'p4ss-word'],
  ] as const) {
    test.equal(providerCode(code, [sent]), undefined, code);
    test.equal(providerCode(code), code);
    test.equal(providerCode('invalid_grant', [sent]), 'invalid_grant');
  }
  test.end();
});

t.test('labels show enough for their owner, and no more', (test) => {
  test.equal(maskedEmail('anna@example.com'), 'a…@example.com');
  test.equal(maskedEmail('😀b@example.com'), '😀…@example.com');
  test.equal(maskedEmail('@example'), '…mple');
  test.equal(maskedId('acct_1AbCdEfGh'), '…EfGh');
  test.equal(maskedId('abc'), '…c');
  test.equal(maskedId('a'), '…');
  test.end();
});
