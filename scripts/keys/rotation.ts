import type pg from 'pg';
import { z } from 'zod';
import { functionText } from '../../engine/db/function_text.ts';
import { type EncryptionKey, rewrapSecret, SecretError } from '../../engine/secrets/index.ts';

/** Read at once; each record is a transaction of its own, so that none waits for another. */
const BATCH = 500;

const countsSchema = z.object({ keys: z.array(z.object({ keyId: z.string(), records: z.int() })) });
const secretSchema = z.object({
  organizationId: z.string(),
  integrationId: z.string(),
  field: z.string(),
  revision: z.int(),
  keyId: z.string(),
  wrappedKey: z.string(),
});
type Secret = z.output<typeof secretSchema>;
const batchSchema = z.object({ secrets: z.array(secretSchema) });
const rewrappedSchema = z.object({ rewrapped: z.boolean() });

const COUNTS = functionText('integration_secrets_by_key', {});
const TO_REWRAP = functionText('integration_secrets_to_rewrap', { keyIds: '$1', after: '$2', limit: '$3' });
const REWRAP = functionText('integration_secret_rewrap', {
  organizationId: '$1',
  secret: '$2',
  keyId: '$3',
  wrappedKey: '$4',
});

/** How many records need each key, by its id. */
export async function recordsByKey(client: pg.Client): Promise<Map<string, number>> {
  const { rows } = await client.query(`select ${COUNTS} as result`);
  const { keys } = countsSchema.parse(rows[0]?.result);
  return new Map(keys.map(({ keyId, records }) => [keyId, records]));
}

/** Whether the record was still as it was read. @throws SecretError where its data key does not open */
async function rewrap(client: pg.Client, keys: readonly EncryptionKey[], secret: Secret): Promise<boolean> {
  const { organizationId, keyId, wrappedKey } = secret;
  // Only the data key is wrapped anew: what it protects is neither read nor written.
  const sealed = { keyId, wrappedKey: Buffer.from(wrappedKey, 'base64'), ciphertext: Buffer.alloc(0) };
  const moved = rewrapSecret(keys, secret, sealed);
  if (!moved) return false;
  const { rows } = await client.query(`select ${REWRAP} as result`, [
    organizationId,
    secret,
    moved.keyId,
    moved.wrappedKey.toString('base64'),
  ]);
  return rewrappedSchema.parse(rows[0]?.result).rewrapped;
}

export type Rotation = Readonly<{
  rewrapped: number;
  /** Those whose data key does not open, although its key is there. */
  damaged: readonly Pick<Secret, 'organizationId' | 'integrationId' | 'field'>[];
}>;

/**
 * Wraps the records of all other keys by the first one, pass after pass until one wraps none: processes that still have another
 * first key store records behind the place where a pass is. What is left off is there for the next call.
 */
export async function rotate(client: pg.Client, keys: readonly EncryptionKey[]): Promise<Rotation> {
  const others = keys.slice(1).map(({ id }) => id);
  let rewrapped = 0;
  for (;;) {
    const before = rewrapped;
    const damaged: Secret[] = [];
    let after: Secret | null = null;
    for (;;) {
      const { rows }: pg.QueryResult = await client.query(`select ${TO_REWRAP} as result`, [others, after, BATCH]);
      const { secrets }: z.output<typeof batchSchema> = batchSchema.parse(rows[0]?.result);
      for (const secret of secrets) {
        try {
          if (await rewrap(client, keys, secret)) rewrapped += 1;
        } catch (error) {
          if (!(error instanceof SecretError)) throw error;
          damaged.push(secret);
        }
      }
      after = secrets.at(-1) ?? null;
      if (!after) break;
    }
    if (rewrapped === before) return { rewrapped, damaged };
  }
}
