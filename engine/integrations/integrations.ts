import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { sql } from 'slonik';
import { z } from 'zod';
import type { Config } from '../config.ts';
import type { Database } from '../db/database.ts';
import { Problem } from '../db/problem.ts';
import { scoped } from '../db/scope.ts';
import {
  callObserver,
  createProviderClient,
  type ProviderClient,
  type ProviderClientOptions,
  withoutDomains,
} from '../providers/outgoing/index.ts';
import { sharedBudgets } from '../rate_limits/budgets.ts';

/** What works with connections needs: made once a process, by the API and by the jobs. */
export type Integrations = Readonly<{
  db: Database;
  settings: Config['integrations'];
  /** The one client of this process. What an organization sends goes through `organizationClient`. */
  client: ProviderClient;
  log: Logger;
  /** Refreshes under way in this process, by connection and version of its tokens: whoever needs one too waits for it. */
  refreshes: Map<string, Promise<void>>;
  close(): Promise<void>;
}>;

export type IntegrationsOptions = Readonly<{
  config: Pick<Config, 'integrations' | 'allowPrivateAddresses'>;
  db: Database;
  registry: Registry;
  log: Logger;
  /** Of a test: the guard's own view of the network. */
  net?: ProviderClientOptions['net'];
}>;

export function openIntegrations({ config, db, registry, log, net }: IntegrationsOptions): Integrations {
  const { integrations: settings, allowPrivateAddresses } = config;
  const client = createProviderClient({
    allowPrivateAddresses,
    origins: settings.providerOrigins,
    budgets: sharedBudgets(db),
    observe: callObserver(registry, log),
    ...(net ? { net } : {}),
  });
  return { db, settings, client, log, refreshes: new Map(), close: () => client.close() };
}

const constraintsRow = z.object({ domains: z.array(z.string()).nullable(), allowed: z.array(z.string()).nullable() });

/**
 * The client for what an organization sends: nothing goes to a domain that it blocks, or to a provider that it does not allow.
 * @throws Problem 403 `provider_forbidden`
 */
export async function organizationClient(
  { db, client }: Pick<Integrations, 'db' | 'client'>,
  organizationId: string,
  provider?: string,
): Promise<ProviderClient> {
  const row = await db.of(organizationId).maybeOne(
    scoped(
      organizationId,
      constraintsRow,
      sql.fragment`
        select o.constraints -> 'blockedDomains' as domains, o.constraints -> 'allowedIntegrations' as allowed
        from app.organizations o where o.id = scope.organization_id`,
    ),
  );
  const { domains, allowed } = row ?? {};
  if (provider !== undefined && allowed?.length && !allowed.includes(provider)) {
    throw new Problem(403, 'provider_forbidden', 'The organization does not allow this provider', [
      { path: 'provider', code: 'not_allowed', message: 'is not among constraints.allowedIntegrations' },
    ]);
  }
  return domains?.length ? withoutDomains(client, domains) : client;
}
