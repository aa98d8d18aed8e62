import { ownerApi } from './api.ts';
import { type Capabilities, capabilities } from './capabilities.ts';
import { CommandError, EXIT, usageError } from './errors.ts';
import type { Target, Values } from './options.ts';
import type { Output } from './output.ts';
import { isUuid } from './references.ts';
import type { Stop } from './stop.ts';

/** What a command of an agent works with. */
export type AgentContext = Readonly<{
  api: ReturnType<typeof ownerApi>;
  /** `/internal/agent/organizations/{id}` */
  home: string;
  capabilities: Capabilities;
  environment: NodeJS.ProcessEnv;
  output: Output;
  values: Values;
  stop: Stop;
}>;

/** Where an agent's calls go. @throws CommandError without an id of the organization: a run's token finds none by its slug. */
export function agentHome({ organization }: Target): string {
  if (organization !== undefined && isUuid(organization)) {
    return `/internal/agent/organizations/${organization.toLowerCase()}`;
  }
  throw usageError('BUSINESS_RUNNER_ORGANIZATION (or --org) has to be the id of the organization of the run');
}

/** @throws CommandError where nobody is an agent */
export function agentContext(
  name: string,
  target: Target,
  given: Pick<AgentContext, 'environment' | 'output' | 'values' | 'stop'>,
): AgentContext {
  const { token, isAgent } = target;
  if (!isAgent || token === undefined) {
    throw new CommandError(EXIT.forbidden, `${name} is for agents in a run: BUSINESS_RUNNER_TOKEN is not set`);
  }
  const { stop, environment } = given;
  const home = agentHome(target);
  const api = ownerApi({ url: target.url, token, as: 'agent' }, stop.signal);
  const folder = environment['BUSINESS_RUNNER_CACHE'] || undefined;
  return { ...given, api, home, capabilities: capabilities({ api, home, token, folder, signal: stop.signal }) };
}
