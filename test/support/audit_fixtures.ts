import { z } from 'zod';
import { functionQuery } from '../../engine/db/function_text.ts';
import type { ScalarFunctionName } from '../../engine/db/signatures.ts';
import { type Connection, fixtureTransition, type Given, type JsonObject, type Sql } from './transitions.ts';

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

type NameOf<F> = F extends `admin_${infer D}` ? D : never;
export type AdminDecision = Exclude<NameOf<ScalarFunctionName>, 'catalog_publish'>;
export type GivenToAdmin<D extends AdminDecision> = Given<`admin_${D}`, 'organizationId' | 'admin' | 'requestId'>;

/** A decision of an administrator: `admin_<name>`. */
export function adminDecides<D extends AdminDecision>(
  connection: Connection,
  name: D,
  organizationId: string,
  ...[args]: GivenToAdmin<D>
): Promise<JsonObject> {
  const who = { admin: ADMIN, requestId: 'request-1' };
  return fixtureTransition(connection, `admin_${name}`, { organizationId, ...args, ...who });
}

export type AppendFields = Readonly<{
  action?: string;
  actorKind?: string;
  arguments?: JsonObject;
  response?: JsonObject;
}>;

/** An entry as the API writes it, apart from any transition. */
export async function appendEntry(
  connection: Connection,
  organizationId: string,
  fields: AppendFields = {},
): Promise<string> {
  const { text, values } = functionQuery('audit_append', {
    organizationId,
    actorKind: fields.actorKind ?? 'owner',
    actor: 'someone',
    action: fields.action ?? 'task.create',
    subjectKind: 'task',
    subjectId: 'x',
    arguments: fields.arguments ?? {},
    response: fields.response ?? {},
  });
  const { rows } = await connection.query(text, values);
  return z.string().parse(rows[0]?.['result']);
}
