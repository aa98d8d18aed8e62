import { z } from 'zod';

/** Who may call an endpoint; it decides the credentials, the error codes and the log fields. */
export type Audience = 'owner' | 'agent' | 'gateway' | 'worker' | 'admin' | 'public';

export type OwnerCaller = Readonly<{
  kind: 'owner';
  mode: 'open' | 'token' | 'jwt';
  /** The `sub` of the token; null for platform operators. */
  subject: string | null;
  /** True for open and token mode: sees and changes every organization. */
  platform: boolean;
  /** SHA-256 of the bearer token in token mode, in hex: identifies the operator. */
  tokenHash?: string;
  /** When the token ends, in milliseconds since 1970; a request that outlasts its check has to look at it again. */
  expiresAt?: number;
}>;

export type ServiceCaller = Readonly<{ kind: 'service' }>;

/** What `app.capability_check` returns about a valid execution capability. */
export const actorSchema = z.object({
  organizationId: z.string(),
  agentProfileId: z.string(),
  profileKind: z.string(),
  runId: z.string().nullable(),
  taskId: z.string().nullable(),
  chatId: z.string().nullable(),
  mode: z.string().nullable(),
});
export type Actor = z.output<typeof actorSchema>;

export type CapabilityCaller = Readonly<{
  kind: 'capability';
  /** SHA-256 of the bearer token, in hex: transitions check it again under their locks. */
  tokenHash: string;
  actor: Actor;
}>;

/** An execution that calls the gateway; what its capability is good for is checked by the transition. */
export type GatewayCaller = Readonly<{
  kind: 'gateway';
  organizationId: string;
  /** SHA-256 of the capability, in hex. */
  tokenHash: string;
}>;

export type AgentCaller = ServiceCaller | CapabilityCaller;
/** `name` is that of the token, for the audit log. */
export type AdminCaller = Readonly<{ kind: 'admin'; name: string }>;
export type PublicCaller = Readonly<{ kind: 'public' }>;
export type Caller = OwnerCaller | AgentCaller | GatewayCaller | AdminCaller | PublicCaller;

/** Identifies an owner across organizations. Undefined for other callers, and in open mode, which has one owner. */
export function ownerName(caller: Caller): string | undefined {
  if (caller.kind !== 'owner') return undefined;
  return caller.subject === null ? caller.tokenHash : `subject:${caller.subject}`;
}

export type CallerOf<A extends Audience> = {
  owner: OwnerCaller;
  agent: AgentCaller;
  gateway: GatewayCaller;
  worker: ServiceCaller;
  admin: AdminCaller;
  public: PublicCaller;
}[A];
