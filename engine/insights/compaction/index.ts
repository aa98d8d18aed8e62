export {
  type ClaimedCompaction,
  type CompactionLimits,
  claimCompaction,
  commitCompaction,
  endCompaction,
  type Partition,
  readDue,
} from './claims.ts';
export { CompactionDiffersError, type Inputs, type Merged, mergePartition } from './merge.ts';
