import { z } from 'zod';
import type { Issue } from '../../engine/db/problem.ts';
import { mapping } from '../../engine/mapping.ts';
import { validationFailed } from '../http/errors.ts';

const FORM = /^org:\/\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})+)*\/?$/i;
const PREFIX_LENGTH = 'org://00000000-0000-0000-0000-000000000000'.length;

/**
 * `org://{organizationId}/…`: a name inside the organization, never a place where bytes lie (docs/interface.md 10.6).
 * Whose it is, `requireOwnUris` checks.
 */
export const logicalUri = z
  .string()
  .max(1000)
  .regex(FORM, 'must be a logical URI, org://{organizationId}/…')
  .refine((text) => !/\/(?:\.|%2e){1,2}(?:\/|$)/i.test(text), 'must not hold . or .. segments')
  .pipe(mapping((text) => text.slice(0, PREFIX_LENGTH).toLowerCase() + text.slice(PREFIX_LENGTH)))
  .meta({ id: 'LogicalUri', description: 'A name in the organization: `org://{organizationId}/…`.' });

/**
 * @param uris by the path of their field; absent ones are skipped
 * @throws Problem 400 for those of another organization
 */
export function requireOwnUris(
  organizationId: string,
  uris: Readonly<Record<string, string | null | undefined>>,
): void {
  const own = `org://${organizationId}`;
  const issues = Object.entries(uris).flatMap(([path, uri]): Issue[] => {
    if (uri === undefined || uri === null || uri.slice(0, PREFIX_LENGTH) === own) return [];
    return [{ path, message: `must lie under ${own}`, code: 'foreign_uri' }];
  });
  if (issues.length > 0) throw validationFailed(issues);
}
