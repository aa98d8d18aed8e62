import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'slonik';
import { z } from 'zod';
import { functionCall } from '../../engine/db/function_call.ts';
import { type Connector, claimUnit, runUnit, type Unit } from '../../engine/insights/index.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import type { JobContext, JobHandler, JobServices } from '../runner/handler.ts';

const ORGANIZATIONS = 100;
const INTERVAL_MS = 250;
/** Until another process is asked again to help. */
const HELP_MS = 1_000;
/** As many processes as may collect. */
const HELPERS = 32;

const dueSchema = z.object({ organization_id: z.uuid(), id: z.uuid() });

/** Units under way in this process, whichever of its jobs has begun them, by connector. */
type Lanes = Map<string, Promise<void>>;
const lanes = new WeakMap<JobServices['db'], Lanes>();

function lanesOf({ db }: Pick<JobServices, 'db'>): Lanes {
  const own = lanes.get(db) ?? new Map();
  lanes.set(db, own);
  return own;
}

function createCollector(context: JobContext) {
  const { config, db, integrations, log, metrics, signal, storage } = context;
  const { units, cycleClaims, ...limits } = config.insights;
  const under = lanesOf(context);
  const throttle = createThrottle();
  let claims = 0;
  let ended = Promise.withResolvers<void>();

  async function run(unit: Unit): Promise<void> {
    const { mode, source, organizationId, integrationId } = unit;
    const labels = { dataset: source?.dataset ?? 'none', mode };
    try {
      const { outcome, changed, code } = await runUnit({ integrations, storage, limits }, unit, signal);
      metrics.insightUnits.inc({ ...labels, outcome });
      metrics.insightFacts.inc(labels, changed);
      if (code !== undefined)
        log.info({ organizationId, integrationId, ...labels, code }, 'a unit of collecting failed');
    } catch (error) {
      metrics.insightUnits.inc({ ...labels, outcome: 'failed' });
      throw error;
    } finally {
      ended.resolve();
      ended = Promise.withResolvers();
    }
  }

  async function work(connector: Connector): Promise<void> {
    try {
      const claimed = await claimUnit(db, connector, limits);
      if (typeof claimed === 'string') return;
      claims += 1;
      await run(claimed);
    } catch (error) {
      logThrottled(log.child(connector), throttle, 'facts were not collected', error);
    }
  }

  return {
    count: () => under.size,
    hasRoom: () => under.size < units,
    isSpent: () => claims >= cycleClaims,
    /** Begins a unit of the connector, unless one is under way or there are too many. */
    begin(connector: Connector): void {
      const key = connector.integrationId;
      if (under.has(key) || under.size >= units) return;
      under.set(
        key,
        work(connector).finally(() => under.delete(key)),
      );
    },
    /** When a unit ends. A claim that is refused is none: what refuses it is soon asked again, and no sooner. */
    next: () => ended.promise,
    idle: () => Promise.all(under.values()),
  };
}

/**
 * Collects what is due of all connectors, a few units at a time, organizations in turns, and goes on with what a unit has left, until
 * nothing is due or the cycle is over. What is due is a column, so that a process that dies loses nothing: dispatch adds the job again.
 */
export const insightsCollect: JobHandler<'insights__collect'> = async ({ helper }, context) => {
  const { addJob, config, db, log, signal } = context;
  const collector = createCollector(context);
  // Another job of this process does as much as it may.
  if (!collector.hasRoom()) return 'done';
  const throttle = createThrottle();
  const end = Date.now() + config.insights.cycleMs;
  let after: string | null = null;
  /** Since the first organization was read. */
  let found = false;
  let helpAt = 0;
  while (!signal.aborted && Date.now() < end && !collector.isSpent()) {
    try {
      const due: ReturnType<typeof functionCall> = functionCall('insights_due', {
        organizations: ORGANIZATIONS,
        rows: config.insights.perOrganization * 2,
        after,
      });
      const rows: readonly z.output<typeof dueSchema>[] = await db.any(
        sql.type(dueSchema)`select organization_id, id from ${due}`,
      );
      for (const { organization_id: organizationId, id: integrationId } of rows) {
        collector.begin({ organizationId, integrationId });
      }
      found ||= rows.length > 0;
      if (rows.length > 0 && !collector.hasRoom() && Date.now() > helpAt && helper < HELPERS) {
        helpAt = Date.now() + HELP_MS;
        await addJob('insights__collect', { helper: helper + 1 }, { key: `insights__collect:${helper + 1}` });
      }
      const organizations: string[] = [...new Set(rows.map((row) => row.organization_id))].toSorted();
      after = organizations[ORGANIZATIONS - 1] ?? null;
      if (after !== null && collector.hasRoom()) continue;
      if (after === null && !found && collector.count() === 0) return 'done';
      if (after === null) found = false;
    } catch (error) {
      logThrottled(log, throttle, 'what is to be collected cannot be read', error);
    }
    await Promise.race([pause(INTERVAL_MS), collector.next()]);
  }
  await collector.idle();
  return 'unfinished';
};
