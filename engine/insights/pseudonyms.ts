import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { call } from '../db/call.ts';
import type { Database } from '../db/database.ts';
import { openField, sealedSchema, sealField } from '../integrations/secrets.ts';
import type { EncryptionKey } from '../secrets/index.ts';

const HEX = 32;
/** What keys belong to that belong to no integration: `npm run keys` finds them by it. */
const NO_INTEGRATION = '00000000-0000-0000-0000-000000000000';

const readSchema = z.object({ sealed: sealedSchema.nullable() });

/** Where the key belongs: it is authenticated with that. */
export function pseudonymPlace(organizationId: string) {
  return { organizationId, integrationId: NO_INTEGRATION, field: 'pseudonym_key', revision: 1 } as const;
}

/**
 * What stands for ids of customers in the facts of an organization: the same for the same id, another one in each organization, and no
 * way back without its key. The key is made at the first use, and stays for good.
 * @throws SecretError where ENCRYPTION_KEYS does not open it, or is empty
 */
export async function pseudonymsOf(
  db: Database,
  keys: readonly EncryptionKey[],
  organizationId: string,
): Promise<(id: string) => string> {
  const place = pseudonymPlace(organizationId);
  const queries = db.of(organizationId);
  const known = await call(queries, 'insight_pseudonym_key_read', { organizationId, sealed: null }, readSchema);
  // Of two that make one at once both get the one that is kept.
  const { sealed } = known.sealed
    ? known
    : await call(
        queries,
        'insight_pseudonym_key_read',
        { organizationId, sealed: sealField(keys, 'insights', place, randomBytes(32).toString('base64')) },
        readSchema,
      );
  if (!sealed) throw new Error('the key of pseudonyms was not kept');
  const key = Buffer.from(openField(keys, place, sealed), 'base64');
  return (id) => createHmac('sha256', key).update(id).digest('hex').slice(0, HEX);
}
