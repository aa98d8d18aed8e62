import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { insightSegmentTime, insightsPrefix } from '../../engine/storage/index.ts';
import type { JobHandler } from '../runner/handler.ts';
import { removeUnnamed } from '../storage/unnamed.ts';

const namedSchema = z.array(z.string()).nullable();

/**
 * Removes files of facts that no row names: of processes that died, and of units and compactions that could not commit. Where there
 * are many it goes on in another job.
 */
export const insightFilesClean: JobHandler<'insights__clean_files'> = async ({ organizationId, after }, context) => {
  const { config, db, log, addJob } = context;
  const swept = await removeUnnamed(context, {
    prefix: insightsPrefix(organizationId),
    after,
    olderThanMs: config.insightKeepHours * 3_600_000,
    timeOf: insightSegmentTime,
    named: (keys) => call(db, 'insight_objects_named', { organizationId, keys: [...keys] }, namedSchema),
  });
  if (!swept) return 'unfinished';
  const { removed } = swept;
  if (removed > 0) log.info({ organizationId, removed }, 'files of facts that nothing names are removed');
  if (swept.after !== undefined) {
    const next = { organizationId, after: swept.after };
    await addJob('insights__clean_files', next, { key: `insights__clean_files:${organizationId}` });
  }
  return 'done';
};
