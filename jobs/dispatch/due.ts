import { sql } from 'slonik';
import { z } from 'zod';
import { call, ignored, type Queries } from '../../engine/db/call.ts';
import { findPostgresError, isTransient, isUnavailable } from '../../engine/db/errors.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import { scoped } from '../../engine/db/scope.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { nextFire } from '../../engine/schedules/index.ts';
import type { JobServices } from '../runner/handler.ts';
import { createQuarantine } from './quarantine.ts';

const WAKE_BATCH = 50;

// The kind is text: during a release the database may know more kinds than this process.
const dueSchema = z.object({ kind: z.string(), organization_id: z.uuid(), ids: z.array(z.uuid()).min(1) });
export type Due = z.output<typeof dueSchema>;

/** What goes into one transaction. */
type Unit = Readonly<{ organizationId: string; ids: readonly string[] }>;

type DueKind = Readonly<{
  /** The most ids that go together. */
  batch: number;
  /** @returns `later`: it stays due, and is tried again later */
  process(services: Pick<JobServices, 'dispatchDb' | 'config'>, unit: Unit): Promise<'done' | 'later'>;
}>;

const firedSchema = z.object({ outcome: z.string() });

const scheduleSchema = z.object({
  cron: z.string(),
  timezone: z.string(),
  fire_at: z.iso.datetime({ offset: true }),
  now: z.iso.datetime({ offset: true }),
});

/** A due schedule as it stands, and the present of the database; undefined where it is not due (any more). */
async function dueSchedule(db: Queries, { organizationId, ids }: Unit) {
  return await db.maybeOne(
    scoped(
      organizationId,
      scheduleSchema,
      sql.fragment`
        select s.cron, s.timezone, to_jsonb(s.next_run_at) #>> '{}' as fire_at,
          to_jsonb(clock_timestamp()) #>> '{}' as now
        from app.schedules s
        where s.organization_id = scope.organization_id and s.id = ${ids[0] ?? null}::uuid
          and s.next_run_at <= clock_timestamp()`,
    ),
  );
}

const dueKinds: Readonly<Record<string, DueKind>> = {
  expire: {
    batch: 1,
    async process(services, unit) {
      const { config } = services;
      const args = {
        organizationId: unit.organizationId,
        runRequestId: unit.ids[0],
        maxAttempts: config.runRequestMaxAttempts,
        backoffSeconds: config.retryBackoffSeconds,
        backoffMaxSeconds: config.retryBackoffMaxSeconds,
      };
      await call(services.dispatchDb, 'run_request_expire', args, ignored);
      return 'done';
    },
  },
  chat_overdue: {
    batch: 1,
    async process(services, unit) {
      const args = {
        organizationId: unit.organizationId,
        runRequestId: unit.ids[0],
        startSeconds: services.config.chatStartSeconds,
      };
      await call(services.dispatchDb, 'chat_turn_end_overdue', args, ignored);
      return 'done';
    },
  },
  publish: {
    batch: Number.POSITIVE_INFINITY,
    async process({ dispatchDb }, { organizationId, ids }) {
      const args = { organizationId, runRequestIds: ids };
      await call(dispatchDb, 'run_requests_publish', args, ignored);
      return 'done';
    },
  },
  wake: {
    // Each locks its hierarchy: many at once would hold up others.
    batch: WAKE_BATCH,
    async process({ dispatchDb }, { organizationId, ids }) {
      const args = { organizationId, taskIds: ids };
      await call(dispatchDb, 'tasks_wake', args, ignored);
      return 'done';
    },
  },
  fire: {
    batch: 1,
    async process({ dispatchDb }, unit) {
      const due = await dueSchedule(dispatchDb, unit);
      if (!due) return 'done';
      // After the present rather than after the fire: however many were missed, they are one task.
      const next = nextFire(due.cron, due.timezone, new Date(due.now));
      if (!next) throw new Error(`the schedule ${due.cron} never fires again`);
      const args = {
        organizationId: unit.organizationId,
        scheduleId: unit.ids[0],
        fireAt: due.fire_at,
        nextRunAt: next.toISOString(),
      };
      const { outcome } = await call(dispatchDb, 'schedule_fire', args, firedSchema);
      return outcome === 'postponed' ? 'later' : 'done';
    },
  },
};

/** What is due over all organizations, at most `limit` of a kind, by organization. */
export async function readDue(db: Queries, limit: number, chatStartSeconds: number): Promise<Map<string, Due[]>> {
  const due = functionCall('dispatch_due', { limit, chatStartSeconds });
  const rows = await db.any(sql.type(dueSchema)`select kind, organization_id, ids from ${due}`);
  return Map.groupBy(rows, (row) => row.organization_id);
}

function units(due: Due, ids: readonly string[]): Unit[] {
  const size = Math.min(dueKinds[due.kind]?.batch ?? ids.length, ids.length) || 1;
  const count = Math.ceil(ids.length / size);
  return Array.from({ length: count }, (_, index) => ({
    organizationId: due.organization_id,
    ids: ids.slice(index * size, (index + 1) * size),
  }));
}

/** The time-out of one statement: a fault of the item rather than of the database. */
function isTooSlow(error: unknown): boolean {
  return findPostgresError(error)?.code === '57014';
}

export type Processor = Readonly<{
  /** Moves what is due of one organization. @returns how many items were moved */
  process(due: readonly Due[], signal: AbortSignal): Promise<number>;
  /** How many items fail or wait for now: they come first in what is due, and so are added to the limit. */
  failing(): number;
}>;

/**
 * Moves due items with the function of their kind, a transaction a unit. No item stops another: one that fails is put
 * aside, one whose rows are locked is left to the next round.
 */
function createProcessor(services: JobServices): Processor {
  const quarantine = createQuarantine();
  const throttle = createThrottle();

  async function processUnit(name: string, kind: DueKind, unit: Unit): Promise<number> {
    try {
      if ((await kind.process(services, unit)) === 'later') {
        for (const id of unit.ids) quarantine.add(id);
        return 0;
      }
      for (const id of unit.ids) quarantine.remove(id);
      return unit.ids.length;
    } catch (error) {
      if (isTransient(error)) return 0;
      if (unit.ids.length === 1) {
        for (const id of unit.ids) quarantine.add(id);
        const log = services.log.child({ organizationId: unit.organizationId, id: unit.ids[0] });
        logThrottled(log, throttle, `dispatch cannot ${name} an item`, error);
      }
      if (isUnavailable(error) && !isTooSlow(error)) throw error;
      if (unit.ids.length === 1) return 0;
    }
    // One of several is the cause: it alone shall stay behind.
    let processed = 0;
    for (const id of unit.ids) processed += await processUnit(name, kind, { ...unit, ids: [id] });
    return processed;
  }

  return {
    failing: quarantine.size,
    async process(dues, signal) {
      let processed = 0;
      for (const due of dues) {
        const kind = dueKinds[due.kind];
        if (!kind) continue;
        const ids = due.ids.filter((id) => !quarantine.has(id));
        for (const unit of units(due, ids)) {
          if (signal.aborted) return processed;
          processed += await processUnit(due.kind, kind, unit);
        }
      }
      return processed;
    },
  };
}

const processors = new WeakMap<JobServices['dispatchDb'], Processor>();

/** The one of the process: what fails stays aside, and is not told anew, when the task's next run takes over. */
export function processorOf(services: JobServices): Processor {
  const processor = processors.get(services.dispatchDb) ?? createProcessor(services);
  processors.set(services.dispatchDb, processor);
  return processor;
}
