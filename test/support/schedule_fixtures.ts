import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { nextFire } from '../../engine/schedules/index.ts';
import { OWNER, type TestOrganization } from './fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

const scheduleSchema = z.looseObject({
  id: z.string(),
  key: z.string(),
  status: z.string(),
  cron: z.string(),
  timezone: z.string(),
  version: z.int(),
  title: z.string(),
  task_template: z.looseObject({ title: z.string() }),
  next_run_at: z.string().nullable(),
  last_run_at: z.string().nullable(),
  last_task_id: z.string().nullable(),
});
export type ScheduleRow = z.output<typeof scheduleSchema>;
const resultSchema = z.object({ schedule: scheduleSchema });

export type ScheduleFields = Readonly<{
  key?: string;
  cron?: string;
  timezone?: string;
  overlap?: 'skip' | 'allow';
  taskTemplate?: JsonObject;
  /** Its first fire; default: an hour from now. */
  nextRunAt?: string;
}>;

export function scheduleCreate(
  connection: Connection,
  org: TestOrganization,
  fields: ScheduleFields = {},
  actor: JsonObject = OWNER,
): Promise<JsonObject> {
  const { nextRunAt = new Date(Date.now() + 3_600_000).toISOString(), ...schedule } = fields;
  return transition(connection, 'schedule_create', {
    organizationId: org.organizationId,
    schedule: {
      key: `s-${randomUUID().slice(0, 8)}`,
      cron: '0 9 * * *',
      timezone: 'UTC',
      taskTemplate: { title: 'By the clock', ownerAgentProfileId: org.profileId },
      ...schedule,
    },
    nextRunAt,
    actor,
  });
}

export async function createSchedule(
  sql: Pick<Sql, 'api'>,
  org: TestOrganization,
  fields: ScheduleFields = {},
): Promise<ScheduleRow> {
  return resultSchema.parse(await scheduleCreate(sql.api, org, fields)).schedule;
}

export async function changeSchedule(
  connection: Connection,
  org: TestOrganization,
  verb: 'pause' | 'resume' | 'delete',
  ref: string,
  fields: Readonly<{ nextRunAt?: string; version?: number; actor?: JsonObject }> = {},
): Promise<ScheduleRow> {
  const { nextRunAt = new Date(Date.now() + 3_600_000).toISOString(), version = 1, actor = OWNER } = fields;
  const args = { organizationId: org.organizationId, scheduleRef: ref, actor };
  const result =
    verb === 'resume'
      ? await transition(connection, 'schedule_resume', { ...args, nextRunAt, version })
      : await transition(connection, verb === 'pause' ? 'schedule_pause' : 'schedule_delete', args);
  return resultSchema.parse(result).schedule;
}

/** A change of a schedule; by default from its first version, and with a next fire an hour from now. */
export async function updateSchedule(
  connection: Connection,
  org: TestOrganization,
  ref: string,
  patch: JsonObject,
  fields: Readonly<{ expectedVersion?: number; nextRunAt?: string; actor?: JsonObject }> = {},
): Promise<ScheduleRow> {
  const { expectedVersion = 1, nextRunAt = new Date(Date.now() + 3_600_000).toISOString(), actor = OWNER } = fields;
  const args = { organizationId: org.organizationId, scheduleRef: ref, expectedVersion, patch, nextRunAt, actor };
  return resultSchema.parse(await transition(connection, 'schedule_update', args)).schedule;
}

export async function scheduleRow(sql: Sql, org: TestOrganization, id: string): Promise<ScheduleRow> {
  const { rows } = await sql.owner.query<{ row: unknown }>(
    'select to_jsonb(s) as row from app.schedules s where organization_id = $1 and id = $2',
    [org.organizationId, id],
  );
  return scheduleSchema.parse(rows[0]?.row);
}

/** What the dispatch job does with a due schedule at a point in time; by default with its next fire. */
export async function fire(
  sql: Sql,
  org: TestOrganization,
  id: string,
  fields: Readonly<{ now?: string; fireAt?: string; connection?: Connection }> = {},
): Promise<JsonObject> {
  const { cron, timezone, version, next_run_at: due } = await scheduleRow(sql, org, id);
  const { now = due ?? '', fireAt = due, connection = sql.jobs } = fields;
  return transition(connection, 'schedule_fire', {
    organizationId: org.organizationId,
    scheduleId: id,
    fireAt,
    version,
    nextRunAt: nextFire(cron, timezone, new Date(now))?.toISOString(),
    now,
  });
}

/** The tasks that a schedule has made, oldest first. */
export async function scheduledTasks(sql: Sql, org: TestOrganization, id: string): Promise<JsonObject[]> {
  const { rows } = await sql.owner.query(
    'select * from app.tasks where organization_id = $1 and schedule_id = $2 order by identifier_number',
    [org.organizationId, id],
  );
  return rows;
}

/** What the inbox says about a schedule, oldest first. */
export async function scheduleItems(sql: Sql, org: TestOrganization, id: string): Promise<JsonObject[]> {
  const { rows } = await sql.owner.query(
    'select * from app.human_inbox_items where organization_id = $1 and schedule_id = $2 order by created_at, id',
    [org.organizationId, id],
  );
  return rows;
}
