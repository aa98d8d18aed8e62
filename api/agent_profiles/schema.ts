import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';
import { DEPARTMENTS } from '../organizations/schema.ts';
import { RUN_MODES } from '../runs/schema.ts';

export const PROFILE_KINDS = ['operator', 'chat', 'department'] as const;
export const PROFILE_STATUSES = ['enabled', 'disabled'] as const;

const configSchema = z
  .object({
    defaultRunMode: z.enum(RUN_MODES),
    maxConcurrentRuns: z.int(),
    toolPolicyKeys: z.array(z.string()),
    memoryRootUri: z.string(),
    runtime: z.object({ model: z.string(), reasoningEffort: z.string() }),
    skillKeys: z.array(z.string()),
    mcpServerKeys: z.array(z.string()),
    catalogSource: z
      .object({ templateKey: z.string(), revision: z.string() })
      .optional()
      .describe('The template it is provisioned from; profiles made by hand have none.'),
  })
  .meta({ id: 'AgentProfileConfig' });

/** Contract 2.4. */
export const agentProfileSchema = z
  .object({
    id: z.string(),
    organizationId: z.string(),
    key: z.string().describe('Unique in the organization.'),
    name: z.string(),
    kind: z.enum(PROFILE_KINDS),
    department: z.enum(DEPARTMENTS).nullable().describe('Null unless the kind is department.'),
    status: z.enum(PROFILE_STATUSES),
    rootUri: z.string(),
    instructionsUri: z.string(),
    config: configSchema,
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'AgentProfile' });
export type AgentProfile = z.output<typeof agentProfileSchema>;

/** A row of `app.agent_profiles`, as `to_jsonb` writes it. */
export const agentProfileRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    key: z.string(),
    name: z.string(),
    kind: z.enum(PROFILE_KINDS),
    department: z.enum(DEPARTMENTS).nullable(),
    status: z.enum(PROFILE_STATUSES),
    root_uri: z.string(),
    instructions_uri: z.string(),
    config: configSchema,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): AgentProfile => ({
        id: row.id,
        organizationId: row.organization_id,
        key: row.key,
        name: row.name,
        kind: row.kind,
        department: row.department,
        status: row.status,
        rootUri: row.root_uri,
        instructionsUri: row.instructions_uri,
        config: row.config,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

/** What a transition returns, and a read of one. */
export const agentProfileAnswer = z.object({ agent_profile: agentProfileRow });

/** The answer of a change, with the chats whose answers it ended. */
export const agentProfileChangedAnswer = agentProfileAnswer.extend({ chatIds: z.array(z.uuid()) });
export const agentProfilePageRow = z.object({ agent_profile: agentProfileRow, ...keyColumns });

/** The answer of `app.agent_profiles_provision`. */
export const provisionedSchema = z
  .object({
    revision: z.string().describe('The catalog revision that the profiles are pinned to.'),
    profiles: z.array(agentProfileSchema).describe('Operator, chat and the selected departments.'),
    disabledProfileIds: z.array(z.string()).describe('Department profiles of the catalog that are not selected.'),
  })
  .meta({ id: 'Provisioned' });
export const provisionedAnswer = z
  .object({
    revision: z.string(),
    agent_profiles: z.array(agentProfileRow),
    disabled_profile_ids: z.array(z.string()),
  })
  .pipe(
    mapping((row) => ({
      revision: row.revision,
      profiles: row.agent_profiles,
      disabledProfileIds: row.disabled_profile_ids,
    })),
  );

const organizationId = '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e';
export const exampleRevision = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

export const agentProfileExample = {
  id: '0199f2f5-0b4a-7c11-8f53-6f0d5a7b9c21',
  organizationId,
  key: 'growth',
  name: 'Growth',
  kind: 'department',
  department: 'growth',
  status: 'enabled',
  rootUri: `org://${organizationId}/profiles/growth`,
  instructionsUri: `org://${organizationId}/profiles/growth/instructions.md`,
  config: {
    defaultRunMode: 'execute',
    maxConcurrentRuns: 3,
    toolPolicyKeys: ['context.read', 'insights.read'],
    memoryRootUri: `org://${organizationId}/profiles/growth/memory`,
    runtime: { model: 'default', reasoningEffort: 'medium' },
    skillKeys: ['plain-writing', 'metric-analysis'],
    mcpServerKeys: ['organization-context', 'insights'],
    catalogSource: { templateKey: 'growth', revision: exampleRevision },
  },
  createdAt: '2026-01-31T09:30:00.000Z',
  updatedAt: '2026-01-31T09:30:00.000Z',
} satisfies AgentProfile;
