import { type FragmentSqlToken, sql } from 'slonik';
import { functionCall } from './function_call.ts';

/** A person's decision, as the audit log keeps it. */
export type Decision = Readonly<{
  /** Undefined: what `id` names, for an organization that is only being made. */
  organizationId: string | undefined;
  actorKind: 'owner' | 'operator';
  /** The subject of the token, or how the caller was let in. Never a secret. */
  actor: string;
  /** `noun.verb`. */
  action: string;
  /** What kind of thing is decided about. */
  subject: string;
  /** Where the transition's response names it; undefined: it is the organization. */
  id: readonly string[] | undefined;
  /** What the call said, in short; the database leaves out secrets, and all of it beyond 16 KiB. */
  arguments: Readonly<Record<string, unknown>>;
  requestId: string;
}>;

/** `audit_append` over `response`, the expression of the transition's response: it is evaluated after that. */
export function appendEntry(decision: Decision, response: FragmentSqlToken): FragmentSqlToken {
  const { organizationId, id } = decision;
  const named = id ? sql.fragment`${response} #>> ${sql.array([...id], 'text')}` : undefined;
  const organization =
    organizationId === undefined
      ? sql.fragment`(${named ?? sql.fragment`null`})::uuid`
      : sql.fragment`${organizationId}::uuid`;
  return functionCall('audit_append', {
    organizationId: organization,
    actorKind: decision.actorKind,
    actor: decision.actor,
    action: decision.action,
    subjectKind: decision.subject,
    subjectId: named ?? sql.fragment`${organization}::text`,
    arguments: decision.arguments,
    response,
    // What the person has seen of it, where the transition returns that.
    result: sql.fragment`${response} -> 'seen'`,
    requestId: decision.requestId,
  });
}
