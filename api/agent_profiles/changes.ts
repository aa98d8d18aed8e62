import { z } from 'zod';
import { logicalUri, requireOwnUris } from '../fields/logical_uri.ts';
import { removable } from '../fields/merge_patch.ts';
import { SLUG, unique, WORDS } from '../organizations/changes.ts';
import { DEPARTMENTS, department } from '../organizations/schema.ts';
import { runMode } from '../runs/schema.ts';
import { PROFILE_KINDS, PROFILE_STATUSES } from './schema.ts';

const keys = unique(
  z
    .string()
    .max(100)
    .regex(/^[a-z0-9]+(?:[._:/-][a-z0-9]+)*$/i, 'must be letters and digits, joined by one of . _ : / -'),
  200,
).meta({ id: 'ProfileKeys', description: 'Each key once.' });

/** 64 hex digits; which catalogs there are, the database knows. */
export const revision = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');

const text = (max: number) => z.string().trim().min(1).max(max);

const runtime = { model: text(200), reasoningEffort: text(40) };
const config = {
  defaultRunMode: runMode,
  maxConcurrentRuns: z.int().min(1).max(1_000),
  toolPolicyKeys: keys,
  memoryRootUri: logicalUri,
  skillKeys: keys,
  mcpServerKeys: keys,
  catalogSource: z.strictObject({ templateKey: z.string().min(1).max(100), revision }).meta({
    id: 'CatalogSource',
    description: 'A template of a published catalog. Provisioning then manages the profile.',
  }),
};

const fields = {
  key: z.string().max(63).regex(SLUG, WORDS),
  name: text(200),
  kind: z.enum(PROFILE_KINDS),
  department: department.nullable().optional(),
  status: z.enum(PROFILE_STATUSES),
};
const uris = { rootUri: logicalUri, instructionsUri: logicalUri };

/** Body of the create: key, name and kind, the rest over the defaults. */
export const newAgentProfileSchema = z
  .strictObject({
    ...fields,
    ...z.object({ status: fields.status, ...uris }).partial().shape,
    config: z
      .strictObject({ ...config, runtime: z.strictObject(runtime).partial() })
      .partial()
      .optional(),
  })
  .refine((profile) => (profile.kind === 'department') === Boolean(profile.department), {
    path: ['department'],
    message: 'is required for department profiles, and refused for others',
  })
  .meta({ id: 'NewAgentProfile' });

/** Body of the update, a JSON merge patch. */
export const agentProfilePatchSchema = z
  .strictObject({
    ...z.object(fields).partial().shape,
    ...removable({
      ...uris,
      config: z.strictObject(removable({ ...config, runtime: z.strictObject(removable(runtime)) })),
    }),
  })
  .meta({
    id: 'AgentProfilePatch',
    description: 'A JSON merge patch (RFC 7396): null restores a default, or removes `department` and `catalogSource`.',
  });

type Profile = z.output<typeof newAgentProfileSchema> | z.output<typeof agentProfilePatchSchema>;

/** Whether a body says which tools of integrations a profile may use. */
export function namesToolPolicy({ config: given }: Profile): boolean {
  return given === null || given?.toolPolicyKeys !== undefined;
}

/** The same of a change, by which a profile may also come to another department's integrations. */
export function changesReach(patch: z.output<typeof agentProfilePatchSchema>): boolean {
  return namesToolPolicy(patch) || patch.kind !== undefined || patch.department !== undefined;
}

/** Body of the provisioning. */
export const provisionSchema = z
  .strictObject({
    departments: unique(department, DEPARTMENTS.length).describe('The departments that get an enabled profile.'),
    revision: revision.optional().describe('A published catalog. Default: the current one.'),
  })
  .meta({ id: 'Provision' });

/** @throws Problem 400 for logical URIs of another organization */
export function requireProfileUris(organizationId: string, body: Profile): void {
  const { rootUri, instructionsUri } = body;
  requireOwnUris(organizationId, { rootUri, instructionsUri, 'config.memoryRootUri': body.config?.memoryRootUri });
}
