import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { canonicalJson } from '../../engine/canonical_json.ts';
import {
  type Assessment,
  assessContext,
  DocumentError,
  decodeHealthReport,
  type Finding,
  HEALTH_VERSION,
  type HealthReport,
  reconcileIntegrations,
} from '../../engine/context/index.ts';
import { call, ignored } from '../../engine/db/call.ts';
import { findPostgresError, raisedProblem } from '../../engine/db/errors.ts';
import type { Json } from '../../engine/db/sql_types.ts';
import { contextKey, readVerified, StorageBrokenError } from '../../engine/storage/index.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';
import { readDocuments, readIntegrations, readLatestReport, readSources, readState } from './read_health.ts';

/** The general part of a report, which a reconciliation keeps; null where there is none to be read. */
async function generalPart(context: JobContext, row: Awaited<ReturnType<typeof readLatestReport>>) {
  if (!row) return null;
  try {
    const file = { key: row.storage_key, size: row.size_bytes, sha256: row.sha256 };
    const report = decodeHealthReport(await readVerified(context.storage, file, context.signal));
    return { general: report.findings.general, at: report.fullAuditAt };
  } catch (error) {
    if (error instanceof StorageBrokenError || error instanceof DocumentError) return null;
    throw error;
  }
}

/** `unreadable`: paths by scope, for runs that start from now on; absent where documents were not read. */
type Audit = Readonly<{ general: Finding[]; unreadable?: Readonly<Record<string, readonly string[]>> }>;

async function audit(
  context: JobContext,
  organizationId: string,
  state: Readonly<{ context: Readonly<Record<string, number>>; departments: readonly string[] }>,
  now: Date,
): Promise<Audit> {
  const documents = await readDocuments(context, organizationId, state.context);
  const sources = await readSources(context, organizationId);
  const general = assessContext({ organizationId, departments: state.departments, documents, sources, now });
  const unreadable: Record<string, string[]> = {};
  for (const { scope, path, content } of documents) {
    if ('issue' in content) unreadable[scope] = [...(unreadable[scope] ?? []), path];
  }
  return { general, unreadable };
}

/** What the repairs that waited were written into. One that was asked for anew meanwhile waits for the next report. */
async function finishRepairs(
  { db }: JobContext,
  organizationId: string,
  repairs: readonly Readonly<{ id: string; mapping: Json }>[],
  reportRevision: number,
): Promise<void> {
  for (const { id: repairId, mapping } of repairs) {
    await call(db, 'integration_context_repair_finish', { organizationId, repairId, mapping, reportRevision }, ignored);
  }
}

const recordedSchema = z.object({ report: z.object({ revision: z.int() }).nullable() });

/** @returns false where another report was written meanwhile: what is kept of the one before is to be read again */
async function assess(
  context: JobContext,
  organizationId: string,
  asked: Assessment,
  state: NonNullable<Awaited<ReturnType<typeof readState>>>,
): Promise<boolean> {
  const { db, storage } = context;
  const now = new Date();
  const latest = await readLatestReport(context, organizationId);
  const kept = asked === 'full_audit' ? null : await generalPart(context, latest);
  const assessment = kept ? asked : 'full_audit';
  const found: Audit = kept ?? (await audit(context, organizationId, state, now));
  const { integrations, repairs } = await readIntegrations(context, organizationId);
  const reconciled = reconcileIntegrations(integrations, state.departments);
  const report: HealthReport = {
    version: HEALTH_VERSION,
    generatedAt: now.toISOString(),
    findings: { general: found.general, integrations: reconciled.findings },
    fullAuditAt: kept ? kept.at : now.toISOString(),
    integrationReconciliationAt: now.toISOString(),
    mappedConnectorKeys: reconciled.mappedConnectorKeys,
  };
  const bytes = Buffer.from(canonicalJson(report), 'utf8');
  const storageKey = contextKey(organizationId, 'health');
  await storage.put(storageKey, Readable.from([bytes]));
  const record = {
    assessment,
    context: state.context,
    storageKey,
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    baseRevision: latest?.revision ?? 0,
    unreadable: found.unreadable,
  };
  const recorded = await call(db, 'context_health_record', { organizationId, report: record }, recordedSchema).catch(
    (error: unknown) => {
      const raised = findPostgresError(error);
      // Deleted meanwhile: nobody will read it.
      if (!raised || raisedProblem(raised)?.status !== 404) throw error;
      return undefined;
    },
  );
  if (!recorded?.report) {
    await storage.delete(storageKey);
    return recorded === undefined;
  }
  await finishRepairs(context, organizationId, repairs, recorded.report.revision);
  return true;
}

/** Reports that other jobs wrote meanwhile, before the queue tries again later. */
const TRIES = 5;

/**
 * Writes a health report: its file first, then the row that names it. Each compares the context with the integrations; a full
 * audit reads the published documents and the sources too, while a reconciliation keeps the general findings of the report before.
 * A reconciliation reads all integrations, by one statement, and not only the one that was mapped: a report covers all of them, and
 * the report before is stale for what was connected, failed or deleted since.
 */
export const contextHealthAssess: JobHandler<'context__assess_health'> = async (payload, context) => {
  const { organizationId, assessment } = payload;
  try {
    for (let left = TRIES; left > 0; left -= 1) {
      const state = await readState(context, organizationId);
      if (!state || (await assess(context, organizationId, assessment, state))) return 'done';
    }
    return 'unfinished';
  } catch (error) {
    if (context.signal.aborted) return 'unfinished';
    throw error;
  }
};
