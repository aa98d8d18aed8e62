import { createPublicKey, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../canonical_json.ts';
import type { ReceiptKey } from './keys.ts';

const SIGNATURE_BYTES = 64;

/** What a receipt says of an action that is over. */
export type ReceiptContent = Readonly<{ action: object; decision: object | null; result: object }>;

const members = z.record(z.string(), z.json());

/** A receipt as it is sent. The signature is that of everything else in it, as RFC 8785 writes it. */
const receiptSchema = z.strictObject({
  action: members,
  decision: members.nullable(),
  result: members,
  keyId: z.string(),
  algorithm: z.literal('Ed25519'),
  signature: z.string(),
});
export type Receipt = z.output<typeof receiptSchema>;

const keySetSchema = z.looseObject({
  keys: z.array(
    z.looseObject({
      kty: z.string(),
      crv: z.string().optional(),
      x: z.string().optional(),
      kid: z.string().optional(),
    }),
  ),
});
export type KeySet = z.output<typeof keySetSchema>;

/** The receipt as RFC 8785 text. Ed25519 is deterministic: the same content and key give the same bytes. */
export function signedReceipt({ action, decision, result }: ReceiptContent, { id, privateKey }: ReceiptKey): string {
  const signed = { action, decision, result, keyId: id, algorithm: 'Ed25519' };
  const signature = sign(null, Buffer.from(canonicalJson(signed)), privateKey).toString('base64url');
  return canonicalJson({ ...signed, signature });
}

/** @returns undefined where the value is no receipt */
export function readReceipt(value: unknown): Receipt | undefined {
  return receiptSchema.safeParse(value).data;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g;
const tokensOf = (json: string) => json.match(TOKEN)?.length ?? 0;

/**
 * Whether an object in a JSON text has two members of one name. JSON.parse keeps the last one, other readers the first: what was signed
 * would not be what they show.
 */
export function repeatsNames(json: string): boolean {
  return tokensOf(json) !== tokensOf(JSON.stringify(JSON.parse(json)));
}

/** @returns undefined where the value is no set of JSON Web Keys */
export function readKeySet(value: unknown): KeySet | undefined {
  return keySetSchema.safeParse(value).data;
}

/** Base64 has several texts for some bytes; only the one that we write counts. */
function signatureBytes(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length === SIGNATURE_BYTES && bytes.toString('base64url') === text ? bytes : undefined;
}

export type Verdict = 'valid' | 'unknown_key' | 'wrong_signature';

/** Whether one of these keys has signed the receipt. `unknown_key`: it names none of them that is an Ed25519 key. */
export function verifyReceipt({ signature, ...signed }: Receipt, { keys }: KeySet): Verdict {
  const found = keys.find(({ kid, kty, crv }) => kid === signed.keyId && kty === 'OKP' && crv === 'Ed25519');
  if (found?.x === undefined) return 'unknown_key';
  const bytes = signatureBytes(signature);
  if (bytes === undefined) return 'wrong_signature';
  try {
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: found.x }, format: 'jwk' });
    return verify(null, Buffer.from(canonicalJson(signed)), key, bytes) ? 'valid' : 'wrong_signature';
  } catch {
    // No point of the curve.
    return 'unknown_key';
  }
}
