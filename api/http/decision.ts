import type { Decision } from '../../engine/db/decision.ts';
import type { Caller } from './caller.ts';
import { decisionArguments } from './decision_arguments.ts';

/** What people and administrators decide; the name of a decision never changes. Those that only administrators take last. */
export const AUDIT_ACTIONS = [
  'organization.create',
  'organization.update',
  'organization.delete',
  'dispatch.stop',
  'dispatch.resume',
  'member.put',
  'member.delete',
  'onboarding.create',
  'onboarding.setup',
  'onboarding.disposition',
  'onboarding.start',
  'onboarding.retry',
  'onboarding.complete',
  'onboarding.discard',
  'agent_profile.create',
  'agent_profile.update',
  'agent_profile.delete',
  'agent_profile.provision',
  'task.create',
  'task.cancel',
  'task.retry',
  'dependency.delete',
  'schedule.create',
  'schedule.update',
  'schedule.delete',
  'schedule.pause',
  'schedule.resume',
  'integration.create',
  'integration.update',
  'integration.delete',
  'integration.enable',
  'integration.disable',
  'integration.connect',
  'integration.disconnect',
  'integration.authorize',
  'integration.revoke_grant',
  'integration.configure',
  'integration.select_tools',
  'integration.map_context',
  'inbox_item.respond',
  'inbox_item.acknowledge',
  'approval.decide',
  'action.approve',
  'action.reject',
  'action.reconcile',
  'organization.suspend',
  'organization.reactivate',
  'lease.expire',
  'run_request.requeue',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** How an owner's call is written into the audit log, by the transition that it calls (`call` with `decision`). */
export type DecisionDefinition<P, B> = Readonly<{
  action: AuditAction | ((body: B) => AuditAction);
  /** What kind of thing is decided about. */
  subject: string;
  /** Where the transition's result names it. Without one it is the organization. */
  id?: readonly string[];
  /** Default: the path's parameters and the body. Undefined: this call decides nothing. */
  arguments?: (body: B, params: P) => Readonly<Record<string, unknown>> | undefined;
}>;

type Call = Readonly<{
  caller: Caller;
  organizationId: string | undefined;
  params: Readonly<Record<string, unknown>>;
  body: unknown;
  requestId: string;
}>;

/** The entry that a call leaves; none where it is no owner's, or decides nothing. */
export function decisionOf(
  definition: DecisionDefinition<never, never> | undefined,
  { caller, organizationId, params, body, requestId }: Call,
): Decision | undefined {
  if (definition === undefined || caller.kind !== 'owner') return undefined;
  const { action, subject, id } = definition as DecisionDefinition<unknown, unknown>;
  const { organizationId: _own, ...others } = params;
  const given = definition.arguments
    ? (definition as DecisionDefinition<unknown, unknown>).arguments?.(body, params)
    : { ...others, ...(body as object | undefined) };
  if (given === undefined) return undefined;
  return {
    organizationId,
    // A token is a secret and has no name: how the caller was let in is all there is to tell.
    actorKind: caller.subject === null ? 'operator' : 'owner',
    actor: caller.subject ?? caller.mode,
    action: typeof action === 'function' ? action(body) : action,
    subject,
    id,
    arguments: decisionArguments(given),
    requestId,
  };
}
