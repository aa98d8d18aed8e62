import type { Request } from 'express';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { z } from 'zod';
import type { Config } from '../../../engine/config.ts';
import type { OwnerCaller } from '../caller.ts';
import { UnavailableError } from '../errors.ts';
import { bearerToken, ownerUnauthorized as unauthorized } from './bearer.ts';

// Signatures by key pairs alone: with a shared secret the key set itself could sign.
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const CLOCK_TOLERANCE_S = 5;
const subjectSchema = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\0-\x1f\x7f]+$/);

/** True for what says something about the token, not about the key set's server. */
function tokenIsWrong(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid) return false;
  if (error instanceof errors.JOSEError) return error.code !== 'ERR_JOSE_GENERIC';
  return false;
}

/** Tokens that an identity provider signs: their key set is fetched once, and again for a key that is not in it. */
export function jwtAuthentication(
  auth: Extract<Config['ownerAuth'], { mode: 'jwt' }>,
): (req: Request) => Promise<OwnerCaller> {
  const keys = createRemoteJWKSet(new URL(auth.jwksUrl), { timeoutDuration: 5_000, cooldownDuration: 10_000 });
  return async (req) => {
    const token = bearerToken(req);
    if (token === undefined) throw unauthorized('A bearer token is required.');
    const verified = await jwtVerify(token, keys, {
      issuer: auth.issuer,
      audience: auth.audience,
      algorithms,
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ['sub', 'exp'],
    }).catch((error: unknown) => {
      if (tokenIsWrong(error)) throw unauthorized('The bearer token is not valid.', 'invalid_token');
      throw new UnavailableError('The key set that owner tokens are checked with cannot be read.', { cause: error });
    });
    const subject = subjectSchema.safeParse(verified.payload.sub);
    if (!subject.success) throw unauthorized('The bearer token has no usable subject.', 'invalid_token');
    const expiresAt = ((verified.payload.exp ?? 0) + CLOCK_TOLERANCE_S) * 1000;
    return { kind: 'owner', mode: 'jwt', subject: subject.data, platform: false, expiresAt };
  };
}
