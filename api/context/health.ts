import { sql } from 'slonik';
import { z } from 'zod';
import {
  ASSESSMENTS,
  DocumentError,
  decodeHealthReport,
  findingSchema,
  HEALTH_VERSION,
  type HealthReport,
} from '../../engine/context/index.ts';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { organizationNotFound, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { readVerified, type Storage, StorageBrokenError } from '../../engine/storage/index.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';

const freshness = z.object({ at: dateTime.nullable(), fresh: z.boolean() });

export const contextHealthSchema = z
  .object({
    initialized: z.boolean().describe('False until there is a report.'),
    version: z
      .literal(HEALTH_VERSION)
      .describe('Version of this format. Older reports are converted when they are read.'),
    revision: z.int().nullable().describe('The health revision; null if there is no report.'),
    generatedAt: dateTime.nullable(),
    findings: z.object({ general: z.array(findingSchema), integrations: z.array(findingSchema) }),
    fullAudit: freshness.describe(
      'The last audit of all documents. Fresh: at most 48 hours old, and nothing was published since.',
    ),
    integrationReconciliation: freshness.describe('The last comparison with the integrations.'),
    mappedConnectorKeys: z.array(z.string()).describe('Keys of the connectors that the context describes.'),
    revisions: z
      .array(
        z.object({
          revision: z.int(),
          assessment: z.enum(ASSESSMENTS),
          version: z.int().describe('Of the format that the report is stored in.'),
          createdAt: dateTime,
        }),
      )
      .describe('The latest 20 reports. Older ones can be read by `revision` too.'),
  })
  .meta({
    id: 'ContextHealth',
    example: {
      initialized: true,
      revision: 26,
      findings: {
        general: [
          {
            code: 'source_failed',
            severity: 'warning',
            scope: null,
            path: null,
            entryKey: null,
            sourceId: ids.source,
            message: 'sales.csv could not be read: upload it again.',
          },
        ],
        integrations: [],
      },
      fullAudit: { at: '2026-11-27T03:00:04.871Z', fresh: true },
      integrationReconciliation: { at: null, fresh: false },
      mappedConnectorKeys: [],
      revisions: [{ revision: 26, assessment: 'full_audit', version: 3, createdAt: '2026-11-27T03:00:04.871Z' }],
    },
  });
type ContextHealth = z.output<typeof contextHealthSchema>;

const RECENT = 20;
const FRESH_MS = 48 * 3_600_000;

const reportRow = z.object({
  revision: z.int(),
  context: z.record(z.string(), z.int()),
  storage_key: z.string(),
  size_bytes: z.int(),
  sha256: z.string(),
});
const stateRow = z.object({
  now_ms: z.number(),
  published: z.record(z.string(), z.int()),
  report: reportRow.nullable(),
  revisions: z.array(
    z
      .object({ revision: z.int(), assessment: z.enum(ASSESSMENTS), version: z.int(), created_at: timestamp })
      .pipe(mapping(({ created_at: createdAt, ...row }) => ({ ...row, createdAt }))),
  ),
});

function readState(db: Queries, organizationId: string, revision: number | undefined) {
  return db.maybeOne(
    scoped(
      organizationId,
      stateRow,
      sql.fragment`
        select (extract(epoch from clock_timestamp()) * 1000)::double precision as now_ms,
          coalesce((
            select jsonb_object_agg(p.scope, p.revision) from app.context_publications p
            where p.organization_id = scope.organization_id and p.revision is not null), '{}') as published,
          (select to_jsonb(h) from app.context_health_reports h
            where h.organization_id = scope.organization_id
              and (${revision ?? null}::integer is null or h.revision = ${revision ?? null})
            order by h.revision desc limit 1) as report,
          coalesce((
            select jsonb_agg(to_jsonb(r) order by r.revision desc) from (
              select h.revision, h.assessment, h.version, h.created_at from app.context_health_reports h
              where h.organization_id = scope.organization_id order by h.revision desc limit ${RECENT}) r), '[]')
            as revisions`,
    ),
  );
}

/** @throws Problem 409 `state_conflict` when the report is not the one that was stored */
async function readReport(storage: Storage, row: z.output<typeof reportRow>): Promise<HealthReport> {
  try {
    const file = { key: row.storage_key, size: row.size_bytes, sha256: row.sha256 };
    return decodeHealthReport(await readVerified(storage, file));
  } catch (error) {
    if (!(error instanceof StorageBrokenError || error instanceof DocumentError)) throw error;
    const message = `Health revision ${row.revision} is not intact: its stored report is gone or was changed. A new full audit writes another one.`;
    throw new Problem(409, 'state_conflict', message, [
      { path: 'revision', code: 'integrity', message: 'is not intact' },
    ]);
  }
}

function sameContext(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean {
  const scopes = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...scopes].every((scope) => a[scope] === b[scope]);
}

/**
 * The latest health report, or the one with this revision, as version 3.
 * @throws Problem 404 `organization_not_found` or `not_found`, 409 `state_conflict` when it is not intact
 */
export async function getContextHealth(
  db: Queries,
  storage: Storage,
  organizationId: string,
  revision: number | undefined,
): Promise<ContextHealth> {
  const state = await readState(db, organizationId, revision);
  if (!state) throw organizationNotFound();
  const { report: row, revisions, published, now_ms: now } = state;
  if (!row) {
    if (revision !== undefined) throw new Problem(404, 'not_found', `There is no health revision ${revision}.`);
    const never = { at: null, fresh: false };
    return {
      initialized: false,
      version: HEALTH_VERSION,
      revision: null,
      generatedAt: null,
      findings: { general: [], integrations: [] },
      fullAudit: never,
      integrationReconciliation: never,
      mappedConnectorKeys: [],
      revisions,
    };
  }
  const report = await readReport(storage, row);
  const current = sameContext(row.context, published);
  const freshAt = (at: string | null) => ({ at, fresh: at !== null && current && now - Date.parse(at) < FRESH_MS });
  return {
    initialized: true,
    version: HEALTH_VERSION,
    revision: row.revision,
    generatedAt: report.generatedAt,
    findings: report.findings,
    fullAudit: freshAt(report.fullAuditAt),
    integrationReconciliation: freshAt(report.integrationReconciliationAt),
    mappedConnectorKeys: report.mappedConnectorKeys,
    revisions,
  };
}
