export { BrokenSourcesError, type ScopeDocuments, type SourceBytes, storeFirstRevision } from './first_revision.ts';
export {
  DISPOSITIONS,
  dispositionSchema,
  type ReviewSummary,
  reviewSummarySchema,
  setupSchema,
} from './review.ts';
export { slugOf } from './slug.ts';
