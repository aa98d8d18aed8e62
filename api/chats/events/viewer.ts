import type { OwnerCaller } from '../../http/caller.ts';

/** Whose token a stream was opened with, and when that was last found to give access. */
export type Viewer = {
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** By `performance.now()`. */
  checkedAt: number;
};

/** Undefined for platform operators, whose tokens neither expire nor depend on a membership. */
export function viewerOf({ subject, expiresAt }: OwnerCaller): Viewer | undefined {
  if (subject === null) return undefined;
  return { subject, expiresAt: expiresAt ?? 0, checkedAt: performance.now() };
}
