// Work of every kind that time makes due, in any number.
import { createProposer, propose } from './action_fixtures.ts';
import { createChat, createChatOrganization, send } from './chat_fixtures.ts';
import { createTask, createTestOrganization, pull, type TestOrganization } from './fixtures.ts';
import { createSchedule } from './schedule_fixtures.ts';
import type { Sql } from './transitions.ts';

type Statement = Readonly<{ query: (text: string, values: unknown[]) => Promise<unknown> }>;

export type DueWork = Readonly<{
  /** As dispatch calls it. */
  kind: string;
  /** An organization with so many items, none of which is due. */
  make(count: number): Promise<TestOrganization>;
  /**
   * All of them, or so many, have been due for so many seconds, and a bit less one after the other, the later made the longer: in
   * the order of their ids they would come the other way round.
   */
  fallDue(org: TestOrganization, seconds: number, count?: number): Promise<void>;
  /** The ids of so many in the order in which they fell due. */
  oldest(org: TestOrganization, count: number): Promise<string[]>;
  /** Holds their rows until the transaction ends: nobody gets any further with them. */
  hold(session: Statement, org: TestOrganization): Promise<void>;
  /** How many have not been moved. */
  left(org: TestOrganization): Promise<number>;
}>;

type Fields = Readonly<{
  kind: string;
  table: 'tasks' | 'run_requests' | 'schedules' | 'actions';
  /** Those of the organization that have not been moved. */
  rows: string;
  /** Names the time at which a row is due by {time}. */
  change: string;
  /** Where not the table itself. */
  held?: 'tasks';
  make(sql: Sql, count: number): Promise<TestOrganization>;
}>;

const CAPACITY = { limits: { maxConcurrentRuns: 1_000 }, maxConcurrentRuns: 1_000 };
const LATER = '2999-01-01T00:00:00Z';

async function repeat(count: number, step: () => Promise<unknown>): Promise<void> {
  for (let made = 0; made < count; made += 1) await step();
}

async function withTasks(sql: Sql, count: number, fields = {}): Promise<TestOrganization> {
  const org = await createTestOrganization(sql, CAPACITY);
  await repeat(count, () => createTask(sql, org, fields));
  return org;
}

async function withQueued(sql: Sql, count: number, parked: boolean): Promise<TestOrganization> {
  const org = await withTasks(sql, count);
  await sql.owner.query(
    `update app.run_requests set state = 'queued', parked = $2, published_at = null, due_at = $3 where organization_id = $1`,
    [org.organizationId, parked, LATER],
  );
  return org;
}

const works = {
  'leases that have ended': {
    kind: 'expire',
    table: 'run_requests',
    rows: `state = 'leased'`,
    change: 'lease_expires_at = {time}',
    held: 'tasks',
    async make(sql, count) {
      const org = await withTasks(sql, count);
      const limit = 50;
      const claim = { organizationIds: [org.organizationId], limit, claimSeconds: 3_600 };
      await repeat(Math.ceil(count / limit), () => pull(sql.api, claim));
      return org;
    },
  },
  'requests after their backoff': {
    kind: 'publish',
    table: 'run_requests',
    rows: `state = 'queued'`,
    change: 'due_at = {time}',
    make: (sql, count) => withQueued(sql, count, false),
  },
  'requests that were parked in the moment of a resume': {
    kind: 'publish',
    table: 'run_requests',
    rows: `state = 'queued'`,
    change: 'due_at = {time}',
    make: (sql, count) => withQueued(sql, count, true),
  },
  'tasks that have waited': {
    kind: 'wake',
    table: 'tasks',
    rows: `status = 'waiting'`,
    change: 'waiting_until = {time}',
    async make(sql, count) {
      const org = await withTasks(sql, count, { scheduledAt: LATER });
      await sql.owner.query(
        `update app.tasks set status = 'waiting', waiting_until = $2, waiting_reason = 'A test', scheduled_at = null,
           blockers = '[]' where organization_id = $1`,
        [org.organizationId, LATER],
      );
      return org;
    },
  },
  'tasks whose time has come': {
    kind: 'wake',
    table: 'tasks',
    rows: `status = 'blocked'`,
    change: 'scheduled_at = {time}',
    make: (sql, count) => withTasks(sql, count, { scheduledAt: LATER }),
  },
  'actions that nobody has decided about': {
    kind: 'action_expire',
    table: 'actions',
    rows: `status = 'awaiting_approval'`,
    change: 'expires_at = {time}',
    async make(sql, count) {
      const by = await createProposer(sql, { config: { limits: { maxDailyActions: 1_000 } } });
      for (let made = 0; made < count; made += 1) await propose(sql, by, { arguments: { made } });
      return by.org;
    },
  },
  'messages that nobody has started on': {
    kind: 'chat_overdue',
    table: 'run_requests',
    rows: `kind = 'chat' and state = 'published'`,
    change: `created_at = {time} - interval '1 hour'`,
    async make(sql, count) {
      const org = await createChatOrganization(sql);
      await repeat(count, async () => send(sql.api, org, (await createChat(sql, org)).id));
      return org;
    },
  },
  'schedules that fire': {
    kind: 'fire',
    table: 'schedules',
    rows: `last_run_at is null`,
    change: 'next_run_at = {time}',
    async make(sql, count) {
      const org = await createTestOrganization(sql);
      await repeat(count, () => createSchedule(sql, org, { cron: '0 0 1 1 *', overlap: 'allow' }));
      return org;
    },
  },
} as const satisfies Readonly<Record<string, Fields>>;

export type DueName = keyof typeof works;
export const DUE_NAMES = Object.keys(works) as DueName[];

export function dueWork(sql: Sql, name: DueName): DueWork {
  const { kind, table, rows, change, make, ...fields }: Fields = works[name];
  const held = fields.held ?? table;
  return {
    kind,
    make: (count) => make(sql, count),
    async fallDue(org, seconds, count = Number.MAX_SAFE_INTEGER) {
      const time = `(now() - make_interval(secs => $2) + n.n * interval '1 millisecond')`;
      await sql.owner.query(
        `update app.${table} r set ${change.replaceAll('{time}', time)}
         from (select id, row_number() over (order by id desc) as n from app.${table} where organization_id = $1 and ${rows}) n
         where r.organization_id = $1 and r.id = n.id and n.n <= $3`,
        [org.organizationId, seconds, count],
      );
    },
    async oldest(org, count) {
      const { rows: found } = await sql.owner.query<{ id: string }>(
        `select id from app.${table} where organization_id = $1 and ${rows} order by ${change.split(' ')[0]} limit $2`,
        [org.organizationId, count],
      );
      return found.map(({ id }) => id);
    },
    async hold(session, org) {
      await session.query(`select from app.${held} where organization_id = $1 for update`, [org.organizationId]);
    },
    async left(org) {
      const { rows: found } = await sql.owner.query(
        `select count(*)::int as left from app.${table} where organization_id = $1 and ${rows}`,
        [org.organizationId],
      );
      return found[0].left;
    },
  };
}
