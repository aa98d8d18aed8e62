import type { JobHandler } from '../runner/handler.ts';

/** Far longer than any upload takes. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;

/** Removes what uploads left behind whose process died. */
export const storageClean: JobHandler<'storage__clean'> = async (_payload, { storage, log }) => {
  const removed = await storage.removeAbandoned(ABANDONED_AFTER_MS);
  if (removed > 0) log.info({ removed }, 'abandoned uploads are removed');
  return 'done';
};
