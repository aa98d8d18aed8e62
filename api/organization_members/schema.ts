import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';

export const MEMBER_ROLES = ['owner', 'viewer'] as const;

/** A subject of owner tokens, `{sub}` in a path: the identity provider's text. */
export const subject = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\x00-\x1f\x7f]+$/, 'must not hold control characters')
  .describe('The `sub` of the member’s tokens.');

/** A person of the organization in OWNER_AUTH=jwt (design/decisions.md 1). */
export const memberSchema = z
  .object({
    organizationId: z.string(),
    subject: z.string(),
    role: z.enum(MEMBER_ROLES).describe('Viewers read only.'),
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

export const memberAnswer = z.object({ member: memberRow });
export const memberPageRow = z.object({ member: memberRow, ...keyColumns });

export const memberExample = {
  organizationId: '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e',
  subject: 'auth0|64fe1c0a9b',
  role: 'viewer',
  createdAt: '2026-01-31T09:30:00.000Z',
  updatedAt: '2026-01-31T09:30:00.000Z',
} satisfies Member;
