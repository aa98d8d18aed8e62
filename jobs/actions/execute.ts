import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'slonik';
import { z } from 'zod';
import { functionCall } from '../../engine/db/function_call.ts';
import { type ActionPlace, executeAction } from '../../engine/gateway/index.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

/** They wait for providers, and for a moment each for the database. */
const AT_ONCE = 64;
/** Of an organization: with providers that take a minute it holds up nobody else's. */
const AT_ONCE_OF_ONE = 2;
const ORGANIZATIONS = 100;
const INTERVAL_MS = 250;

const dueSchema = z.object({ organization_id: z.uuid(), id: z.uuid() });

/** Executions under way, by action. */
function createLanes(context: JobContext) {
  const { integrations, storage, git, config, log } = context;
  const under = new Map<string, Readonly<{ organizationId: string; work: Promise<void> }>>();
  const throttle = createThrottle();

  const countOf = (organizationId: string) =>
    [...under.values()].filter((one) => one.organizationId === organizationId).length;

  async function execute(place: ActionPlace): Promise<void> {
    try {
      await executeAction({ integrations, storage, git, approvalDays: config.actionApprovalDays }, place);
    } catch (error) {
      logThrottled(log.child(place), throttle, 'an action was not executed', error);
    } finally {
      under.delete(place.actionId);
    }
  }

  return {
    count: () => under.size,
    hasRoom: () => under.size < AT_ONCE,
    /** Begins it, unless it is under way or there are too many. */
    begin({ organizationId, actionId }: ActionPlace): void {
      if (under.has(actionId) || under.size >= AT_ONCE || countOf(organizationId) >= AT_ONCE_OF_ONE) return;
      under.set(actionId, { organizationId, work: execute({ organizationId, actionId }) });
    },
    /** Fulfilled when one of them has ended. */
    next: () => Promise.race([...under.values()].map(({ work }) => work)),
    idle: () => Promise.all([...under.values()].map(({ work }) => work)),
  };
}

/**
 * Executes approved actions, and looks up what became of those that got no response, as long as any is due. What is due is a column of
 * the action, so that a process that dies loses nothing: dispatch adds the job again. A stop begins no more; what was sent is awaited
 * as long as the process lives.
 */
export const actionsExecute: JobHandler<'actions__execute'> = async (_payload, context) => {
  const { db, log, signal } = context;
  const lanes = createLanes(context);
  const throttle = createThrottle();
  let after: string | null = null;
  /** Since the first organization was read. */
  let found = false;
  while (!signal.aborted) {
    try {
      const due: ReturnType<typeof functionCall> = functionCall('actions_due', {
        organizations: ORGANIZATIONS,
        rows: AT_ONCE_OF_ONE * 2,
        after,
      });
      const rows: readonly z.output<typeof dueSchema>[] = await db.any(
        sql.type(dueSchema)`select organization_id, id from ${due}`,
      );
      for (const { organization_id: organizationId, id: actionId } of rows) lanes.begin({ organizationId, actionId });
      found ||= rows.length > 0;
      const organizations: string[] = [...new Set(rows.map((row) => row.organization_id))].toSorted();
      // Where all lanes are taken, the next read goes on behind these: others have their turn first.
      after = organizations[ORGANIZATIONS - 1] ?? null;
      if (after !== null && lanes.hasRoom()) continue;
      if (after === null && !found && lanes.count() === 0) return 'done';
      if (after === null) found = false;
    } catch (error) {
      logThrottled(log, throttle, 'actions that are due cannot be read', error);
    }
    await Promise.race([pause(INTERVAL_MS), ...(lanes.count() > 0 ? [lanes.next()] : [])]);
  }
  await lanes.idle();
  return 'unfinished';
};
