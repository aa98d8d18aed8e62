import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { bearerOf } from '../../../engine/bearer.ts';
import { Problem } from '../../../engine/db/problem.ts';

/** The token of `Authorization: Bearer …`; undefined when there is none or it is not well-formed. */
export function bearerToken(req: Request): string | undefined {
  return bearerOf(req.get('authorization'));
}

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** 401 with the challenge that RFC 6750 asks for; `error`: its code, where a token came. */
export function ownerUnauthorized(message: string, error?: string): Problem {
  const challenge = `Bearer realm="business-runner"${error ? `, error="${error}"` : ''}`;
  return new Problem(401, 'owner_unauthorized', message, undefined, { 'WWW-Authenticate': challenge });
}
