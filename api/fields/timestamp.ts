import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';

/** A point in time that we send: ISO 8601, UTC, milliseconds. */
export const dateTime = z.iso.datetime();

const GOES_OUT = '2026-11-28T00:04:56.057Z';

/**
 * A timestamptz as functions return it in a row (`2026-11-28T00:04:56.057648+00:00`) → how it goes out: ISO 8601 in
 * UTC with milliseconds, the rest cut off, so that a time in a response never lies after what happened.
 */
export const timestamp = z.iso.datetime({ offset: true }).pipe(
  mapping((text) => {
    // As the driver writes the columns of a list: making a Date of each would be half of the time that a row takes.
    if (text.length === GOES_OUT.length && text.endsWith('Z')) return text;
    return new Date(text).toISOString();
  }),
);

export const nullableTimestamp = timestamp.nullable();
