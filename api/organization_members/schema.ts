import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { ids, times } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';

export const MEMBER_ROLES = ['owner', 'viewer'] as const;

/** A subject of owner tokens, `{sub}` in a path: the identity provider's text. */
export const subject = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\x00-\x1f\x7f]+$/, 'must not hold control characters')
  .describe('The `sub` claim in the tokens of the member.');

/** A person of the organization in OWNER_AUTH=jwt. */
export const memberSchema = z
  .object({
    organizationId: uuid,
    subject: z.string(),
    role: z.enum(MEMBER_ROLES).describe('`owner`: reads and writes. `viewer`: reads.'),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'OrganizationMember' });
export type Member = z.output<typeof memberSchema>;

const memberRow = z
  .object({
    organization_id: z.string(),
    subject: z.string(),
    role: z.enum(MEMBER_ROLES),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): Member => ({
        organizationId: row.organization_id,
        subject: row.subject,
        role: row.role,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

export const memberResult = z.object({ member: memberRow });
export const memberPageRow = z.object({ member: memberRow, ...keyColumns });

export const memberExample = {
  organizationId: ids.organization,
  subject: 'auth0|64f1b2c9e0a4',
  role: 'viewer',
  createdAt: times.onboarded,
  updatedAt: times.onboarded,
} satisfies Member;
