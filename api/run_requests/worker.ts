import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { agentProfileRow, agentProfileSchema } from '../agent_profiles/schema.ts';
import { uuid } from '../fields/ids.ts';
import { timestamp } from '../fields/timestamp.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { RUN_KINDS, runMode } from '../runs/schema.ts';
import { taskRow, taskSchema } from '../tasks/schema.ts';

const pullBody = z
  .strictObject({
    workerId: z.string().min(1).max(200).describe('Name of the worker, for people.'),
    limit: z.int().min(1).max(50).default(1).describe('Most items to claim.'),
    waitMs: z.int().min(0).max(30_000).default(0).describe('How long to wait for work, in milliseconds.'),
    organizationIds: z.array(uuid).min(1).max(1000).optional().describe('Default: all organizations.'),
    profileKeys: z
      .array(z.string().min(1).max(63))
      .min(1)
      .max(100)
      .optional()
      .describe('Keys of the profiles to work for. Default: all profiles.'),
    kinds: z.array(z.enum(RUN_KINDS)).min(1).max(2).optional().describe('Default: both.'),
  })
  .meta({ id: 'Pull' });

const itemFields = {
  organizationId: z.string(),
  runRequestId: z.string(),
  leaseToken: z.string().describe('`<fence>.<secret>`. The start and every later call about the run carry it.'),
  mode: runMode,
  attempt: z.int().describe('Number of the attempt that starts.'),
  priority: z.int(),
};

const responseFields = {
  ...itemFields,
  organizationId: uuid,
  runRequestId: uuid,
  leaseExpiresAt: z.iso.datetime().describe('The claim ends at this time unless the run has started.'),
  agentProfile: agentProfileSchema,
};

const turnSchema = z
  .object({
    chatId: uuid,
    messageId: uuid.describe('The pending reply to write.'),
    title: z.string(),
    summary: z.string().nullable().describe('As the last turn left it.'),
    harnessSessionId: z.string().nullable().describe('The session of the runtime to continue.'),
    isOnboardingChat: z.boolean(),
  })
  .meta({ id: 'PulledChat' });

const pullResponse = z
  .object({
    items: z.array(
      z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('task'), ...responseFields, task: taskSchema }),
        z.object({ kind: z.literal('chat'), ...responseFields, chat: turnSchema }),
      ]),
    ),
  })
  .meta({ id: 'Pulled' });

/** What `app.run_requests_pull` hands out → an item. */
const claimFields = { ...itemFields, leaseExpiresAt: timestamp, agentProfile: agentProfileRow };
const turnRow = z
  .object({
    id: z.string(),
    message_id: z.string(),
    title: z.string(),
    summary: z.string().nullable(),
    harness_session_id: z.string().nullable(),
    is_onboarding: z.boolean(),
  })
  .pipe(
    mapping((row) => ({
      chatId: row.id,
      messageId: row.message_id,
      title: row.title,
      summary: row.summary,
      harnessSessionId: row.harness_session_id,
      isOnboardingChat: row.is_onboarding,
    })),
  );
const claimRow = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('task'), ...claimFields, task: taskRow }),
  z.object({ kind: z.literal('chat'), ...claimFields, chat: turnRow }),
]);

/** `POST /internal/run-requests/pull`. */
export function pullEndpoint(): Endpoint {
  return endpoint({
    method: 'post',
    path: '/internal/run-requests/pull',
    audience: 'worker',
    tag: 'Workers',
    operationId: 'pullRunRequests',
    summary: 'Claim run requests, waiting if there are none',
    description:
      'Organizations take turns, and those at their capacity are skipped. Within an organization the order is priority, then age. Each item is claimed for the caller until `leaseExpiresAt`; if it is not started by then, it is handed out again. Chat turns have a capacity of their own. If the wait ends without work, the list is empty.',
    body: pullBody,
    response: { data: pullResponse },
    example: { body: { workerId: 'worker-1', limit: 1, waitMs: 20_000 } },
    async handler({ services, body, signal }) {
      const { workerId, limit, waitMs, ...filters } = body;
      const claims = await services.brokers.pull(filters, { workerId, limit, waitMs, signal });
      return { items: claims.map((claim) => claimRow.parse(claim)) };
    },
  });
}
