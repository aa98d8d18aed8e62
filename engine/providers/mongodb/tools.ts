import { z } from 'zod';
import { type Effect, inputSchema, type Risk, type Tool } from '../provider.ts';

const collection = z.string().min(1).max(120).describe('one of the settings');
const document = z.record(z.string().max(1_000), z.unknown());
const filter = document.describe('a filter of MongoDB, in extended JSON');

type Row = readonly [key: string, title: string, description: string, effect: Effect, risk: Risk, input: z.ZodRawShape];

const rows: readonly Row[] = [
  [
    'find',
    'Find documents',
    'Reads documents that match a filter.',
    'read',
    'low',
    {
      collection,
      filter: filter.optional(),
      projection: document.optional(),
      sort: z.record(z.string().max(1_000), z.literal([1, -1])).optional(),
      limit: z.int().min(1).max(100).optional(),
      skip: z.int().min(0).max(100_000).optional(),
    },
  ],
  ['count', 'Count documents', 'Counts documents that match a filter.', 'read', 'low', { collection, filter }],
  [
    'aggregate',
    'Aggregate documents',
    'Runs a pipeline of reading stages.',
    'read',
    'low',
    { collection, pipeline: z.array(document).min(1).max(20), limit: z.int().min(1).max(1_000).optional() },
  ],
  ['insert', 'Insert a document', 'Inserts a document.', 'write', 'external', { collection, document }],
  [
    'update',
    'Update a document',
    'Changes the first document that matches a filter.',
    'write',
    'external',
    { collection, filter, update: document },
  ],
  [
    'delete',
    'Delete a document',
    'Deletes the first document that matches a filter. It does not come back.',
    'write',
    'high',
    { collection, filter },
  ],
];

export const tools: readonly Tool[] = rows.map(([key, title, description, effect, risk, input]) => ({
  key: `mongodb.${key}`,
  title,
  description,
  effect,
  risk,
  scopes: [],
  inputSchema: inputSchema(input),
}));
