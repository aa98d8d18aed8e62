import type { TestOrganization } from './fixtures.ts';
import { createIntegration } from './integration_fixtures.ts';
import type { Sql } from './transitions.ts';

/** The decisions on integrations for the test of the audit log: each call, ready to be made, and what its entry says. */
export function integrationDecisions(sql: Sql, org: () => Promise<TestOrganization & { base: string }>) {
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
    setIntegrationStatus: one('disable', '/status', { status: 'disabled' }),
    putIntegrationTools: one('select_tools', '/tools', { tools: ['items.list'] }),
    mapIntegrationContext: one('map_context', '/context-mapping', { role: 'primary' }, repair),
  };
}
