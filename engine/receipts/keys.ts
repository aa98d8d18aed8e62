import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../canonical_json.ts';

const SEED_BYTES = 32;
/** What stands before the seed of an Ed25519 private key in PKCS #8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A public key of receipts, as RFC 8037 writes it. */
export type ReceiptJwk = Readonly<{ kty: 'OKP'; crv: 'Ed25519'; x: string; kid: string; use: 'sig' }>;

/** A key of the deployment that signs receipts. */
export type ReceiptKey = Readonly<{ id: string; privateKey: KeyObject; jwk: ReceiptJwk }>;

/** Named by its thumbprint (RFC 7638): one id never stands for two keys, whoever configured them. */
function keyOf(seed: Buffer): ReceiptKey {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const required = { crv: 'Ed25519', kty: 'OKP', x } as const;
  const id = createHash('sha256').update(canonicalJson(required)).digest('base64url');
  return { id, privateKey, jwk: { ...required, kid: id, use: 'sig' } };
}

function seedOf(text: string): Buffer | undefined {
  const seed = Buffer.from(text, 'base64');
  // Buffer skips what is no base64: a key with a typing error would be another key.
  return seed.length === SEED_BYTES && seed.toString('base64') === text ? seed : undefined;
}

/** `base64,…`: the first one signs, the public keys of all are published. No message repeats what was given. */
export const receiptKeys = z
  .string()
  .transform((text) => text.split(',').map((one) => seedOf(one.trim())))
  .refine((seeds) => seeds.every((seed) => seed !== undefined), `each key is ${SEED_BYTES} bytes in base64`)
  .transform((seeds) => seeds.flatMap((seed) => (seed === undefined ? [] : [keyOf(seed)])))
  .refine((keys) => new Set(keys.map(({ id }) => id)).size === keys.length, 'the same key stands there twice');
