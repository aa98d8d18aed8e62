import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';

/** The name as the IANA database spells it; undefined for what is no name of it. */
function canonicalName(text: string): string | undefined {
  // Offsets such as +01:00 are accepted by Intl too, and know no daylight saving.
  if (!/^[A-Za-z][\w+\-/]*$/.test(text)) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
    // Older names of a place stay what they are; only the case is put right.
    return timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text;
  } catch {
    return undefined;
  }
}

/** A time zone by its IANA name. */
export const timeZone = z
  .string()
  .max(64)
  .refine((text) => canonicalName(text) !== undefined, 'must be an IANA time zone such as Europe/Berlin')
  .pipe(mapping((text) => canonicalName(text) ?? text));
