import { z } from 'zod';

/** Any UUID, in lower case as Postgres writes it: ids of clients need not be of a known version. */
export const uuid = z.guid('must be a UUID').toLowerCase();

/** The id of a row as we send it: described as a UUID and not checked again, where a list has many. */
export const storedUuid = z.string().meta({ format: 'uuid' });

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** `{organizationId}` of a path. */
export const organizationId = uuid.describe('The organization.');

/** `{taskRef}`: a task's UUID, or its organization-local identifier. */
export const taskRef = z
  .string()
  .regex(
    /^(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[TI]-[1-9][0-9]{0,8})$/,
    'must be a UUID or an identifier such as T-12',
  )
  .meta({
    id: 'TaskRef',
    description: 'A task: its UUID, or its identifier in the organization, such as T-12 or I-3.',
    examples: ['T-12'],
  });

/** True for a UUID; false for an identifier. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
