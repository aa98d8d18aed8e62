import { randomBytes, randomUUID } from 'node:crypto';
import t from 'tap';
import {
  type EncryptionKey,
  openSecret,
  rewrapSecret,
  SecretError,
  type SecretPlace,
  type SecretReason,
  sealSecret,
} from '../../../engine/secrets/index.ts';

const key = (id: string): EncryptionKey => ({ id, key: randomBytes(32) });
const [old, current] = [key('old'), key('new')];
const place: SecretPlace = {
  organizationId: randomUUID(),
  integrationId: randomUUID(),
  field: 'credential',
  revision: 3,
};
const SECRET = 'sk_live_größe-🔑';

function refuses(test: Tap, run: () => unknown, reason: SecretReason, what: string): void {
  try {
    run();
    test.fail(`opened: ${what}`);
  } catch (error) {
    test.ok(error instanceof SecretError, `${what}: ${error}`);
    test.equal((error as SecretError).reason, reason, what);
    test.notMatch((error as SecretError).message, SECRET);
    test.equal((error as SecretError).cause, undefined);
  }
}
type Tap = Pick<typeof t, 'fail' | 'ok' | 'equal' | 'notMatch'>;

t.test('a secret opens at its place, with whichever of the keys sealed it', async (test) => {
  const sealed = sealSecret([old], place, SECRET);
  test.equal(sealed.keyId, 'old');
  test.equal(openSecret([current, old], place, sealed), SECRET);
  test.equal(openSecret([old], place, sealSecret([old], place, '')), '');
});

t.test('the same secret never looks the same, and is not seen in what is stored', async (test) => {
  const [one, two] = [sealSecret([old], place, SECRET), sealSecret([old], place, SECRET)];
  test.notSame(one.ciphertext, two.ciphertext);
  test.notSame(one.wrappedKey, two.wrappedKey);
  test.notOk(one.ciphertext.includes(SECRET));
});

t.test('a record that was moved to another place does not open', async (test) => {
  const sealed = sealSecret([old], place, SECRET);
  const places: Record<string, SecretPlace> = {
    organization: { ...place, organizationId: randomUUID() },
    integration: { ...place, integrationId: randomUUID() },
    field: { ...place, field: 'state' },
    revision: { ...place, revision: 4 },
  };
  for (const [what, other] of Object.entries(places)) {
    refuses(test, () => openSecret([old], other, sealed), 'damaged', what);
    refuses(test, () => rewrapSecret([current, old], other, sealed), 'damaged', what);
  }
});

t.test('each changed byte is noticed, and so is a cut', async (test) => {
  const sealed = sealSecret([old], place, SECRET);
  for (const column of ['wrappedKey', 'ciphertext'] as const) {
    for (let at = 0; at < sealed[column].length; at += 1) {
      const changed = Buffer.from(sealed[column]);
      changed[at] = (changed[at] ?? 0) ^ 1;
      refuses(test, () => openSecret([old], place, { ...sealed, [column]: changed }), 'damaged', `${column} ${at}`);
    }
    for (const length of [0, 1, 28, sealed[column].length - 1]) {
      const cut = sealed[column].subarray(0, length);
      refuses(test, () => openSecret([old], place, { ...sealed, [column]: cut }), 'damaged', `${column} cut`);
    }
  }
});

t.test('a key that is gone is told from another key of the same id', async (test) => {
  const sealed = sealSecret([old], place, SECRET);
  refuses(test, () => openSecret([current], place, sealed), 'key_missing', 'gone');
  refuses(test, () => openSecret([], place, sealed), 'key_missing', 'none');
  refuses(test, () => openSecret([key('old')], place, sealed), 'damaged', 'another of that id');
  refuses(test, () => rewrapSecret([current], place, sealed), 'key_missing', 'rotation without the old one');
  refuses(test, () => sealSecret([], place, SECRET), 'no_keys', 'sealing');
});

t.test('a rotation wraps the data key anew, once, and leaves the ciphertext', async (test) => {
  const sealed = sealSecret([old], place, SECRET);
  const moved = rewrapSecret([current, old], place, sealed);
  if (!moved) throw new Error('not moved');
  test.equal(moved.keyId, 'new');
  test.same(moved.ciphertext, sealed.ciphertext);
  test.equal(openSecret([current], place, moved), SECRET, 'without the old key');
  test.equal(openSecret([old], place, sealed), SECRET, 'a reader of the old row');
  test.equal(rewrapSecret([current, old], place, moved), undefined, 'repeated');
});
