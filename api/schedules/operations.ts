import type { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import type { Decision } from '../../engine/db/decision.ts';
import { actorOf } from '../http/actor.ts';
import type { newScheduleSchema, schedulePatchSchema } from './changes.ts';
import { changedFire, firstFire, resumedFire } from './fires.ts';
import { type Schedule, scheduleResult } from './schema.ts';

/** Who changes schedules of an organization. Owners leave an entry in the audit log; agents have no decision. */
type Changing = Readonly<{
  db: Queries;
  params: Readonly<{ organizationId: string }>;
  caller: Parameters<typeof actorOf>[0];
  decision: Decision | undefined;
}>;
type ChangingOne = Changing & Readonly<{ params: Readonly<{ scheduleRef: string }> }>;

/** @throws Problem of the transition, and 400 for a zone that the database reads otherwise */
export async function createSchedule(
  { db, params, caller, decision }: Changing,
  body: z.output<typeof newScheduleSchema>,
): Promise<Schedule> {
  const { timezone, nextRunAt } = await firstFire(db, params.organizationId, body);
  const args = {
    organizationId: params.organizationId,
    schedule: { ...body, timezone },
    nextRunAt,
    actor: actorOf(caller),
  };
  return (await call(db, 'schedule_create', args, scheduleResult, decision)).schedule;
}

/** @throws Problem of the transition, and 400 for a zone that the database reads otherwise */
export async function updateSchedule(
  { db, params, caller, decision }: ChangingOne,
  body: z.output<typeof schedulePatchSchema>,
): Promise<Schedule> {
  const { expectedVersion, ...patch } = body;
  const args = {
    organizationId: params.organizationId,
    scheduleRef: params.scheduleRef,
    expectedVersion,
    patch,
    nextRunAt: await changedFire(db, params.organizationId, params.scheduleRef, body),
    actor: actorOf(caller),
  };
  return (await call(db, 'schedule_update', args, scheduleResult, decision)).schedule;
}

/** @throws Problem of the transition */
export async function resumeSchedule({ db, params, caller, decision }: ChangingOne): Promise<Schedule> {
  const args = {
    organizationId: params.organizationId,
    scheduleRef: params.scheduleRef,
    ...(await resumedFire(db, params.organizationId, params.scheduleRef)),
    actor: actorOf(caller),
  };
  return (await call(db, 'schedule_resume', args, scheduleResult, decision)).schedule;
}

/** Pauses or deletes: it fires no more. @throws Problem of the transition */
export async function stopSchedule(
  transition: 'schedule_pause' | 'schedule_delete',
  { db, params, caller, decision }: ChangingOne,
): Promise<Schedule> {
  const args = {
    organizationId: params.organizationId,
    scheduleRef: params.scheduleRef,
    actor: actorOf(caller),
  };
  return (await call(db, transition, args, scheduleResult, decision)).schedule;
}
