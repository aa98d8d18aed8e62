import { sql } from 'slonik';
import { z } from 'zod';
import { call, ignored, type Queries } from '../../engine/db/call.ts';
import { isTooSlow, isTransient, isUnavailable } from '../../engine/db/errors.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import { scoped } from '../../engine/db/scope.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { nextFire } from '../../engine/schedules/index.ts';
import type { JobName } from '../catalog.ts';
import type { JobServices } from '../runner/handler.ts';
import { createQuarantine } from './quarantine.ts';

const WAKE_BATCH = 50;
const INDEX: JobName = 'messages__index_chunks';
const EXECUTE: JobName = 'actions__execute';
const COLLECT: JobName = 'insights__collect';

// The kind is text: during a release the database may know more kinds than this process.
const dueSchema = z.object({ kind: z.string(), organization_id: z.uuid(), ids: z.array(z.uuid()).min(1) });
export type Due = z.output<typeof dueSchema>;
/** What is due, by organization, or a part of it. */
export type DueRead = Readonly<{ due: ReadonlyMap<string, readonly Due[]>; more: boolean }>;

/** What goes into one transaction. */
type Unit = Readonly<{ organizationId: string; ids: readonly string[] }>;

type DueKind = Readonly<{
  /** The most ids that go together. */
  batch: number;
  /** @returns how many it has moved; `later`: it stays due, and is tried again later */
  process(services: Pick<JobServices, 'dispatchDb' | 'config' | 'metrics'>, unit: Unit): Promise<number | 'later'>;
}>;

const outcomeSchema = z.object({ outcome: z.string() });
const expiredSchema = z.object({ expired: z.int() });
const publishedSchema = z.object({ published: z.int(), parked: z.int() });

/** Of one item: none where somebody else was faster. */
const movedOne = ({ outcome }: z.output<typeof outcomeSchema>): number => (outcome === 'unchanged' ? 0 : 1);

/**
 * Slow work: one job covers all that waits. Dispatch adds it, since in the transition it would add a notification to the commit.
 * @returns that nothing was moved
 */
async function addOnce(db: Queries, job: JobName): Promise<0> {
  await db.query(sql.unsafe`
    select graphile_worker.add_job(${job}, job_key => ${job}) where not exists (
      select from graphile_worker.jobs where key = ${job} and attempts < max_attempts)`);
  return 0;
}

const scheduleSchema = z.object({
  cron: z.string(),
  timezone: z.string(),
  version: z.int(),
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
        select s.cron, s.timezone, s.version, to_jsonb(s.next_run_at) #>> '{}' as fire_at,
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
      const ended = await call(services.dispatchDb, 'run_request_expire', args, outcomeSchema);
      const moved = movedOne(ended);
      if (moved > 0) services.metrics.leaseExpiries.inc({ outcome: ended.outcome });
      return moved;
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
      return movedOne(await call(services.dispatchDb, 'chat_turn_end_overdue', args, outcomeSchema));
    },
  },
  publish: {
    batch: Number.POSITIVE_INFINITY,
    async process({ dispatchDb }, { organizationId, ids }) {
      const args = { organizationId, runRequestIds: ids };
      // Those that somebody has locked are left for later.
      const { published, parked } = await call(dispatchDb, 'run_requests_publish', args, publishedSchema);
      return published + parked;
    },
  },
  wake: {
    // Each locks its hierarchy: many at once would hold up others.
    batch: WAKE_BATCH,
    async process({ dispatchDb }, { organizationId, ids }) {
      const args = { organizationId, taskIds: ids };
      await call(dispatchDb, 'tasks_wake', args, ignored);
      return ids.length;
    },
  },
  action: {
    batch: Number.POSITIVE_INFINITY,
    process: ({ dispatchDb }) => addOnce(dispatchDb, EXECUTE),
  },
  action_expire: {
    batch: WAKE_BATCH,
    async process({ dispatchDb }, { organizationId, ids }) {
      const args = { organizationId, actionIds: ids };
      return (await call(dispatchDb, 'actions_expire', args, expiredSchema)).expired;
    },
  },
  index: {
    batch: 1,
    process: ({ dispatchDb }) => addOnce(dispatchDb, INDEX),
  },
  insight: {
    batch: Number.POSITIVE_INFINITY,
    process: async ({ dispatchDb, config }) => (config.insights.units > 0 ? addOnce(dispatchDb, COLLECT) : 0),
  },
  fire: {
    batch: 1,
    async process({ dispatchDb }, unit) {
      const due = await dueSchedule(dispatchDb, unit);
      if (!due) return 0;
      // After the present rather than after the fire: however many were missed, they are one task.
      const next = nextFire(due.cron, due.timezone, new Date(due.now));
      if (!next) throw new Error(`the schedule ${due.cron} never fires again`);
      const args = {
        organizationId: unit.organizationId,
        scheduleId: unit.ids[0],
        fireAt: due.fire_at,
        version: due.version,
        nextRunAt: next.toISOString(),
      };
      const fired = await call(dispatchDb, 'schedule_fire', args, outcomeSchema);
      return fired.outcome === 'postponed' ? 'later' : movedOne(fired);
    },
  },
};

/**
 * What is due over all organizations: of each kind the oldest `rows` of an organization, of `organizations` that follow `after`.
 * @returns with it, where the next read begins by kind, and whether more is due than this
 */
export async function readDue(
  db: Queries,
  options: Readonly<{
    organizations: number;
    rows: number;
    after: Readonly<Record<string, string>>;
    chatStartSeconds: number;
  }>,
): Promise<DueRead & Readonly<{ after: Readonly<Record<string, string>> }>> {
  const read = await db.any(
    sql.type(dueSchema)`select kind, organization_id, ids from ${functionCall('dispatch_due', options)}`,
  );
  const after: Record<string, string> = {};
  for (const [kind, ofKind] of Map.groupBy(read, (row) => row.kind)) {
    const last = ofKind[options.organizations - 1];
    if (last) after[kind] = last.organization_id;
  }
  const more = Object.keys(after).length > 0 || read.some(({ ids }) => ids.length >= options.rows);
  return { due: Map.groupBy(read, (row) => row.organization_id), more, after };
}

type NamedUnit = Readonly<{ name: string; kind: DueKind; unit: Unit }>;

function unitsOf(due: Due, ids: readonly string[]): NamedUnit[] {
  const kind = dueKinds[due.kind];
  if (!kind || ids.length === 0) return [];
  const size = Math.min(kind.batch, ids.length);
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, index) => ({
    name: due.kind,
    kind,
    unit: { organizationId: due.organization_id, ids: ids.slice(index * size, (index + 1) * size) },
  }));
}

/** One of each list, then another one of each: a turn that ends early has served every kind. */
function interleaved<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list.slice(index, index + 1))).flat();
}

export type Processor = Readonly<{
  /** Moves what is due of one organization, at least one unit, and then as long as `goOn` says. */
  process(due: readonly Due[], goOn: () => boolean): Promise<Readonly<{ moved: number; left: boolean }>>;
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

  async function processUnit({ name, kind, unit }: NamedUnit): Promise<number> {
    try {
      const moved = await kind.process(services, unit);
      if (moved === 'later') {
        for (const id of unit.ids) quarantine.add(id);
        return 0;
      }
      for (const id of unit.ids) quarantine.remove(id);
      return moved;
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
    let moved = 0;
    for (const id of unit.ids) moved += await processUnit({ name, kind, unit: { ...unit, ids: [id] } });
    return moved;
  }

  return {
    failing: quarantine.size,
    async process(dues, goOn) {
      const units = interleaved(
        dues.map((due) =>
          unitsOf(
            due,
            due.ids.filter((id) => !quarantine.has(id)),
          ),
        ),
      );
      let moved = 0;
      for (const [index, unit] of units.entries()) {
        if (index > 0 && !goOn()) return { moved, left: true };
        moved += await processUnit(unit);
      }
      return { moved, left: false };
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
