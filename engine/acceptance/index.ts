export { acceptanceCriterionSchema } from './criteria.ts';
export {
  type AcceptanceCheck,
  type AcceptanceInput,
  acceptanceEvaluator,
  type EvaluateAcceptance,
  type FileEvidence,
  outputUri,
  type RecordedOutput,
} from './evaluate.ts';
