import { z } from 'zod';
import { type Answer, type Connection, type Sql, transition } from './transitions.ts';

export const PLATFORM = '00000000-0000-0000-0000-000000000000';
export const ADMIN = 'night-shift';

const entrySchema = z.object({
  organization_id: z.string(),
  id: z.string(),
  created_at: z.date(),
  actor_kind: z.string(),
  actor: z.string(),
  action: z.string(),
  subject_kind: z.string(),
  subject_id: z.string().nullable(),
  arguments: z.record(z.string(), z.unknown()),
  outcome: z.string(),
  code: z.string().nullable(),
  result: z.record(z.string(), z.unknown()),
  request_id: z.string().nullable(),
});
export type AuditEntry = z.output<typeof entrySchema>;

/** All entries of an organization, oldest first. */
export async function auditEntries(sql: Pick<Sql, 'owner'>, organizationId: string): Promise<AuditEntry[]> {
  const { rows } = await sql.owner.query(
    'select * from app.audit_entries where organization_id = $1 order by created_at, id',
    [organizationId],
  );
  return z.array(entrySchema).parse(rows);
}

/** A decision of an administrator: `app.admin_<name>`. */
export function adminDecides(
  connection: Connection,
  name: string,
  organizationId: string,
  args: Answer = {},
): Promise<Answer> {
  return transition(connection, `admin_${name}`, {
    p_organization_id: organizationId,
    ...args,
    p_admin: ADMIN,
    p_request_id: 'request-1',
  });
}

export type AppendFields = Readonly<{ action?: string; actorKind?: string; arguments?: Answer; answer?: Answer }>;

/** An entry as the API writes it, apart from any transition. */
export async function appendEntry(
  connection: Connection,
  organizationId: string,
  fields: AppendFields = {},
): Promise<string> {
  const { rows } = await connection.query(`select app.audit_append($1, $2, 'someone', $3, 'task', 'x', $4, $5) as id`, [
    organizationId,
    fields.actorKind ?? 'owner',
    fields.action ?? 'task.create',
    JSON.stringify(fields.arguments ?? {}),
    JSON.stringify(fields.answer ?? {}),
  ]);
  return z.string().parse(rows[0]?.['id']);
}
