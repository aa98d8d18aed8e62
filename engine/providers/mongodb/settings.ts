import { z } from 'zod';
import type { Access } from '../provider.ts';
import { choices } from '../texts.ts';
import type { MongoCredential } from './session.ts';

export const MAX_COLLECTIONS = 200;

export const collectionName = z
  .string()
  .min(1)
  .max(120)
  .regex(/^[^\0$]+$/, 'must be the name of a collection');

export const settings = z.strictObject({
  kind: z.literal('mongodb'),
  databaseName: z
    .string()
    .min(1)
    .max(63)
    .regex(/^[^\0/\\. "$*<>:|?]+$/, 'must be the name of a database'),
  /** Empty: no collection is allowed. */
  collections: choices(collectionName, MAX_COLLECTIONS),
});
export type Settings = z.output<typeof settings>;
export type Connection = Access<MongoCredential, Settings>;
