import { z } from 'zod';

/** Any UUID, in lower case as Postgres writes it: ids of clients need not be of a known version. */
export const uuid = z.guid('must be a UUID').toLowerCase();

/** A point in time that we send: ISO 8601, UTC, milliseconds. */
export const timestamp = z.iso.datetime();

/** The parameter of nearly every path. */
export const organizationParams = { organizationId: uuid };
