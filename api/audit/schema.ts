import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';

export const ACTOR_KINDS = ['owner', 'operator', 'admin'] as const;
const OUTCOMES = ['done', 'refused'] as const;

export const auditEntrySchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    createdAt: dateTime.describe('When the decision was carried out.'),
    actor: z
      .object({
        kind: z
          .enum(ACTOR_KINDS)
          .describe('A member of the organization, a platform operator through this API, or an administrator.'),
        name: z
          .string()
          .describe(
            'The subject of a member; how an operator was let in (token, open); the name of an administrator’s token.',
          ),
      })
      .describe('Who decided.'),
    action: z.string().describe('What was decided, as noun.verb.'),
    subject: z
      .object({ kind: z.string(), id: z.string().nullable() })
      .describe('What it was decided about; no id where it was never made.'),
    arguments: z
      .record(z.string(), z.json())
      .describe('What the decision was called with: long texts cut, values that are named like secrets left out.'),
    outcome: z.enum(OUTCOMES).describe('refused: a transition changed something and refused all the same.'),
    code: z.string().nullable().describe('The code of the refusal.'),
    result: z.record(z.string(), z.json()).describe('What it led to, in short, where that is not seen elsewhere.'),
    requestId: z.string().nullable().describe('`meta.requestId` of the answer.'),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.output<typeof auditEntrySchema>;

const values = z.record(z.string(), z.json());

/** A row of `app.audit_entries`, as `to_jsonb` writes it. */
const auditEntryRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    created_at: timestamp,
    actor_kind: z.enum(ACTOR_KINDS),
    actor: z.string(),
    action: z.string(),
    subject_kind: z.string(),
    subject_id: z.string().nullable(),
    arguments: values,
    outcome: z.enum(OUTCOMES),
    code: z.string().nullable(),
    result: values,
    request_id: z.string().nullable(),
  })
  .pipe(
    mapping(
      (row): AuditEntry => ({
        id: row.id,
        organizationId: row.organization_id,
        createdAt: row.created_at,
        actor: { kind: row.actor_kind, name: row.actor },
        action: row.action,
        subject: { kind: row.subject_kind, id: row.subject_id },
        arguments: row.arguments,
        outcome: row.outcome,
        code: row.code,
        result: row.result,
        requestId: row.request_id,
      }),
    ),
  );
export const auditEntryPageRow = z.object({ entry: auditEntryRow, ...keyColumns });

export const auditEntryExample = {
  id: '0199f2f9-6b1e-7d20-8c4f-1a2b3c4d5e6f',
  organizationId: '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e',
  createdAt: '2026-01-31T10:05:00.000Z',
  actor: { kind: 'owner', name: 'auth0|anna' },
  action: 'task.cancel',
  subject: { kind: 'task', id: '0199f2f7-5b2e-7f43-9c1d-0a8e4d6b7c21' },
  arguments: { taskRef: 'T-12' },
  outcome: 'done',
  code: null,
  result: {},
  requestId: '6a1f0c9e-5b1b-4d0c-9a53-0f3c4f1f7a11',
} satisfies AuditEntry;
