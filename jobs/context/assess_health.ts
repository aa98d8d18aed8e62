import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { canonicalJson } from '../../engine/canonical_json.ts';
import {
  assessContext,
  DocumentError,
  decodeHealthReport,
  type Finding,
  HEALTH_VERSION,
  type HealthReport,
} from '../../engine/context/index.ts';
import { call } from '../../engine/db/call.ts';
import { findPostgresError, raisedProblem } from '../../engine/db/errors.ts';
import { contextKey, readVerified, StorageBrokenError } from '../../engine/storage/index.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';
import { readDocuments, readLatestReport, readSources, readState } from './read_health.ts';

/** The general part of the latest report, which a reconciliation keeps; null where there is none to be read. */
async function latestAudit(context: JobContext, organizationId: string) {
  const row = await readLatestReport(context, organizationId);
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

/**
 * Writes a health report: its file first, then the row that names it. A full audit reads the published documents and
 * the sources; a reconciliation looks at integrations alone, and keeps the general findings of the report before it.
 */
export const contextHealthAssess: JobHandler<'context__assess_health'> = async (payload, context) => {
  const { organizationId } = payload;
  const { db, storage, signal } = context;
  const state = await readState(context, organizationId);
  if (!state) return 'done';
  const now = new Date();
  const kept = payload.assessment === 'full_audit' ? null : await latestAudit(context, organizationId);
  const assessment = kept ? payload.assessment : 'full_audit';
  let found: Audit;
  try {
    found = kept ?? (await audit(context, organizationId, state, now));
  } catch (error) {
    if (signal.aborted) return 'unfinished';
    throw error;
  }
  const report: HealthReport = {
    version: HEALTH_VERSION,
    generatedAt: now.toISOString(),
    // No integration can be connected yet, so that none is mapped and none is missing in the context.
    findings: { general: found.general, integrations: [] },
    fullAuditAt: kept ? kept.at : now.toISOString(),
    integrationReconciliationAt: now.toISOString(),
    mappedConnectorKeys: [],
  };
  const bytes = Buffer.from(canonicalJson(report), 'utf8');
  const storageKey = contextKey(organizationId, 'health');
  await storage.put(storageKey, Readable.from([bytes]));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  try {
    const { unreadable } = found;
    const record = { assessment, context: state.context, storageKey, sizeBytes: bytes.length, sha256, unreadable };
    await call(db, 'context_health_record', { organizationId, report: record }, z.unknown());
  } catch (error) {
    const raised = findPostgresError(error);
    // Deleted meanwhile: nobody will read it.
    if (!raised || raisedProblem(raised)?.status !== 404) throw error;
    await storage.delete(storageKey);
  }
  return 'done';
};
