import type { Request } from 'express';
import { z } from 'zod';
import { tokenMatcher } from '../../../engine/bearer.ts';
import type { Config } from '../../../engine/config.ts';
import { call, type Queries } from '../../../engine/db/call.ts';
import { Problem } from '../../../engine/db/problem.ts';
import { type AgentCaller, actorSchema, type GatewayCaller, type ServiceCaller } from '../caller.ts';
import { bearerToken, sha256Hex } from './bearer.ts';

const unauthorized = (message: string) => new Problem(401, 'agent_unauthorized', message);

const capabilityFormat = /^[0-9a-f]{64}$/;
const organizationFormat = z.guid();

export type InternalAuthentication = Readonly<{
  worker(req: Request): ServiceCaller;
  agent(req: Request, queries: Queries, organizationId: string | undefined): Promise<AgentCaller>;
  /** `byPassword`: the capability may also come as the password of basic authentication, as programs like git send it. */
  gateway(req: Request, queries: Queries, byPassword: boolean): Promise<GatewayCaller>;
}>;

const foundSchema = z.object({ organizationId: z.string().optional() });
/** What a program that asks its user for a password understands. */
const ASK_PASSWORD = { 'WWW-Authenticate': 'Basic realm="business-runner", charset="UTF-8"' };

function passwordOf(req: Request): string | undefined {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/=]{1,1000}) *$/i.exec(req.get('authorization') ?? '') ?? [];
  return Buffer.from(encoded, 'base64').toString('latin1').split(':')[1];
}

/** Service tokens for workers; service tokens or execution capabilities for agents (docs/interface.md 5.2 and 5.3). */
export function internalAuthentication(config: Config): InternalAuthentication {
  const isService = tokenMatcher(config.agentServiceTokens);

  function worker(req: Request): ServiceCaller {
    const token = bearerToken(req);
    if (token === undefined) throw unauthorized('A bearer token is required.');
    if (!isService(token)) throw unauthorized('The bearer token is not a service token.');
    return { kind: 'service' };
  }

  async function agent(req: Request, queries: Queries, organizationId: string | undefined): Promise<AgentCaller> {
    const token = bearerToken(req);
    if (token === undefined) throw unauthorized('A bearer token is required.');
    if (isService(token)) return { kind: 'service' };
    // A capability lives in one organization: outside it, and for ids that none has, it is unknown.
    const organization = organizationFormat.safeParse(organizationId);
    if (!organization.success || !capabilityFormat.test(token)) throw unauthorized('The bearer token is not valid.');
    const tokenHash = sha256Hex(token);
    const { actor } = await call(
      queries,
      'capability_check',
      { organizationId: organization.data, tokenHash },
      z.object({ actor: actorSchema }),
    );
    return { kind: 'capability', tokenHash, actor };
  }

  async function gateway(req: Request, queries: Queries, byPassword: boolean): Promise<GatewayCaller> {
    const token = bearerToken(req) ?? (byPassword ? passwordOf(req) : undefined);
    const refuse = (message: string) =>
      new Problem(401, 'agent_unauthorized', message, undefined, byPassword ? ASK_PASSWORD : undefined);
    if (token === undefined) throw refuse('A gateway capability is required.');
    if (!capabilityFormat.test(token)) throw refuse('The gateway capability is not valid.');
    const tokenHash = sha256Hex(token);
    const { organizationId } = await call(queries, 'integration_capability_find', { tokenHash }, foundSchema);
    if (organizationId === undefined) throw refuse('The gateway capability is not valid.');
    return { kind: 'gateway', organizationId, tokenHash };
  }

  return { worker, agent, gateway };
}
