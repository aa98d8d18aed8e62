import { hkdfSync } from 'node:crypto';
import { z } from 'zod';
import { notReady } from '../integrations/index.ts';
import type { EncryptionKey } from '../secrets/index.ts';

/** What the holder of a ticket may put, and where. */
export type UploadTicket = Readonly<{ key: string; size: number; contentType: string; sha256: string }>;

const ALGORITHM = 'HS256';
const AUDIENCE = 'invocation upload';
const ticketSchema = z.object({ key: z.string(), size: z.int(), contentType: z.string(), sha256: z.string() });

/** A key of its own for this purpose: what signs tickets opens no secret. */
const signingKey = ({ key }: EncryptionKey): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', key, '', `business-runner ${AUDIENCE}`, 32));

/**
 * A ticket for one upload to a storage that has no address of its own. Any process with the same ENCRYPTION_KEYS takes it.
 * @throws Problem 409 without ENCRYPTION_KEYS
 */
export async function signTicket(
  keys: readonly EncryptionKey[],
  ticket: UploadTicket,
  expiresAt: Date,
): Promise<string> {
  const [key] = keys;
  if (!key) throw notReady('ENCRYPTION_KEYS', 'deployment_setting', 'is not set, so that no upload can be signed');
  const { SignJWT } = await import('jose');
  return new SignJWT({ ...ticket })
    .setProtectedHeader({ alg: ALGORITHM, kid: key.id })
    .setAudience(AUDIENCE)
    .setExpirationTime(expiresAt)
    .sign(signingKey(key));
}

/** What a ticket allows now; null: nothing, for it is none of ours or its time is over. */
export async function readTicket(keys: readonly EncryptionKey[], text: string): Promise<UploadTicket | null> {
  const { jwtVerify } = await import('jose');
  try {
    const keyOf = ({ kid }: Readonly<{ kid?: string }>) => {
      const key = keys.find(({ id }) => id === kid);
      if (!key) throw new Error('signed with no key of ours');
      return signingKey(key);
    };
    const { payload } = await jwtVerify(text, keyOf, {
      algorithms: [ALGORITHM],
      audience: AUDIENCE,
      requiredClaims: ['exp'],
    });
    return ticketSchema.parse(payload);
  } catch {
    return null;
  }
}
