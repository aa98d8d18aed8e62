import { createHash } from 'node:crypto';
import t from 'tap';
import { byteSearch, digestsOf, mayEndToken, tokensOfLease } from '../../engine/run_tokens.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const token = sha256('a token');
const digest = sha256(token);

t.test('what has the form of a token is found, wherever it stands', async (t) => {
  for (const text of [token, `=${token}`, `%3D${token}`, token.toUpperCase(), `x${token}${token}`, `${token}0`]) {
    t.ok(digestsOf(text).has(digest), text);
  }
  for (const text of ['', token.slice(1), `${token.slice(0, 30)} ${token.slice(30)}`, 'g'.repeat(64)]) {
    t.equal(digestsOf(text).size, 0, text);
  }
});

t.test('a long run of hex digits costs two digests', async (t) => {
  t.ok(digestsOf('0'.repeat(100_000)).size <= 2);
  t.equal(digestsOf(`${token} `.repeat(1_000)).size, 1);
});

t.test('a lease token of another form gives nothing to look for', async (t) => {
  for (const text of ['1.x', 'x', '', `1.${token}x`, `x.${token}`, token]) t.same(tokensOfLease(text, undefined), []);
  t.same(tokensOfLease(`7.${token}`, undefined), [token]);
  t.same(tokensOfLease(`7.${token}`, 'AB'), [token, sha256(`execution:ab:${token}`)]);
});

t.test('a text may end a token when a beginning stands before it', async (t) => {
  for (let at = 1; at < token.length; at += 1) {
    t.ok(mayEndToken(token.slice(at), [token]));
    t.ok(mayEndToken(`${token.slice(at)} and more`, [token]));
  }
  t.ok(mayEndToken(token.slice(10, 20), [token]), 'and a middle piece');
  t.notOk(mayEndToken('zebra', [token]));
});

t.test('bytes are searched whatever they are cut into', async (t) => {
  const bytes = Buffer.from(`${'x'.repeat(100)}${token}${'y'.repeat(100)}`);
  for (let size = 1; size <= bytes.length; size += 1) {
    const search = byteSearch([token, 'z'.repeat(40)]);
    let found = 0;
    for (let at = 0; at < bytes.length; at += size) if (search.next(bytes.subarray(at, at + size))) found += 1;
    t.ok(found > 0, `by ${size}`);
  }
  const search = byteSearch([token]);
  for (let at = 0; at < bytes.length; at += 7)
    t.notOk(
      search.next(
        Buffer.from(
          bytes
            .subarray(at, at + 7)
            .toString()
            .toUpperCase(),
        ),
      ),
    );
});
