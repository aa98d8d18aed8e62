import { executeAction } from '../../engine/gateway/index.ts';
import type { JobHandler } from '../runner/handler.ts';

/**
 * Executes an approved action, or looks up what became of it. What is due is a column of the action: if the process dies, dispatch adds
 * the job again. A stop of the process does not end what was sent; its response is awaited as long as the process lives.
 */
export const actionsExecute: JobHandler<'actions__execute'> = async (place, { integrations, storage, git, config }) => {
  await executeAction({ integrations, storage, git, approvalDays: config.actionApprovalDays }, place);
  return 'done';
};
