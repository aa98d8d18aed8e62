import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { call, type Queries } from '../../../engine/db/call.ts';

export type StartedRun = Readonly<{
  organizationId: string;
  runId: string;
  runRequestId: string;
  leaseToken: string;
  executionToken: string;
}>;

/** An organization with an enabled department profile, and room for a hundred runs. */
export async function createOrganization(db: Queries, subject: string | null = null): Promise<string> {
  const organizationId = randomUUID();
  const fields = { slug: `org-${organizationId}`, name: 'Acme', config: { limits: { maxConcurrentRuns: 100 } } };
  await call(db, 'organization_create', { organizationId, fields, subject }, z.unknown());
  const profile = {
    key: 'growth',
    name: 'Growth',
    kind: 'department',
    department: 'growth',
    config: { maxConcurrentRuns: 100 },
  };
  await call(db, 'agent_profile_create', { organizationId, fields: profile }, z.unknown());
  return organizationId;
}

/** A task that is ready to run. */
export async function createTask(db: Queries, organizationId: string): Promise<void> {
  const task = { title: 'A task', ownerProfileKey: 'growth', spec: { objective: 'Do it' } };
  await call(db, 'task_create', { organizationId, task, actor: { kind: 'owner' } }, z.unknown());
}

const pulled = z.object({ items: z.tuple([z.looseObject({ runRequestId: z.string(), leaseToken: z.string() })]) });

/** A run that holds its lease, and so a valid execution capability. */
export async function startRun(db: Queries): Promise<StartedRun> {
  const organizationId = await createOrganization(db);
  await createTask(db, organizationId);
  const args = { organizationIds: null, profileKeys: null, kinds: null, claimSeconds: 30 };
  const { items } = await call(db, 'run_requests_pull', { workerIds: ['w'], ...args }, pulled);
  const { runRequestId, leaseToken } = items[0];
  const runId = randomUUID();
  const { executionToken } = await call(
    db,
    'run_start',
    {
      organizationId,
      runRequestId,
      runId,
      leaseToken,
      workerId: 'w',
      leaseSeconds: 60,
    },
    z.looseObject({ executionToken: z.string() }),
  );
  return { organizationId, runId, runRequestId, leaseToken, executionToken };
}
