import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AgentProfile } from '../../api/agent_profiles/schema.ts';
import type { Organization } from '../../api/organizations/schema.ts';
import type { Task } from '../../api/tasks/schema.ts';
import type { TestApp } from './app.ts';
import type { Client } from './http.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A new organization, as its owner makes it. */
export async function makeOrganization(owner: Client, fields: Fields = {}): Promise<Organization> {
  const id = randomUUID();
  const reply = await owner.post<Organization>(`/organizations/${id}`, { slug: `o-${id}`, name: 'Acme', ...fields });
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  return reply.data;
}

/** A new profile, of kind operator unless the fields say otherwise. */
export async function makeProfile(owner: Client, organizationId: string, fields: Fields = {}): Promise<AgentProfile> {
  const body = { key: `p-${randomUUID()}`, name: 'Someone', kind: 'operator', ...fields };
  const reply = await owner.post<AgentProfile>(`/organizations/${organizationId}/agent-profiles`, body);
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  return reply.data;
}

/** A new task of a profile. */
export async function makeTask(owner: Client, profile: AgentProfile, fields: Fields = {}): Promise<Task> {
  const body = { title: 'A task', ownerAgentProfileId: profile.id, spec: { objective: 'Do it' }, ...fields };
  const reply = await owner.post<Task>(`/organizations/${profile.organizationId}/tasks`, body);
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  return reply.data;
}

export type Claim = Readonly<{ organizationId: string; runRequestId: string; leaseToken: string; task: Task }>;

/** What a worker gets of one organization without waiting. */
export async function pull(app: TestApp, organizationId: string, limit = 1): Promise<Claim[]> {
  const body = { workerId: 'w', limit, organizationIds: [organizationId] };
  const reply = await app.service.post<{ items: Claim[] }>('/internal/run-requests/pull', body);
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply.data.items;
}

export type Started = Readonly<{ runId: string; executionToken: string }>;

/** Starts a claim as a new run. */
export function start(app: TestApp, claim: Claim) {
  const { organizationId, runRequestId, leaseToken } = claim;
  return app.service.post<Started>(`/internal/run-requests/${runRequestId}/start`, {
    organizationId,
    leaseToken,
    runId: randomUUID(),
    workerId: 'w',
  });
}

/** The same for a claim that is known to hold. */
export async function started(app: TestApp, claim: Claim): Promise<Started> {
  const reply = await start(app, claim);
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply.data;
}
