import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import t from 'tap';
import { canonicalJson } from '../../../engine/canonical_json.ts';
import {
  type KeySet,
  type Receipt,
  type ReceiptKey,
  readKeySet,
  readReceipt,
  receiptKeys,
  repeatsNames,
  signedReceipt,
  verifyReceipt,
} from '../../../engine/receipts/index.ts';

// The key pair of RFC 8037, appendix A, with its thumbprint of A.3.
const SEED = Buffer.from('nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', 'base64url').toString('base64');
const PUBLIC = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
const THUMBPRINT = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k';
const OTHER = Buffer.alloc(32, 7).toString('base64');

function keys(text: string): readonly [ReceiptKey, ...ReceiptKey[]] {
  const [first, ...rest] = receiptKeys.parse(text);
  if (first === undefined) throw new Error('no key');
  return [first, ...rest];
}
const setOf = (list: readonly ReceiptKey[]): KeySet => ({ keys: list.map(({ jwk }) => ({ ...jwk })) });

const content = { action: { id: 'a', amount: 4.5, name: 'ä\u2028"' }, decision: null, result: { status: 'expired' } };

function receiptBy(key: ReceiptKey, of = content): Receipt {
  const receipt = readReceipt(JSON.parse(signedReceipt(of, key)));
  if (receipt === undefined) throw new Error('no receipt');
  return receipt;
}

t.test('a text that names a member twice is found, wherever, and however it is written', (t) => {
  const text = signedReceipt(content, keys(SEED)[0]);
  for (const json of [
    text,
    JSON.stringify(JSON.parse(text), null, 2),
    '{"a":"\\"a\\":1,{","b":{"a":[{"a":1},{"a":1}]},"__proto__":1}',
    '1',
  ]) {
    t.notOk(repeatsNames(json), json);
  }
  for (const json of [
    text.replace('{"action"', '{"action":{},"action"'),
    text.replace('"amount"', '"amount":9,"amount"'),
    '{"a":1, "\\u0061":1}',
    '{"__proto__":1,"__proto__":1}',
  ]) {
    t.ok(repeatsNames(json), json);
  }
  t.end();
});

t.test('a key is the one of RFC 8037, named by its thumbprint', (t) => {
  const [key] = keys(SEED);
  t.same(key.jwk, { kty: 'OKP', crv: 'Ed25519', x: PUBLIC, kid: THUMBPRINT, use: 'sig' });
  t.equal(key.id, THUMBPRINT);
  t.same(
    keys(` ${SEED}, ${OTHER}`).map(({ id }) => id),
    [THUMBPRINT, keys(OTHER)[0].id],
  );
  t.end();
});

t.test('what is no list of keys is refused, and not repeated', (t) => {
  const wrong = [
    '',
    SEED.slice(0, -1),
    `${SEED},`,
    Buffer.alloc(31).toString('base64'),
    'planted secret',
    `${SEED},${SEED}`,
  ];
  for (const text of wrong) {
    const { error } = receiptKeys.safeParse(text);
    t.match(error?.issues[0]?.message, /^(each key is 32 bytes in base64|the same key stands there twice)$/, text);
  }
  t.end();
});

t.test('a receipt is RFC 8785 text, and the signature is over the rest of it', (t) => {
  const [key] = keys(SEED);
  const text = signedReceipt(content, key);
  t.equal(signedReceipt(content, key), text, 'the same bytes again');
  const { signature, ...rest } = JSON.parse(text);
  t.equal(canonicalJson(JSON.parse(text)), text);
  t.same(rest, { ...content, keyId: THUMBPRINT, algorithm: 'Ed25519' });
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: PUBLIC }, format: 'jwk' });
  t.ok(verify(null, Buffer.from(canonicalJson(rest)), publicKey, Buffer.from(signature, 'base64url')));
  t.end();
});

t.test('a receipt is valid by its key alone, in whatever order its members stand', (t) => {
  const [key, other] = keys(`${SEED},${OTHER}`);
  const receipt = receiptBy(key);
  t.equal(verifyReceipt(receipt, setOf([key])), 'valid');
  t.equal(verifyReceipt(receipt, setOf(other ? [other, key] : [])), 'valid', 'a key that signs no more');
  t.equal(verifyReceipt(Object.fromEntries(Object.entries(receipt).reverse()) as Receipt, setOf([key])), 'valid');
  t.equal(verifyReceipt(receipt, setOf(other ? [other] : [])), 'unknown_key');
  t.equal(verifyReceipt(receipt, { keys: [] }), 'unknown_key');
  const posing = { ...keys(OTHER)[0].jwk, kid: THUMBPRINT };
  t.equal(verifyReceipt(receipt, { keys: [posing] }), 'wrong_signature');
  for (const x of [undefined, '', 'AA', '_'.repeat(43)]) {
    t.not(verifyReceipt(receipt, { keys: [{ ...key.jwk, x }] }), 'valid', `x is ${x}`);
  }
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rsa = readKeySet({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: THUMBPRINT }] });
  t.equal(rsa && verifyReceipt(receipt, rsa), 'unknown_key');
  t.end();
});

t.test('nothing of a receipt can be changed', (t) => {
  const [key, other] = keys(`${SEED},${OTHER}`);
  const receipt = receiptBy(key);
  const changed: Record<string, Receipt> = {
    action: { ...receipt, action: { ...receipt.action, amount: 4.6 } },
    'a member more': { ...receipt, action: { ...receipt.action, more: null } },
    decision: { ...receipt, decision: {} },
    result: { ...receipt, result: { status: 'succeeded' } },
    'the key': { ...receipt, keyId: other?.id ?? '' },
    'a bit of the signature': { ...receipt, signature: `A${receipt.signature.slice(1)}` },
    'the last bits of base64url': { ...receipt, signature: `${receipt.signature.slice(0, -1)}_` },
    'a longer signature': { ...receipt, signature: `${receipt.signature}AA` },
    'a signature in base64': { ...receipt, signature: `${receipt.signature}==` },
    'no signature': { ...receipt, signature: '' },
  };
  for (const [name, one] of Object.entries(changed)) {
    t.equal(verifyReceipt(one, setOf(other ? [key, other] : [])), 'wrong_signature', name);
  }
  t.end();
});

t.test('what is no receipt is not read as one', (t) => {
  const receipt = receiptBy(keys(SEED)[0]);
  for (const value of [null, [], {}, { data: receipt }, { ...receipt, more: 1 }, { ...receipt, algorithm: 'none' }]) {
    t.equal(readReceipt(value), undefined, JSON.stringify(value)?.slice(0, 40));
  }
  for (const value of [null, [], {}, { keys: {} }, { keys: ['x'] }]) t.equal(readKeySet(value), undefined);
  t.end();
});
