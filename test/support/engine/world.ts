import { randomUUID } from 'node:crypto';
import { createActing, type jobOf } from '../action_fixtures.ts';
import {
  type Claim,
  createSecondProfile,
  createTestOrganization,
  type Run,
  type TestOrganization,
} from '../fixtures.ts';
import { allow, type IntegrationRow } from '../integration_fixtures.ts';
import { Refusal, type Sql } from '../transitions.ts';

type Tenant = Readonly<{
  organizationId: string;
  profiles: readonly [TestOrganization, TestOrganization];
  /** Of a provider that agents may write to. */
  integration: IntegrationRow;
}>;

export type ActionOfWorld = Readonly<{ tenant: Tenant; id: string }>;

/** Organizations, and what workers and people know of them. */
export type World = {
  sql: Sql;
  tenants: readonly Tenant[];
  tasks: { tenant: Tenant; id: string; initiative: boolean }[];
  /** All that were ever made: a worker may come back with any of them. */
  claims: Claim[];
  runs: Run[];
  /** The run that a claim was started as, by its lease token. */
  started: Map<string, string>;
  finished: Set<string>;
  actions: ActionOfWorld[];
  /** Leases of actions that jobs were given: each may come back with any of them. */
  actionJobs: Readonly<{ action: ActionOfWorld; job: ReturnType<typeof jobOf> }>[];
  /** The lease under which an action was begun. */
  begun: Map<string, string>;
  /** Lease tokens that must not change anything any more. */
  dead: Set<string>;
  /** The same, as it was before the step that is being taken. */
  deadBefore: ReadonlySet<string>;
  /** Whether two operations are under way at once: then what was true before need not be. */
  paired: boolean;
};

/** What the engine allowed and never may. */
export class Violation extends Error {
  override name = 'Violation';
}

export async function createWorld(sql: Sql): Promise<World> {
  const tenants: Tenant[] = [];
  for (let n = 0; n < 2; n += 1) {
    const org = await createTestOrganization(sql, { maxConcurrentRuns: 2, limits: { maxConcurrentRuns: 3 } });
    const second = await createSecondProfile(sql, org, { maxConcurrentRuns: 2 });
    const { integration } = await createActing(sql, undefined, org);
    await allow(sql, second, 'integrations.read', 'integrations.propose');
    tenants.push({ organizationId: org.organizationId, profiles: [org, second], integration });
  }
  return {
    sql,
    tenants,
    tasks: [],
    claims: [],
    runs: [],
    started: new Map(),
    finished: new Set(),
    actions: [],
    actionJobs: [],
    begun: new Map(),
    dead: new Set(),
    deadBefore: new Set(),
    paired: false,
  };
}

/** A worker's call under a lease: once that is dead, only a repeat of the call that ended the run may succeed. */
export async function underLease<T>(
  world: World,
  held: Readonly<{ leaseToken: string; runId?: string }>,
  call: () => Promise<T>,
): Promise<T> {
  const dead = world.deadBefore.has(held.leaseToken);
  const repeat = held.runId !== undefined && world.finished.has(held.runId);
  const result = await call();
  if (dead && !repeat) throw new Violation('a dead lease was good for a call');
  return result;
}

export async function mustRefuse(what: string, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (error instanceof Refusal) return;
    throw error;
  }
  throw new Violation(`${what} was not refused`);
}

export function newRunId(): string {
  return randomUUID();
}

type Held = Readonly<{ id: string; held: number; capacity: number }>;

/** What each organization and each lane holds, and may. */
export async function heldNow(world: World): Promise<readonly Held[]> {
  const { rows } = await world.sql.owner.query<Held>(
    `select organization_id::text as id, held, capacity from app.dispatch
       where kind = 'task' and organization_id = any ($1)
     union all
     select organization_id || ' ' || agent_profile_id, held, capacity from app.dispatch_lanes
       where kind = 'task' and organization_id = any ($1)`,
    [world.tenants.map((tenant) => tenant.organizationId)],
  );
  return rows;
}

/** More may be held than the capacity where that was lowered; but then not one more is taken. */
export function checkCapacity(before: readonly Held[], after: readonly Held[]): void {
  for (const now of after) {
    const was = before.find((one) => one.id === now.id) ?? now;
    if (now.held > was.held && now.held > Math.max(was.capacity, now.capacity)) {
      throw new Violation(`${now.held} held at a capacity of ${now.capacity}`);
    }
  }
}

/** The tasks of an organization that are explained as waiting for nothing but a worker. */
export async function waitForWorkers(world: World, tenant: Tenant): Promise<string[]> {
  const { rows } = await world.sql.owner.query<{ id: string }>(
    `select t.id from app.tasks t where t.organization_id = $1 and t.status in ('pending', 'blocked')
       and app.task_causes(t.organization_id, t) @> '[{"kind": "worker"}]'`,
    [tenant.organizationId],
  );
  return rows.map((row) => row.id);
}
