import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { digests, ids, times } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';
import { department } from '../organizations/schema.ts';
import { runMode } from '../runs/schema.ts';

export const PROFILE_KINDS = ['operator', 'chat', 'department'] as const;
export const PROFILE_STATUSES = ['enabled', 'disabled'] as const;

const configSchema = z
  .object({
    defaultRunMode: runMode,
    maxConcurrentRuns: z.int().describe('Most claims and runs of the profile at once.'),
    toolPolicyKeys: z.array(z.string()).describe('The tools that runs of the profile may use.'),
    memoryRootUri: z.string(),
    runtime: z.object({ model: z.string(), reasoningEffort: z.string() }).describe('What the worker is asked to use.'),
    skillKeys: z.array(z.string()),
    mcpServerKeys: z.array(z.string()),
    catalogSource: z
      .object({ templateKey: z.string(), revision: z.string() })
      .optional()
      .describe('The template that the profile is provisioned from. Absent for profiles that were created by hand.'),
  })
  .meta({ id: 'AgentProfileConfig' });

export const agentProfileSchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    key: z.string().describe('Unique in the organization.'),
    name: z.string(),
    kind: z
      .enum(PROFILE_KINDS)
      .describe('`operator`: works for the whole organization. `chat`: replies in chats. `department`: works for one.'),
    department: department.nullable().describe('Null unless the kind is `department`.'),
    status: z.enum(PROFILE_STATUSES).describe('`disabled`: the profile gets no work, and its open tasks are blocked.'),
    rootUri: z.string(),
    instructionsUri: z.string(),
    config: configSchema,
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({
    id: 'AgentProfile',
    example: {
      id: ids.growthProfile,
      name: 'Growth',
      kind: 'department',
      createdAt: times.onboarded,
      updatedAt: times.onboarded,
    },
  });
export type AgentProfile = z.output<typeof agentProfileSchema>;

/** A row of `app.agent_profiles`, as `to_jsonb` writes it. */
export const agentProfileRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    key: z.string(),
    name: z.string(),
    kind: z.enum(PROFILE_KINDS),
    department: department.nullable(),
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
export const agentProfileResult = z.object({ agent_profile: agentProfileRow });

export const agentProfilePageRow = z.object({ agent_profile: agentProfileRow, ...keyColumns });

/** What `app.agent_profiles_provision` returns. */
export const provisionedSchema = z
  .object({
    revision: z.string().describe('The catalog revision that the profiles are pinned to.'),
    profiles: z.array(agentProfileSchema).describe('The operator, chat and selected department profiles.'),
    disabledProfileIds: z
      .array(uuid)
      .describe('Provisioned department profiles that are not selected, and therefore disabled.'),
  })
  .meta({ id: 'Provisioned' });
export const provisionResult = z
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

const root = `org://${ids.organization}`;

export const agentProfileExample = {
  id: ids.growthProfile,
  organizationId: ids.organization,
  key: 'growth',
  name: 'Growth',
  kind: 'department',
  department: 'growth',
  status: 'enabled',
  rootUri: `${root}/profiles/growth`,
  instructionsUri: `${root}/profiles/growth/instructions.md`,
  config: {
    defaultRunMode: 'execute',
    maxConcurrentRuns: 3,
    toolPolicyKeys: ['context.read', 'insights.read'],
    memoryRootUri: `${root}/profiles/growth/memory`,
    runtime: { model: 'default', reasoningEffort: 'medium' },
    skillKeys: ['plain-writing', 'metric-analysis'],
    mcpServerKeys: ['organization-context', 'insights'],
    catalogSource: { templateKey: 'growth', revision: digests.catalog },
  },
  createdAt: times.onboarded,
  updatedAt: times.onboarded,
} satisfies AgentProfile;
