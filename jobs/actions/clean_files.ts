import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { invocationKeyTime, invocationsPrefix } from '../../engine/storage/index.ts';
import type { JobHandler } from '../runner/handler.ts';

/** Far longer than it takes from a stored object to the row that names it. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;
/** Pages until the jobs that wait come first. */
const PAGES = 20;

const namedSchema = z.array(z.string()).nullable();

/**
 * Removes objects of the gateway's calls that no row names: of processes that died, of uploads to a URL after they were completed, of
 * integrations that were deleted. Each is a day old. Where there are many it goes on in another job.
 */
export const actionFilesClean: JobHandler<'actions__clean_files'> = async (payload, context) => {
  const { organizationId } = payload;
  const { db, storage, log, signal, addJob } = context;
  const before = Date.now() - ABANDONED_AFTER_MS;
  let removed = 0;
  let { after } = payload;
  for (let read = 0; read < PAGES; read += 1) {
    if (signal.aborted) return 'unfinished';
    const page = await storage.list(invocationsPrefix(organizationId), after === undefined ? {} : { after });
    const old = page.objects.map(({ key }) => key).filter((key) => (invocationKeyTime(key) ?? before) < before);
    const named = await call(db, 'action_objects_named', { organizationId, keys: old }, namedSchema);
    // A deleted organization's objects are the deletion's.
    if (named === null) return 'done';
    const kept = new Set(named);
    for (const key of old) {
      if (kept.has(key)) continue;
      await storage.delete(key);
      removed += 1;
    }
    after = page.next ?? undefined;
    if (after === undefined) break;
  }
  if (removed > 0) log.info({ organizationId, removed }, 'files of calls that nothing names are removed');
  if (after !== undefined) {
    await addJob('actions__clean_files', { organizationId, after }, { key: `actions__clean_files:${organizationId}` });
  }
  return 'done';
};
