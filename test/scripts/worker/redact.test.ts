import t from 'tap';
import { replyWriter } from '../../../scripts/worker/chat_writer.ts';
import { redact, redactingStream, secretsOf } from '../../../scripts/worker/redact.ts';

const [one, other] = ['ab'.repeat(32), `ab${'cd'.repeat(31)}`];
const secrets = secretsOf([one, other, undefined, 'short', '']);

t.test('what is too short to be a token is no secret', async (t) => {
  t.same(secrets, [one, other]);
});

t.test('every text of a value is redacted, names of members too', async (t) => {
  const value = { a: [`x${one}y`, 1, null, { [other]: true }], b: one + other };
  t.same(redact(value, secrets), {
    a: ['x[redacted]y', 1, null, { '[redacted]': true }],
    b: '[redacted][redacted]',
  });
});

t.test('a token that comes in pieces is redacted wherever it is cut, and nothing else is lost', async (t) => {
  const text = `So: ${one}. And ${other}ab, abab ${one.slice(0, 40)} end ab`;
  const expected = `So: [redacted]. And [redacted]ab, abab ${one.slice(0, 40)} end ab`;
  for (let size = 1; size <= text.length; size += 1) {
    const stream = redactingStream(secrets);
    let out = '';
    for (let at = 0; at < text.length; at += size) out += stream.next(text.slice(at, at + size));
    t.equal(out + stream.end(), expected, `by ${size}`);
  }
});

t.test('a reply shows no token, and keeps its end', async (t) => {
  const writes: string[] = [];
  const writer = replyWriter({
    secrets,
    writeIntervalMs: 1,
    onCancelled: () => {},
    async send(base, append) {
      writes.push(append);
      return { revision: base + 1, status: 'pending' };
    },
  });
  for (const letter of `It is ${one}, and ab`) writer.append(letter);
  await writer.end();
  t.equal(writes.join(''), 'It is [redacted], and ab');
});
