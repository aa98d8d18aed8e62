import { z } from 'zod';
import { inputSchema, type Tool } from '../provider.ts';

const SCOPE = 'https://www.googleapis.com/auth/analytics.readonly';
const propertyId = z
  .string()
  .regex(/^\d{1,20}$/)
  .describe('id of a property of the settings');
const name = z.string().regex(/^[A-Za-z0-9_:]{1,100}$/);
const day = z.iso.date();

const tool = (key: string, title: string, description: string, input: z.ZodRawShape): Tool => ({
  key: `google_analytics.${key}`,
  title,
  description,
  effect: 'read',
  risk: 'low',
  scopes: [SCOPE],
  inputSchema: inputSchema(input),
});

export const tools: readonly Tool[] = [
  tool('reports.run', 'Run a report', 'Reads metrics of a property by dimensions, for days of its own time zone.', {
    propertyId,
    startDate: day,
    endDate: day,
    metrics: z.array(name).min(1).max(10),
    dimensions: z.array(name).max(9).optional(),
    limit: z.int().min(1).max(10_000).optional(),
    offset: z.int().min(0).max(1_000_000).optional(),
  }),
  tool('metadata.get', 'List dimensions and metrics', 'Lists the dimensions and metrics that a property has.', {
    propertyId,
  }),
  tool('properties.get', 'Read a property', 'Reads name, time zone and currency of a property.', { propertyId }),
];
