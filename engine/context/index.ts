export {
  CONTEXT_SCOPES,
  type ContextScope,
  DOCUMENT_KINDS,
  DOCUMENT_MAX_BYTES,
  DOCUMENT_MEDIA_TYPE,
  DocumentError,
  type DocumentKind,
  decodeDocument,
  type Entry,
  encodeDocument,
  entriesSchema,
  entrySchema,
  REVISION_MAX_DOCUMENTS,
} from './document.ts';
export { citation, citedSources, foreignCitations } from './evidence.ts';
export { type AssessedDocument, type AssessedSource, assessContext } from './health.ts';
export {
  ASSESSMENTS,
  type Assessment,
  decodeHealthReport,
  type Finding,
  findingSchema,
  HEALTH_VERSION,
  type HealthReport,
  healthReportSchema,
} from './health_report.ts';
export { type ComparedIntegration, comparedIntegrationSchema, reconcileIntegrations } from './integrations.ts';
export { readDocument } from './read.ts';
export { type StoredDocument, storeDocument } from './store.ts';
