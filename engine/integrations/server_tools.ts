import { call } from '../db/call.ts';
import type { Discovery, Tool } from '../providers/index.ts';
import { withoutCredential } from './credential_texts.ts';
import type { Integrations } from './integrations.ts';
import { recordResult, toolRows } from './record.ts';
import type { ConnectionTarget } from './stored.ts';

/** What there is, without the credential; without tools either whose name repeats it, as the server knows them by no other. */
export function shownDiscovery(found: Discovery, secrets: readonly string[]): Discovery {
  const discovery = withoutCredential(found, secrets);
  if (found.tools === undefined) return discovery;
  const keys = new Set(found.tools.map(({ key }) => key));
  return { ...discovery, tools: discovery.tools?.filter(({ key }) => keys.has(key)) ?? [] };
}

/**
 * Records how a look at a provider went. `tools`: what there is now, so that those that are new or changed are off; null: nobody knows.
 * @throws Problem 404, 409 `integration_conflict` where the connection is another one by now
 */
export async function recordDiscovery(
  { db }: Pick<Integrations, 'db'>,
  { organizationId, integrationId: integrationRef, revision: connectionRevision }: ConnectionTarget,
  discovery: Readonly<Record<string, unknown>>,
  tools: readonly Tool[] | null,
): Promise<typeof recordResult._output.integration> {
  const rows = tools && toolRows(tools);
  const args = { organizationId, integrationRef, connectionRevision, discovery, tools: rows };
  return (await call(db.of(organizationId), 'integration_discovery_record', args, recordResult)).integration;
}
