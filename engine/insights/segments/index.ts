export {
  READ_LIMITS,
  type ReadLimits,
  SegmentDamagedError,
  SegmentTooLargeError,
} from './limits.ts';
export { readMonth, type StoredSegment } from './month.ts';
export { type ReadOptions, readSegment } from './read.ts';
export { type WrittenSegment, writeSegment } from './write.ts';
