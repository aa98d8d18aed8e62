import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import { mapping } from '../../engine/mapping.ts';
import { zoneName, zoneOffsets, zonesLike, zonesMeant } from '../../engine/schedules/index.ts';
import { invalid } from '../http/errors.ts';

/** Of the zones that have the same clocks, so many are asked about. */
const MAX_TRIED = 5;

function instead(text: string): string {
  const names = zonesMeant(text);
  return names.length > 0 ? `; use ${names.join(' or ')} instead` : '';
}

/** A time zone by its IANA name. Whether Postgres reads it as `Intl` does, `requireTimeZone` checks. */
export const timeZone = z
  .string()
  .max(64)
  .superRefine((text, context) => {
    if (zoneName(text) !== undefined) return;
    // A text that is too long is an issue already.
    const message = `must be UTC or the IANA name of a place such as Europe/Berlin${text.length > 64 ? '' : instead(text)}`;
    context.addIssue({ code: 'custom', message });
  })
  .pipe(mapping((text) => zoneName(text) ?? text))
  .describe('`UTC` or the IANA name of a place (`Europe/Berlin`), old names too; no abbreviation, and no offset.');

function agrees(db: Queries, name: string, now: Date): Promise<boolean> {
  const { instants, seconds } = zoneOffsets(name, now);
  const at = instants.map((instant) => instant.toISOString());
  return call(db, 'timezone_matches', { timezone: name, instants: at, seconds }, z.boolean());
}

/** The first zone that has the same clocks by both; undefined: none of those asked about. */
async function otherZone(db: Queries, name: string, now: Date): Promise<string | undefined> {
  let tried = 0;
  for (const other of zonesLike(name, now)) {
    if (await agrees(db, other, now)) return other;
    tried += 1;
    if (tried === MAX_TRIED) return undefined;
  }
  return undefined;
}

/**
 * Schedules go by `Intl`, reports by Postgres, and their rules of time zones may be of different years: a zone is taken when
 * both have the same offsets for the next two years.
 * @param path of the field; an absent zone is passed over
 * @throws Problem 400 `validation_failed`
 */
export async function requireTimeZone(db: Queries, path: string, name: string | null | undefined): Promise<void> {
  const now = new Date();
  if (name === undefined || name === null || name === 'UTC' || (await agrees(db, name, now))) return;
  const other = await otherZone(db, name, now);
  const use = other === undefined ? '' : `; use ${other} instead`;
  throw invalid(path, `is a time zone that the database does not know, or by other rules than the service${use}`);
}
