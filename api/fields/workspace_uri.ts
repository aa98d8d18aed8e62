import { z } from 'zod';
import { carriesCredential } from '../../engine/credentials.ts';

const ABSOLUTE = /^[a-z][a-z0-9+.-]*:(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[0-9a-f]{2})+$/i;
const USER = /^[^:/]*:\/\/[^/?#]*@/;

/**
 * Where a worker works, as it says: any absolute URI. Kept as it is for people, and never used to find bytes. Readers of the
 * run see it, so that it must not carry a user name, a password or a key.
 */
export const workspaceUri = z
  .string()
  .max(2000)
  .regex(ABSOLUTE, 'must be an absolute URI (RFC 3986)')
  .refine((text) => !USER.test(text) && !carriesCredential(text), 'must not carry credentials')
  .meta({
    id: 'WorkspaceUri',
    description:
      'Where the worker works: any absolute URI without user name, password or key. It is kept for people and never used to find files.',
    examples: ['file:///var/lib/worker/runs/1'],
  });
