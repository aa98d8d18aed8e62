import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { call, json, type Queries, textArray } from '../../../engine/db/call.ts';

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
  await call(
    db,
    'organization_create',
    { p_organization_id: organizationId, p_fields: json(fields), p_subject: subject },
    z.unknown(),
  );
  const profile = {
    key: 'growth',
    name: 'Growth',
    kind: 'department',
    department: 'growth',
    config: { maxConcurrentRuns: 100 },
  };
  await call(db, 'agent_profile_create', { p_organization_id: organizationId, p_fields: json(profile) }, z.unknown());
  return organizationId;
}

/** A task that is ready to run. */
export async function createTask(db: Queries, organizationId: string): Promise<void> {
  const task = { title: 'A task', ownerProfileKey: 'growth', spec: { objective: 'Do it' } };
  await call(
    db,
    'task_create',
    { p_organization_id: organizationId, p_task: json(task), p_actor: json({ kind: 'owner' }) },
    z.unknown(),
  );
}

const pulled = z.object({ items: z.tuple([z.looseObject({ runRequestId: z.string(), leaseToken: z.string() })]) });

/** A run that holds its lease, and so a valid execution capability. */
export async function startRun(db: Queries): Promise<StartedRun> {
  const organizationId = await createOrganization(db);
  await createTask(db, organizationId);
  const args = { p_organization_ids: null, p_profile_keys: null, p_kinds: null, p_claim_seconds: 30 };
  const { items } = await call(db, 'run_requests_pull', { p_worker_ids: textArray(['w']), ...args }, pulled);
  const { runRequestId, leaseToken } = items[0];
  const runId = randomUUID();
  const { executionToken } = await call(
    db,
    'run_start',
    {
      p_organization_id: organizationId,
      p_run_request_id: runRequestId,
      p_run_id: runId,
      p_lease_token: leaseToken,
      p_worker_id: 'w',
      p_lease_seconds: 60,
    },
    z.looseObject({ executionToken: z.string() }),
  );
  return { organizationId, runId, runRequestId, leaseToken, executionToken };
}
