/** How much is read at once (docs/interface.md, 8: the internal fact reader). */
export type ReadLimits = Readonly<{ bytes: number; rows: number }>;
export const READ_LIMITS: ReadLimits = { bytes: 64 * 1024 * 1024, rows: 250_000 };

/** More than a reader takes. */
export class SegmentTooLargeError extends Error {
  override name = 'SegmentTooLargeError';
  readonly limit: keyof ReadLimits;
  readonly allowed: number;
  constructor(limit: keyof ReadLimits, allowed: number) {
    super(`more than ${allowed} ${limit}`);
    this.limit = limit;
    this.allowed = allowed;
  }
}

/** A file is not what was written, or no segment of its dataset. */
export class SegmentDamagedError extends Error {
  override name = 'SegmentDamagedError';
  /** `changed`: it has another digest than was recorded. */
  readonly reason: 'changed' | 'unreadable';
  constructor(reason: 'changed' | 'unreadable', message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** @throws SegmentTooLargeError */
export function demandSize(size: ReadLimits, limits: ReadLimits): void {
  if (size.bytes > limits.bytes) throw new SegmentTooLargeError('bytes', limits.bytes);
  if (size.rows > limits.rows) throw new SegmentTooLargeError('rows', limits.rows);
}
