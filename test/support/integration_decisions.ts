import { isAuthorized } from '../../engine/integrations/index.ts';
import { type Provider, providers } from '../../engine/providers/index.ts';
import { sha256, type TestOrganization } from './fixtures.ts';
import { account, connect, createIntegration } from './integration_fixtures.ts';
import { type Sql, transition } from './transitions.ts';

/** The decisions on integrations for the test of the audit log: each call, ready to be made, and what its entry says. */
export function integrationDecisions(
  sql: Sql,
  org: () => Promise<TestOrganization & { base: string }>,
  /** An MCP server that asks for an authorization. */
  servers: Readonly<{ mcp: string }>,
) {
  const one =
    (action: string, rest: string, body?: object, entry: Readonly<Record<string, unknown>> = {}) =>
    async () => {
      const at = await org();
      const { id, key } = await createIntegration(sql, at);
      return {
        organizationId: at.organizationId,
        path: `${at.base}/integrations/${key}${rest}`,
        body,
        entry: {
          action: `integration.${action}`,
          subject_kind: 'integration',
          subject_id: id,
          arguments: { integrationRef: key, ...body },
          ...entry,
        },
      };
    };
  /** Begun and revoked; what stands at the provider does not count. */
  function oauth({ key: provider, services, settings }: Provider) {
    const body =
      services.length === 0 ? { replaceAccount: true } : { accessMode: 'read_only', enabledTools: ['gmail'] };
    const name = provider.replace(/(?:^|-)(.)/g, (_all, letter: string) => letter.toUpperCase());
    const call = (action: string, rest: string, given: object | undefined) => async () => {
      const at = await org();
      const { id, key } = await createIntegration(sql, at, { provider, tools: [] });
      if (settings?.beforeConnection) {
        const connectionRevision = 0;
        const put = { kind: 'mcp', serverUrl: servers.mcp };
        const args = {
          organizationId: at.organizationId,
          integrationRef: id,
          settings: put,
          disconnect: false,
          forgetTools: false,
        };
        await transition(sql.api, 'integration_settings_put', { ...args, connectionRevision });
      }
      if (given === undefined) await connect(sql.api, at, id, account('anna', { grantHash: sha256(id) }));
      return {
        organizationId: at.organizationId,
        path: `${at.base}/integrations/${key}/oauth/${provider}/${rest}`,
        body: given,
        entry: {
          action: `integration.${action}`,
          subject_kind: 'integration',
          subject_id: id,
          arguments: { integrationRef: key, ...given },
        },
      };
    };
    return [
      [`start${name}Authorization`, call('authorize', 'start', body)],
      [`revoke${name}Grant`, call('revoke_grant', 'grant', undefined)],
    ] as const;
  }
  const repair = { subject_kind: 'integration_repair', subject_id: String };
  return {
    async createIntegration() {
      const { organizationId, base } = await org();
      const body = { key: 'payments', provider: 'stripe' };
      const entry = { action: 'integration.create', subject_kind: 'integration', subject_id: String, arguments: body };
      return { organizationId, path: `${base}/integrations`, body, entry };
    },
    updateIntegration: one('update', '', { name: 'Renamed' }),
    deleteIntegration: one('delete', ''),
    putIntegrationSettings: one('configure', '/settings', { settings: { kind: 'stripe' } }),
    putIntegrationCredential: one(
      'connect',
      '/credential',
      { kind: 'api_key', apiKey: 'rk_test_Not' },
      // Nothing of the credential itself.
      { arguments: { kind: 'api_key', apiKey: undefined } },
    ),
    disconnectIntegration: one('disconnect', '/credential'),
    setIntegrationStatus: one('disable', '/status', { status: 'disabled' }),
    putIntegrationTools: one('select_tools', '/tools', { tools: ['items.list'] }),
    mapIntegrationContext: one('map_context', '/context-mapping', { role: 'primary' }, repair),
    ...Object.fromEntries([...providers.values()].filter(isAuthorized).flatMap(oauth)),
  };
}
