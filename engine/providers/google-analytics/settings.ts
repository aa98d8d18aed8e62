import { z } from 'zod';
import { choices } from '../texts.ts';
import type { ArgumentIssue } from '../tool.ts';

export const MAX_PROPERTIES = 200;

export const propertyId = z.string().regex(/^\d{1,20}$/, 'must be the id of a property');

export const settings = z.strictObject({
  kind: z.literal('google_analytics'),
  propertyIds: choices(propertyId, MAX_PROPERTIES),
});
export type Settings = z.output<typeof settings>;

/** A grant reaches all properties of its person; tools reach those of the settings. */
export function checkProperty(
  { propertyId: chosen }: Readonly<{ propertyId: string }>,
  given: Settings | null,
): readonly ArgumentIssue[] {
  if (given?.propertyIds.includes(chosen)) return [];
  return [{ path: ['propertyId'], message: 'is no property of the settings', code: 'not_allowed' }];
}
