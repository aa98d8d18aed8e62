import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { EncryptionKey } from './keys.ts';

/** Where a secret belongs. It is authenticated with it: moved to another row, field or revision, it opens no more. */
export type SecretPlace = Readonly<{
  organizationId: string;
  integrationId: string;
  field: string;
  /** Of the connection. */
  revision: number;
}>;

/** A secret as it is stored, in three columns: the rotation reads and writes the first two alone. */
export type SealedSecret = Readonly<{
  /** The key of the deployment that wraps the data key. */
  keyId: string;
  wrappedKey: Buffer;
  ciphertext: Buffer;
}>;

/**
 * `key_missing`: the key that wraps it is no longer in ENCRYPTION_KEYS. `damaged`: the key is there, and the record was
 * changed, cut, moved, or sealed with another key of the same id. `no_keys`: nothing can be sealed without ENCRYPTION_KEYS.
 */
export type SecretReason = 'key_missing' | 'damaged' | 'no_keys';

/** A secret cannot be sealed or opened. A connection whose secret does not open needs its authorization again. */
export class SecretError extends Error {
  override name = 'SecretError';
  readonly reason: SecretReason;
  constructor(reason: SecretReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

function associated(purpose: string, place: SecretPlace): Buffer {
  const parts = [purpose, place.organizationId, place.integrationId, place.field, String(place.revision)];
  // Two places must never read alike.
  if (parts.some((part) => part === '' || part.includes('|'))) throw new TypeError('a part of the place has no name');
  return Buffer.from(parts.join('|'));
}

/** version (1) | nonce (12) | tag (16) | ciphertext */
function encrypt(key: Buffer, aad: Buffer, plaintext: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(aad);
  const body = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), body]);
}

function decrypt(key: Buffer, aad: Buffer, sealed: Buffer): Buffer {
  const damaged = () => new SecretError('damaged', 'A stored secret does not open: it was changed, or its key was.');
  if (sealed.length < HEAD_BYTES || sealed[0] !== VERSION) throw damaged();
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(aad)
    .setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]);
  } catch {
    throw damaged();
  }
}

function firstOf(keys: readonly EncryptionKey[]): EncryptionKey {
  const [first] = keys;
  if (!first) {
    throw new SecretError('no_keys', 'ENCRYPTION_KEYS is not set, so that no credential can be kept.');
  }
  return first;
}

const wrapping = (keyId: string, place: SecretPlace) => associated(`key/${keyId}`, place);

function wrap(key: EncryptionKey, place: SecretPlace, dataKey: Buffer) {
  return { keyId: key.id, wrappedKey: encrypt(key.key, wrapping(key.id, place), dataKey) };
}

function unwrap(keys: readonly EncryptionKey[], place: SecretPlace, sealed: SealedSecret): Buffer {
  const key = keys.find(({ id }) => id === sealed.keyId);
  if (!key) {
    throw new SecretError('key_missing', `A stored secret needs the key ${sealed.keyId}, not one of ENCRYPTION_KEYS.`);
  }
  return decrypt(key.key, wrapping(key.id, place), sealed.wrappedKey);
}

/**
 * Encrypts with a data key of this record alone, which the first of the keys wraps.
 * @throws SecretError with `no_keys`
 */
export function sealSecret(keys: readonly EncryptionKey[], place: SecretPlace, secret: string): SealedSecret {
  const key = firstOf(keys);
  const dataKey = randomBytes(32);
  const ciphertext = encrypt(dataKey, associated('secret', place), Buffer.from(secret, 'utf8'));
  return { ...wrap(key, place, dataKey), ciphertext };
}

/** @throws SecretError with `key_missing` or `damaged` */
export function openSecret(keys: readonly EncryptionKey[], place: SecretPlace, sealed: SealedSecret): string {
  const dataKey = unwrap(keys, place, sealed);
  return decrypt(dataKey, associated('secret', place), sealed.ciphertext).toString('utf8');
}

/**
 * The same record under the first of the keys: the data key is wrapped anew and the ciphertext stays, so that a rotation costs
 * as much for a large secret as for a small one, and a reader of the old row still reads.
 * @returns undefined where it is under the first key already
 * @throws SecretError
 */
export function rewrapSecret(
  keys: readonly EncryptionKey[],
  place: SecretPlace,
  sealed: SealedSecret,
): SealedSecret | undefined {
  const key = firstOf(keys);
  if (sealed.keyId === key.id) return undefined;
  return { ...sealed, ...wrap(key, place, unwrap(keys, place, sealed)) };
}
