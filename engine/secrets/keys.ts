import { z } from 'zod';

/** A key of the deployment, by which the data keys of records are wrapped. */
export type EncryptionKey = Readonly<{ id: string; key: Buffer }>;

const KEY_BYTES = 32;
const ID = /^[a-z0-9][a-z0-9_-]{0,39}$/;

function parsed(text: string): { id: string; key: Buffer | undefined } {
  const at = text.indexOf(':');
  const base64 = text.slice(at + 1);
  const key = Buffer.from(base64, 'base64');
  // Buffer skips what is no base64: a key with a typing error would be another key, and decrypt nothing.
  const isWhole = key.length === KEY_BYTES && key.toString('base64') === base64;
  return { id: at < 0 ? '' : text.slice(0, at), key: isWhole ? key : undefined };
}

/** `id:base64,…`: the first one encrypts, all decrypt. No message repeats what was given. */
export const encryptionKeys = z
  .string()
  .transform((text) => text.split(',').map((one) => parsed(one.trim())))
  .refine(
    (list) => list.every(({ id }) => ID.test(id)),
    'each key is id:base64, and an id is made of lower case letters, digits, hyphens and underscores, at most 40',
  )
  .refine((list) => list.every(({ key }) => key !== undefined), `each key is ${KEY_BYTES} bytes in base64`)
  .refine((list) => new Set(list.map(({ id }) => id)).size === list.length, 'two keys have the same id')
  .refine(
    (list) => new Set(list.map(({ key }) => key?.toString('hex'))).size === list.length,
    'two ids have the same key',
  )
  .transform((list) => list.flatMap(({ id, key }): EncryptionKey[] => (key ? [{ id, key }] : [])));
