import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { invocationKeyTime, invocationsPrefix } from '../../engine/storage/index.ts';
import type { JobHandler } from '../runner/handler.ts';
import { removeUnnamed } from '../storage/unnamed.ts';

const namedSchema = z.array(z.string()).nullable();

/**
 * Removes objects of the gateway's calls that no row names: of processes that died, of uploads to a URL after they were completed, of
 * integrations that were deleted. Where there are many it goes on in another job.
 */
export const actionFilesClean: JobHandler<'actions__clean_files'> = async ({ organizationId, after }, context) => {
  const { db, log, addJob } = context;
  const swept = await removeUnnamed(context, {
    prefix: invocationsPrefix(organizationId),
    after,
    timeOf: invocationKeyTime,
    named: (keys) => call(db, 'action_objects_named', { organizationId, keys }, namedSchema),
  });
  if (!swept) return 'unfinished';
  const { removed } = swept;
  if (removed > 0) log.info({ organizationId, removed }, 'files of calls that nothing names are removed');
  if (swept.after !== undefined) {
    const next = { organizationId, after: swept.after };
    await addJob('actions__clean_files', next, { key: `actions__clean_files:${organizationId}` });
  }
  return 'done';
};
