import { z } from 'zod';
import { documentedAs } from './query.ts';

/** Any UUID, in lower case as Postgres writes it: ids of clients need not be of a known version. */
export const uuid = z.guid('must be a UUID').toLowerCase();

/** A point in time that a client sends; with an offset, so that it means the same everywhere. */
export const timestampInput = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time with Z or an offset' })
  .transform((text) => new Date(text).toISOString());
documentedAs.set(timestampInput, { type: 'string', format: 'date-time' });

/** A point in time that we send: ISO 8601, UTC, milliseconds. */
export const timestamp = z.iso.datetime();

/** The parameter of nearly every path. */
export const organizationParams = { organizationId: uuid };
