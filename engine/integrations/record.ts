import { z } from 'zod';
import { canonicalSha256 } from '../canonical_json.ts';
import { call } from '../db/call.ts';
import { INTEGRATION_STATUSES, READINESSES } from '../integration_states.ts';
import { type Provider, providers, type Tool } from '../providers/index.ts';
import { shownText, visibleText } from '../providers/texts.ts';
import type { Integrations } from './integrations.ts';
import { notReady } from './problems.ts';
import { providerOf } from './stored.ts';

/** What of an integration's row matters here; transitions return all of it. */
export const recordSchema = z.looseObject({
  id: z.uuid(),
  key: z.string(),
  provider: z.string(),
  status: z.enum(INTEGRATION_STATUSES),
  readiness: z.enum(READINESSES),
  settings: z.record(z.string(), z.unknown()).nullable(),
  connection_revision: z.int(),
});
export type IntegrationRecord = z.output<typeof recordSchema>;

export const recordResult = z.looseObject({ integration: recordSchema });

export type IntegrationRef = Readonly<{ organizationId: string; integrationRef: string }>;
/** An integration as it was read, with its provider: what is done next is done to this revision of its connection. */
export type ReadIntegration = Readonly<{ organizationId: string; record: IntegrationRecord; provider: Provider }>;

/** @throws Problem 404, 409 */
export async function readIntegration(
  { db }: Pick<Integrations, 'db'>,
  { organizationId, integrationRef }: IntegrationRef,
): Promise<ReadIntegration> {
  const args = { organizationId, integrationRef };
  const { integration: record } = await call(db.of(organizationId), 'integration_read', args, recordResult);
  return { organizationId, record, provider: providerOf(record.provider) };
}

export function targetOf({ organizationId, record }: ReadIntegration) {
  return { organizationId, integrationId: record.id, revision: record.connection_revision };
}

/** @throws Problem 409 where settings are missing that have to be there before the connection */
export function requireSettings({ provider, record }: ReadIntegration): void {
  if (provider.settings?.beforeConnection === true && record.settings === null) {
    throw notReady('settings', 'needs_configuration', 'put the settings first: they say what is connected');
  }
}

const MAX_DESCRIPTION = 4_000;

/** By characters: half of a pair is nothing that Postgres takes. */
function cut(text: string, length: number): string {
  return text.length <= length ? text : [...text.slice(0, 2 * length)].slice(0, length).join('');
}

/** Of one of ours a better wording is the same tool; of a server's own nobody can tell. */
function digestOf({ key, effect, risk, scopes, inputSchema, digest }: Tool): string {
  return digest ?? canonicalSha256({ key, effect, risk, scopes, inputSchema });
}

/** Tools as they are stored (`integration_tools_write`). */
export function toolRows(tools: readonly Tool[]) {
  return tools.map((tool) => ({
    key: tool.key,
    title: shownText(tool.title) || tool.key,
    description: cut(visibleText(tool.description), MAX_DESCRIPTION),
    effect: tool.effect,
    risk: tool.risk,
    requiredScopes: tool.scopes,
    inputSchema: tool.inputSchema,
    digest: digestOf(tool),
  }));
}

/** What a provider says of a new integration, for `integration_create`. */
export function newIntegrationFacts(providerKey: string) {
  const provider = providers.get(providerKey);
  if (!provider) throw new TypeError(`there is no provider ${providerKey}`);
  return {
    provider: provider.key,
    name: provider.title,
    settingsRequired: provider.settings?.required === true,
    hosts: (provider.origins ?? []).map((origin) => new URL(origin).hostname),
    tools: toolRows(provider.tools),
  };
}
