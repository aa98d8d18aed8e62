import { z } from 'zod';
import { carriesCredential } from '../../engine/credentials.ts';
import { instant } from '../fields/instant.ts';
import { leaseFields } from './changes.ts';
import { LOG_CATEGORIES, LOG_STATUSES, MAX_SEQUENCE } from './logs.ts';

const line = (minimum: number, maximum: number) =>
  z
    .string()
    .min(minimum)
    .max(maximum)
    .refine((text) => !/[\p{Cc}\u2028\u2029]/u.test(text), 'must be one line without control characters')
    .refine((text) => !carriesCredential(text), 'looks like it carries a credential');

const entrySchema = z.strictObject({
  sequence: z.int().min(0).max(MAX_SEQUENCE).describe('Chosen by the worker, unique in the run; the order of the log.'),
  category: z.enum(LOG_CATEGORIES),
  status: z.enum(LOG_STATUSES),
  label: line(1, 200).describe('One line without control characters or credentials.'),
  detail: line(0, 2000).default('').describe('One line without control characters or credentials.'),
  occurredAt: instant,
});

/** Safe technical metadata only: raw output, tool payloads, credentials and reasoning have no field to go to. */
export const logsBody = z
  .strictObject({ ...leaseFields, entries: z.array(entrySchema).min(1).max(100) })
  .refine(({ entries }) => new Set(entries.map((entry) => entry.sequence)).size === entries.length, {
    path: ['entries'],
    message: 'holds a sequence twice',
  })
  .meta({ id: 'RunLogs' });
