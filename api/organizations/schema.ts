import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';

export const ORGANIZATION_STATUSES = ['onboarding', 'active', 'suspended'] as const;
export const DEPARTMENTS = ['growth', 'engineering', 'support'] as const;
export const RISKS = ['external', 'high'] as const;

const department = z.object({ enabled: z.boolean() });

const configSchema = z
  .object({
    timezone: z.string().describe('An IANA name.'),
    departments: z.object({ growth: department, engineering: department, support: department }),
    limits: z.object({
      maxConcurrentRuns: z.int(),
      maxDailyActions: z.int(),
      maxTaskDepth: z.int(),
      maxPlanOperations: z.int(),
      maxInitiativeDescendants: z.int(),
    }),
    storageRootUri: z.string(),
  })
  .meta({ id: 'OrganizationConfig' });

const constraintsSchema = z
  .object({
    allowedIntegrations: z.array(z.string()),
    blockedDomains: z.array(z.string()),
    approvalRequiredForRisk: z.array(z.enum(RISKS)),
  })
  .meta({ id: 'OrganizationConstraints' });

/** Contract 2.2. */
export const organizationSchema = z
  .object({
    id: z.string(),
    slug: z.string(),
    name: z.string(),
    status: z
      .enum(ORGANIZATION_STATUSES)
      .describe('Suspended: reads work, nothing is handed out to workers, and agents change nothing.'),
    onboardedAt: dateTime.nullable(),
    workDispatchStoppedAt: dateTime.nullable().describe('Set while work dispatch is stopped.'),
    rootUri: z.string().describe('Root of the organization’s memory.'),
    authorizationEpoch: z
      .int()
      .describe(
        'Rises when constraints, or a profile’s status or tool policy, change; agents’ reads are fenced by it.',
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
export const organizationAnswer = z.object({ organization: organizationRow });
export const organizationPageRow = z.object({ organization: organizationRow, ...keyColumns });

/** The answer of `app.work_dispatch_set`, as owners and agents see it. */
export const workDispatchSchema = z.object({
  organization: organizationSchema,
  publishedRunRequests: z.int().describe('Due run requests that were published by this call.'),
});
export const workDispatchAnswer = z
  .object({ organization: organizationRow, published_run_requests: z.int() })
  .pipe(mapping((row) => ({ organization: row.organization, publishedRunRequests: row.published_run_requests })));

const exampleId = '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e';

export const organizationExample = {
  id: exampleId,
  slug: 'north-light',
  name: 'North Light Ltd',
  status: 'active',
  onboardedAt: null,
  workDispatchStoppedAt: null,
  rootUri: `org://${exampleId}`,
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
    storageRootUri: `org://${exampleId}/storage`,
  },
  constraints: { allowedIntegrations: [], blockedDomains: [], approvalRequiredForRisk: ['external', 'high'] },
  createdAt: '2026-01-31T09:30:00.000Z',
  updatedAt: '2026-01-31T09:30:00.000Z',
} satisfies Organization;
