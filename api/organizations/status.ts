import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { scoped } from '../../engine/db/scope.ts';
import { uuid } from '../fields/ids.ts';
import { nullableTimestamp } from '../fields/timestamp.ts';
import type { AgentCaller } from '../http/caller.ts';
import { ids } from '../http/openapi/example_values.ts';
import { RUN_KINDS } from '../runs/schema.ts';

const laneSchema = z.object({
  agentProfileId: uuid,
  key: z.string(),
  kind: z.enum(RUN_KINDS),
  capacity: z.int().describe('Most claims and runs at once.'),
  held: z.int().describe('Claims and runs now.'),
  ready: z.int().describe('Published run requests that wait for a worker.'),
});

/** Response of `GET …/status`: how the organization stands, at a glance. */
export const agentStatusSchema = z
  .object({
    organization: z.object({
      id: uuid,
      slug: z.string(),
      name: z.string(),
      status: z.string(),
      authorizationEpoch: z.int(),
      workDispatchStoppedAt: z.iso.datetime().nullable(),
    }),
    dispatch: z.object({
      stopped: z.boolean().describe('Stopped by the owner, or held by an onboarding.'),
      capacity: z.int().describe('`config.limits.maxConcurrentRuns` of the organization.'),
      held: z.int().describe('Claims and runs of tasks now.'),
      lanes: z.array(laneSchema).describe('By profile and kind of work.'),
    }),
    caller: z
      .object({
        kind: z.enum(['service', 'capability']),
        agentProfileId: uuid.nullable(),
        profileKind: z.string().nullable(),
        runId: uuid.nullable(),
        taskId: uuid.nullable(),
        mode: z.string().nullable(),
      })
      .describe('Whom the token identifies. With the service token all other fields are null.'),
  })
  .meta({
    id: 'AgentStatus',
    example: {
      organization: {
        id: ids.organization,
        slug: 'lamp-studio',
        name: 'Lamp Studio',
        status: 'active',
        authorizationEpoch: 1,
        workDispatchStoppedAt: null,
      },
      dispatch: {
        stopped: false,
        capacity: 5,
        held: 1,
        lanes: [{ agentProfileId: ids.growthProfile, key: 'growth', kind: 'task', capacity: 3, held: 1, ready: 0 }],
      },
      caller: {
        kind: 'capability',
        agentProfileId: ids.growthProfile,
        profileKind: 'department',
        runId: ids.run,
        taskId: ids.task,
        mode: 'execute',
      },
    },
  });

const row = z.object({
  id: z.string(),
  slug: z.string(),
  name: z.string(),
  status: z.string(),
  authorization_epoch: z.int(),
  work_dispatch_stopped_at: nullableTimestamp,
  stopped: z.boolean(),
  capacity: z.int(),
  held: z.int(),
  lanes: z.array(laneSchema),
});

/** @throws Problem 404 */
export async function getAgentStatus(
  db: Queries,
  organizationId: string,
  caller: AgentCaller,
): Promise<z.output<typeof agentStatusSchema>> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      row,
      sql.fragment`
        select o.id, o.slug, o.name, o.status, o.authorization_epoch, o.work_dispatch_stopped_at,
          d.stopped, d.capacity, d.held,
          (select coalesce(jsonb_agg(jsonb_build_object('agentProfileId', p.id, 'key', p.key, 'kind', l.kind,
              'capacity', l.capacity, 'held', l.held, 'ready', l.ready) order by p.key, l.kind desc), '[]')
            from app.dispatch_lanes l
            join app.agent_profiles p on p.organization_id = l.organization_id and p.id = l.agent_profile_id
            where l.organization_id = o.id and p.deleted_at is null) as lanes
        from app.organizations o
        join app.dispatch d on d.organization_id = o.id and d.kind = 'task'
        where o.id = scope.organization_id`,
    ),
  );
  if (!found) throw new Problem(404, 'organization_not_found', 'There is no organization with this id.');
  const actor = caller.kind === 'capability' ? caller.actor : undefined;
  return {
    organization: {
      id: found.id,
      slug: found.slug,
      name: found.name,
      status: found.status,
      authorizationEpoch: found.authorization_epoch,
      workDispatchStoppedAt: found.work_dispatch_stopped_at,
    },
    dispatch: { stopped: found.stopped, capacity: found.capacity, held: found.held, lanes: found.lanes },
    caller: {
      kind: caller.kind,
      agentProfileId: actor?.agentProfileId ?? null,
      profileKind: actor?.profileKind ?? null,
      runId: actor?.runId ?? null,
      taskId: actor?.taskId ?? null,
      mode: actor?.mode ?? null,
    },
  };
}
