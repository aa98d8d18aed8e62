import t from 'tap';
import { ApiError } from '../../../scripts/worker/api.ts';
import { ReplyTooLongError, replyWriter } from '../../../scripts/worker/chat_writer.ts';
import { until } from '../../support/wait.ts';

type Write = { base: number; append: string };

/** A writer whose writes get a response when `respond` is called; the first statuses may be given. */
function setUp(statuses: string[] = []) {
  const writes: Write[] = [];
  const open: (() => void)[] = [];
  let cancelled = 0;
  const writer = replyWriter({
    writeIntervalMs: 1,
    async send(base, append) {
      writes.push({ base, append });
      await new Promise<void>((resolve) => open.push(resolve));
      return { revision: base + 1, status: statuses.shift() ?? 'pending' };
    },
    onCancelled: () => {
      cancelled += 1;
    },
  });
  const respond = async () => (await until('a write', () => open.shift()))();
  return { writer, writes, respond, cancelled: () => cancelled };
}

t.test('the first text goes at once, what follows is gathered, each upon the revision before', async (t) => {
  const { writer, writes, respond } = setUp();
  t.ok(writer.empty());
  writer.append('One');
  t.same(writes, [{ base: 1, append: 'One' }]);
  writer.append(', two');
  writer.append('');
  writer.append(', three');
  t.equal(writes.length, 1, 'never two at a time');
  await respond();
  await respond();
  writer.append('.');
  const ended = writer.end();
  await respond();
  await ended;
  t.same(writes, [
    { base: 1, append: 'One' },
    { base: 2, append: ', two, three' },
    { base: 3, append: '.' },
  ]);
  t.notOk(writer.empty());
  writer.append('late');
  await writer.end();
  t.equal(writes.length, 3, 'nothing comes after the end');
});

t.test('characters stay whole, and what no message can hold is left out', async (t) => {
  const { writer, writes, respond } = setUp();
  writer.append('a\0\ud83d');
  writer.append('\ude00b\udc00');
  writer.append('😀'.repeat(60_000));
  const ended = writer.end();
  for (let write = 0; write < 4; write += 1) await respond();
  await ended;
  t.equal(writes.map(({ append }) => append).join(''), `a😀b\ufffd${'😀'.repeat(60_000)}`);
  t.ok(writes.every(({ append }) => append.isWellFormed() && append.length <= 50_000));
});

t.test('after a cancel nothing is written', async (t) => {
  const { writer, writes, respond, cancelled } = setUp(['pending', 'cancelling']);
  writer.append('One');
  await respond();
  writer.append('two');
  await respond();
  writer.append('three');
  await writer.end();
  writer.append('four');
  await writer.end();
  t.same(
    writes.map(({ append }) => append),
    ['One', 'two'],
  );
  t.equal(cancelled(), 1);
  t.notOk(writer.signal.aborted);
});

t.test('a refused write and a reply without end break it off', async (t) => {
  const refused = replyWriter({
    send: () => Promise.reject(new ApiError(409, 'run_lease_expired', 'lease_lost', 'gone')),
    onCancelled: () => {},
  });
  refused.append('One');
  await t.rejects(refused.end(), { name: 'ApiError', status: 409 });
  t.ok(refused.signal.aborted);
  let sent = 0;
  const endless = replyWriter({
    async send(base, append) {
      sent += append.length;
      return { revision: base + 1, status: 'pending' };
    },
    onCancelled: () => {},
  });
  for (let piece = 0; piece < 1_000 && !endless.signal.aborted; piece += 1) endless.append('x'.repeat(10_000));
  await t.rejects(endless.end(), ReplyTooLongError);
  t.ok(sent <= 1_000_000);
});
