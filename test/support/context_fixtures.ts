// Context as tests work with it, made through the transitions with the rights of the API.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { OWNER, sha256, type TestOrganization } from './fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

const documentSchema = z.looseObject({
  path: z.string(),
  kind: z.string(),
  sha256: z.string(),
  source_ids: z.array(z.string()),
});
const revisionSchema = z.looseObject({
  scope: z.string(),
  revision: z.number(),
  base_revision: z.number(),
  created_by: z.looseObject({ kind: z.string() }),
  documents: z.array(documentSchema),
});
export type Revision = z.output<typeof revisionSchema>;
const revisionResult = z.object({ revision: revisionSchema });

/** A document as it is handed to `context_promote`; nothing is stored for it. */
export function document(path: string, fields: JsonObject = {}) {
  return {
    kind: 'facts',
    path,
    storageKey: `documents/${randomUUID()}`,
    sizeBytes: 15,
    sha256: sha256(path),
    ...fields,
  };
}

type Promotion = Readonly<{
  scope?: string;
  base?: number | null;
  documents?: readonly JsonObject[];
  actor?: JsonObject;
  taskRef?: string;
}>;

export async function promote(
  connection: Connection,
  org: TestOrganization,
  fields: Promotion = {},
): Promise<Revision> {
  const { scope = 'organization', base = 0, documents = [document('facts.json')], actor = OWNER, taskRef } = fields;
  const result = await transition(connection, 'context_promote', {
    organizationId: org.organizationId,
    scope,
    baseRevision: base,
    documents,
    actor,
    ...(taskRef === undefined ? {} : { taskRef }),
  });
  return revisionResult.parse(result).revision;
}

const sourceSchema = z.looseObject({
  id: z.string(),
  status: z.string(),
  storage_key: z.string(),
  error: z.looseObject({}).nullable(),
});
export type Source = z.output<typeof sourceSchema>;

/** A source of the onboarding, which its transitions record; ingested unless the fields say otherwise. */
export async function insertSource(sql: Sql, org: TestOrganization, fields: JsonObject = {}): Promise<Source> {
  const source = {
    origin: 'onboarding',
    status: 'ingested',
    kind: 'file',
    fileName: 'plan.txt',
    mediaType: 'text/plain',
    sizeBytes: 4,
    sha256: sha256('plan'),
    storageKey: `sources/${randomUUID()}`,
    ...fields,
  };
  const { rows } = await sql.owner.query('select to_jsonb(app.context_source_insert($1, $2)) as source', [
    org.organizationId,
    source,
  ]);
  return sourceSchema.parse(rows[0].source);
}

export async function markSource(
  connection: Connection,
  org: TestOrganization,
  id: string,
  status: string,
  error?: JsonObject,
) {
  const result = await transition(connection, 'context_source_mark', {
    organizationId: org.organizationId,
    sourceId: id,
    status,
    error: error ?? null,
  });
  return z.object({ source: sourceSchema.nullable() }).parse(result).source;
}

export async function recordHealth(
  connection: Connection,
  org: TestOrganization,
  fields: JsonObject = {},
): Promise<JsonObject> {
  const result = await transition(connection, 'context_health_record', {
    organizationId: org.organizationId,
    report: {
      assessment: 'full_audit',
      context: {},
      storageKey: `health/${randomUUID()}`,
      sizeBytes: 2,
      sha256: sha256('{}'),
      ...fields,
    },
  });
  return z.object({ report: z.looseObject({ revision: z.number() }) }).parse(result).report;
}
