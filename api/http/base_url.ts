import type { Request } from 'express';
import type { Config } from '../../engine/config.ts';

/** Where this API is reached, without a slash at the end: by PUBLIC_URL, else as this request came. */
export function baseUrl({ integrations }: Config, req: Request): string {
  return integrations.publicUrl ?? `${req.protocol}://${req.get('host') ?? 'localhost'}`;
}
