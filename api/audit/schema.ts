import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { ids, times } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';

export const ACTOR_KINDS = ['owner', 'operator', 'admin'] as const;
export const OUTCOMES = ['done', 'refused'] as const;

export const auditEntrySchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    createdAt: dateTime.describe('When the decision was carried out.'),
    actor: z
      .object({
        kind: z
          .enum(ACTOR_KINDS)
          .describe(
            '`owner`: a member of the organization. `operator`: a platform operator. `admin`: an administrator.',
          ),
        name: z
          .string()
          .describe(
            'For a member the subject, for an operator the way of authentication (`token`, `open`), for an administrator the name of the token.',
          ),
      })
      .describe('Who decided.'),
    action: z.string().describe('What was decided, as `noun.verb`.'),
    subject: z
      .object({ kind: z.string(), id: z.string().nullable() })
      .describe('What the decision was about. The id is null if it was not created.'),
    arguments: z
      .record(z.string(), z.json())
      .describe(
        'The arguments of the call. Long texts are cut, and values whose names look like secrets are left out.',
      ),
    outcome: z.enum(OUTCOMES).describe('`refused`: the call was refused, but changed something.'),
    code: z.string().nullable().describe('The error code of the refusal.'),
    result: z.record(z.string(), z.json()).describe('A short summary of the effects that are not visible elsewhere.'),
    requestId: z.string().nullable().describe('`meta.requestId` of the response.'),
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
  id: ids.auditEntry,
  organizationId: ids.organization,
  createdAt: times.finished,
  actor: { kind: 'owner', name: 'auth0|64f1b2c9e0a4' },
  action: 'task.cancel',
  subject: { kind: 'task', id: ids.task },
  arguments: { taskRef: 'T-12' },
  outcome: 'done',
  code: null,
  result: {},
  requestId: ids.request,
} satisfies AuditEntry;
