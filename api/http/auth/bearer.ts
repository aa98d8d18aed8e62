import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { bearerOf } from '../../../engine/bearer.ts';

/** The token of `Authorization: Bearer …`; undefined when there is none or it is not well-formed. */
export function bearerToken(req: Request): string | undefined {
  return bearerOf(req.get('authorization'));
}

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
