import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { ids, times } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';

export const ORGANIZATION_STATUSES = ['onboarding', 'active', 'suspended'] as const;
export const DEPARTMENTS = ['growth', 'engineering', 'support'] as const;
export const department = z.enum(DEPARTMENTS).meta({ id: 'Department' });
export const RISKS = ['external', 'high'] as const;

const enabled = z.object({ enabled: z.boolean() });
const limit = {
  maxConcurrentRuns: 'Most claims and runs of tasks at once.',
  maxDailyActions: 'Most actions with external effects a day.',
  maxTaskDepth: 'Most levels below a root task.',
  maxPlanOperations: 'Most operations in one plan.',
  maxInitiativeDescendants: 'Most tasks below an initiative.',
};

const configSchema = z
  .object({
    timezone: z.string().describe('`UTC`, or an IANA name such as Europe/Berlin.'),
    departments: z.object({ growth: enabled, engineering: enabled, support: enabled }),
    limits: z.object({
      maxConcurrentRuns: z.int().describe(limit.maxConcurrentRuns),
      maxDailyActions: z.int().describe(limit.maxDailyActions),
      maxTaskDepth: z.int().describe(limit.maxTaskDepth),
      maxPlanOperations: z.int().describe(limit.maxPlanOperations),
      maxInitiativeDescendants: z.int().describe(limit.maxInitiativeDescendants),
    }),
    storageRootUri: z.string(),
  })
  .meta({ id: 'OrganizationConfig' });

const constraintsSchema = z
  .object({
    allowedIntegrations: z.array(z.string()).describe('Keys of the integrations that may be used. Empty: all.'),
    blockedDomains: z.array(z.string()).describe('Domains that are never read, with their subdomains.'),
    approvalRequiredForRisk: z.array(z.enum(RISKS)).describe('Actions with these risks need the approval of an owner.'),
  })
  .meta({ id: 'OrganizationConstraints' });

export const organizationSchema = z
  .object({
    id: uuid,
    slug: z.string().describe('Stable and unique.'),
    name: z.string(),
    status: z
      .enum(ORGANIZATION_STATUSES)
      .describe('`suspended`: reads work, but workers get nothing and agents cannot change anything.'),
    onboardedAt: dateTime.nullable().describe('When the onboarding was completed.'),
    workDispatchStoppedAt: dateTime
      .nullable()
      .describe(
        'Set while the owner has stopped work dispatch. While `status` is `onboarding` it is held in any case.',
      ),
    rootUri: z.string().describe('Logical root of the memory of the organization.'),
    authorizationEpoch: z
      .int()
      .describe(
        'Rises whenever constraints, or the status or tool policy of a profile, change. Agents pass it to reads that depend on it.',
      ),
    config: configSchema,
    constraints: constraintsSchema,
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'Organization' });
export type Organization = z.output<typeof organizationSchema>;

/** A row of `app.organizations`, as `to_jsonb` writes it. */
export const organizationRow = z
  .object({
    id: z.string(),
    slug: z.string(),
    name: z.string(),
    status: z.enum(ORGANIZATION_STATUSES),
    onboarded_at: nullableTimestamp,
    work_dispatch_stopped_at: nullableTimestamp,
    root_uri: z.string(),
    authorization_epoch: z.int(),
    config: configSchema,
    constraints: constraintsSchema,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): Organization => ({
        id: row.id,
        slug: row.slug,
        name: row.name,
        status: row.status,
        onboardedAt: row.onboarded_at,
        workDispatchStoppedAt: row.work_dispatch_stopped_at,
        rootUri: row.root_uri,
        authorizationEpoch: row.authorization_epoch,
        config: row.config,
        constraints: row.constraints,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

/** What a transition returns, and a read of one. */
export const organizationResult = z.object({ organization: organizationRow });
export const organizationPageRow = z.object({ organization: organizationRow, ...keyColumns });

/** What `app.work_dispatch_set` returns, as owners and agents see it. */
export const workDispatchSchema = z
  .object({
    organization: organizationSchema,
    publishedRunRequests: z.int().describe('Number of due run requests that this call published.'),
  })
  .meta({ id: 'WorkDispatchState' });
export const workDispatchResult = z
  .object({ organization: organizationRow, published_run_requests: z.int() })
  .pipe(mapping((row) => ({ organization: row.organization, publishedRunRequests: row.published_run_requests })));

export const organizationExample = {
  id: ids.organization,
  slug: 'lamp-studio',
  name: 'Lamp Studio',
  status: 'active',
  onboardedAt: times.onboarded,
  workDispatchStoppedAt: null,
  rootUri: `org://${ids.organization}`,
  authorizationEpoch: 1,
  config: {
    timezone: 'Europe/Berlin',
    departments: { growth: { enabled: true }, engineering: { enabled: true }, support: { enabled: false } },
    limits: {
      maxConcurrentRuns: 5,
      maxDailyActions: 100,
      maxTaskDepth: 5,
      maxPlanOperations: 50,
      maxInitiativeDescendants: 200,
    },
    storageRootUri: `org://${ids.organization}/storage`,
  },
  constraints: { allowedIntegrations: [], blockedDomains: [], approvalRequiredForRisk: ['external', 'high'] },
  createdAt: times.founded,
  updatedAt: times.onboarded,
} satisfies Organization;
