import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { instant } from '../fields/instant.ts';
import { logicalUri, requireOwnUris } from '../fields/logical_uri.ts';
import { removable } from '../fields/merge_patch.ts';
import { timeZone } from '../fields/time_zone.ts';
import { DEPARTMENTS, department as departmentName, ORGANIZATION_STATUSES, RISKS } from './schema.ts';

export const SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
export const WORDS = 'must be lower-case letters and digits, joined by single hyphens';
// Room above it for the raises that changes bring, until the column's four bytes are full.
const EPOCH_MAX = 2_000_000_000;

export function unique<T extends z.ZodType<string>>(item: T, max: number) {
  return z
    .array(item)
    .max(max)
    .refine((list) => new Set(list).size === list.length, 'names an entry twice');
}

const domain = z
  .string()
  .max(253)
  .pipe(mapping((text) => domainToASCII(text)))
  .refine((text) => /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/.test(text), 'must be a domain name')
  .meta({ description: 'A domain name; its subdomains are included.' });

const department = { enabled: z.boolean() };
const limits = {
  maxConcurrentRuns: z.int().min(1).max(10_000).describe('Default 5.'),
  maxDailyActions: z.int().min(0).max(1_000_000).describe('Default 100.'),
  maxTaskDepth: z.int().min(0).max(100).describe('Default 5.'),
  maxPlanOperations: z.int().min(1).max(1_000).describe('Default 50.'),
  maxInitiativeDescendants: z.int().min(1).max(100_000).describe('Default 200.'),
};
const constraints = {
  allowedIntegrations: unique(z.string().max(100).regex(SLUG, WORDS), 500),
  blockedDomains: unique(domain, 1_000),
  approvalRequiredForRisk: unique(z.enum(RISKS), RISKS.length),
};

const fields = {
  slug: z.string().max(63).regex(SLUG, WORDS),
  name: z.string().trim().min(1).max(200),
  status: z.enum(ORGANIZATION_STATUSES),
  onboardedAt: instant.nullable(),
  rootUri: logicalUri,
  authorizationEpoch: z.int().min(1).max(EPOCH_MAX),
};

const newDepartment = z.strictObject(department).optional();

/** Body of the create: slug and name, the rest over the defaults. */
export const newOrganizationSchema = z
  .strictObject({
    ...z.object(fields).partial({ status: true, onboardedAt: true, rootUri: true, authorizationEpoch: true }).shape,
    config: z
      .strictObject({
        timezone: timeZone.optional(),
        departments: z
          .strictObject({ growth: newDepartment, engineering: newDepartment, support: newDepartment })
          .optional(),
        limits: z.strictObject(limits).partial().optional(),
        storageRootUri: logicalUri.optional(),
      })
      .optional(),
    constraints: z.strictObject(constraints).partial().optional(),
    provision: z
      .union([z.boolean(), z.strictObject({ departments: unique(departmentName, DEPARTMENTS.length) })])
      .optional()
      .describe(
        'Makes the agent profiles of the current template catalog: operator, chat, and the departments that are named, or with `true` those that are enabled. Default: no profiles.',
      ),
  })
  .meta({ id: 'NewOrganization' });

const changedDepartment = z.strictObject(removable(department));

/** Body of the update, a JSON merge patch. */
export const organizationPatchSchema = z
  .strictObject({
    ...z.object({ ...fields, rootUri: logicalUri.nullable() }).partial().shape,
    ...removable({
      config: z.strictObject(
        removable({
          timezone: timeZone,
          departments: z.strictObject(
            removable({ growth: changedDepartment, engineering: changedDepartment, support: changedDepartment }),
          ),
          limits: z.strictObject(removable(limits)),
          storageRootUri: logicalUri,
        }),
      ),
      constraints: z.strictObject(removable(constraints)),
    }),
  })
  .meta({ id: 'OrganizationPatch', description: 'A JSON merge patch (RFC 7396): null restores a default.' });

/** @throws Problem 400 for logical URIs of another organization */
export function requireOrganizationUris(
  organizationId: string,
  body: z.output<typeof newOrganizationSchema> | z.output<typeof organizationPatchSchema>,
): void {
  requireOwnUris(organizationId, { rootUri: body.rootUri, 'config.storageRootUri': body.config?.storageRootUri });
}

/** Whether a patch says what agents may do outside: without a person's approval, where, and how often. */
export function changesActions({ config, constraints: changed }: z.output<typeof organizationPatchSchema>): boolean {
  const limits = config === null ? null : config?.limits;
  return changed !== undefined || limits === null || limits?.maxDailyActions !== undefined;
}

/** Body of both work-dispatch endpoints. */
export const workDispatchBody = z
  .strictObject({ stopped: z.boolean().describe('True stops work dispatch, false resumes it.') })
  .meta({ id: 'WorkDispatch' });
