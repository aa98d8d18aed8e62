import t from 'tap';
import { createLogger, createThrottle, loggedError, redact } from '../../../engine/log.ts';

function logger() {
  const lines: string[] = [];
  const log = createLogger('debug', 'test', { destination: { write: (line) => void lines.push(line) } });
  return { log, lines };
}

t.test('credentials are redacted wherever they stand in a line', async (t) => {
  const { log, lines } = logger();
  const secrets = ['s3cretpassword', 'lease.0123456789abcdef', 'exec0123456789abcdef', 'bearer0123456789abcdef'];
  const [password, lease, execution, bearer] = secrets;
  log.info({ req: { headers: { authorization: `Bearer ${bearer}`, cookie: `a=${bearer}` } } }, 'headers');
  log.info({ body: { deep: [{ leaseToken: lease, executionToken: execution }] } }, 'a body');
  log.error({ err: new Error(`connect to postgres://runner_api:${password}@db.example:5432/x failed`) }, 'an error');
  log.info(`curl -H 'Authorization: Bearer ${bearer}' https://u:${password}@example.com`);
  log.info(`url=http://a.example/x:y,git+ssh://u:${password}@h.example and redis://:${password}/0@h.example`);
  log.info({ password, ownerSecret: password, 'x-lease-token': lease, tokens: password }, 'fields');
  const text = lines.join('');
  for (const secret of secrets) t.notOk(text.includes(secret as string), secret);
  for (const line of lines) t.doesNotThrow(() => JSON.parse(line), 'still JSON');
  t.match(text, /db\.example/, 'the rest is there');
});

t.test('a quoted secret with escapes is redacted to its end', async (t) => {
  const line = JSON.stringify({ token: 'a"b\\c', after: 'kept' });
  t.same(JSON.parse(redact(line)), { token: '[redacted]', after: 'kept' });
});

t.test('of an error its place and reason are logged, not the data it carries', async (t) => {
  const cause = Object.assign(new Error('duplicate key'), {
    code: '23505',
    constraint: 'x_key',
    detail: 'Key (email)=(a@b.c)',
  });
  const error = Object.assign(new Error('outer', { cause }), {
    values: ['a@b.c'],
    row: { email: 'a@b.c' },
    sql: 'select',
  });
  const logged = loggedError(error);
  t.match(logged, { type: 'Error', message: 'outer', cause: { code: '23505', constraint: 'x_key' } });
  t.notMatch(JSON.stringify(logged), /a@b\.c/);
});

t.test('identical errors are let through once in ten seconds, with the number of those left out', async (t) => {
  let now = 0;
  const throttle = createThrottle(() => now);
  t.same(throttle('a'), { log: true, leftOut: 0 });
  for (let i = 0; i < 500; i += 1) t.equal(throttle('a').log, false);
  t.same(throttle('b'), { log: true, leftOut: 0 }, 'another kind');
  now = 10_000;
  t.same(throttle('a'), { log: true, leftOut: 500 });
  for (let i = 0; i < 1_000; i += 1) throttle(`kind ${i}`);
  t.same(throttle('b').log, true, 'kinds are bounded');
});
