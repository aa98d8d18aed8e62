import { z } from 'zod';
import { ProviderError } from '../providers/outgoing/index.ts';
import { type EncryptionKey, openSecret, SecretError, type SecretPlace, sealSecret } from '../secrets/index.ts';

// Secrets of a connection, each in a field of its own, as they go into SQL and come out of it: bytes as base64.

export type Place = Omit<SecretPlace, 'field'>;

export const sealedSchema = z.object({ keyId: z.string(), wrappedKey: z.string(), ciphertext: z.string() });
export type Sealed = z.output<typeof sealedSchema>;

export const secretRow = sealedSchema.extend({ field: z.string(), revision: z.int() });
export type SecretRow = z.output<typeof secretRow>;

/** The room of one field, less what encryption adds. */
const MAX_BYTES = 60_000;

/** @throws SecretError with `no_keys`; ProviderError where a provider gave more than anybody needs */
export function sealField(
  keys: readonly EncryptionKey[],
  provider: string,
  place: SecretPlace,
  secret: string,
): Sealed {
  if (Buffer.byteLength(secret) > MAX_BYTES) {
    throw new ProviderError(provider, 'failed', 'The provider gave a credential that is too large to keep.');
  }
  const { keyId, wrappedKey, ciphertext } = sealSecret(keys, place, secret);
  return { keyId, wrappedKey: wrappedKey.toString('base64'), ciphertext: ciphertext.toString('base64') };
}

/** @throws SecretError */
export function openField(keys: readonly EncryptionKey[], place: SecretPlace, sealed: Sealed): string {
  return openSecret(keys, place, {
    keyId: sealed.keyId,
    wrappedKey: Buffer.from(sealed.wrappedKey, 'base64'),
    ciphertext: Buffer.from(sealed.ciphertext, 'base64'),
  });
}

/** @throws SecretError with `no_keys`, ProviderError */
export function sealFields(
  keys: readonly EncryptionKey[],
  provider: string,
  place: Place,
  secrets: ReadonlyMap<string, string>,
): (Sealed & { field: string })[] {
  return [...secrets].map(([field, secret]) => ({ field, ...sealField(keys, provider, { ...place, field }, secret) }));
}

/** @throws SecretError: of one that does not open, or is bound to another revision than that of its connection */
export function openFields(
  keys: readonly EncryptionKey[],
  place: Place,
  rows: readonly SecretRow[],
): ReadonlyMap<string, string> {
  return new Map(
    rows.map(({ field, revision, ...sealed }) => {
      if (revision !== place.revision) throw new SecretError('damaged', 'A stored secret is of another connection.');
      return [field, openField(keys, { ...place, field }, sealed)];
    }),
  );
}
