import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createAnalyst, openReporting, rowsOf } from '../../support/analysts.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { insertRow } from '../../support/reporting_fixtures.ts';

const sql = await openReporting(t);
const analyst = await createAnalyst(t, sql, { all: true });
const rows = (org: TestOrganization, view: string, order: string) => rowsOf(analyst, org, view, order);
const at = (minute: number) => `2026-06-01T10:${String(minute).padStart(2, '0')}:00+00:00`;

t.test('integrations, without accounts, settings and credentials', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId: organization_id } = org;
  const unconnected = {
    provider: 'mongodb',
    status: 'enabled',
    readiness: 'not_connected',
    access_mode: 'read_only',
    connection_kind: null,
    connected_at: null,
    reauthorization_reason: null,
    reauthorization_at: null,
    degraded_at: null,
    degraded_code: null,
    checked_at: null,
    discovery_at: null,
    discovery_status: null,
    tools: 0,
    enabled_tools: 0,
    enabled_write_tools: 0,
    updated_at: at(9),
  };
  const fails = { ...unconnected, connection_kind: 'mongodb', connected_at: at(1) };
  const expected = [
    { ...unconnected, key: 'a', name: 'A' },
    { ...fails, key: 'b', name: 'B', readiness: 'needs_configuration', checked_at: at(2) },
    {
      ...fails,
      key: 'c',
      name: 'C',
      readiness: 'needs_reauthorization',
      reauthorization_reason: 'revoked',
      reauthorization_at: at(3),
    },
    { ...fails, key: 'd', name: 'D', readiness: 'degraded', degraded_at: at(4), degraded_code: 'provider_failed' },
    {
      ...fails,
      key: 'e',
      name: 'E',
      status: 'disabled',
      readiness: 'ready',
      access_mode: 'full',
      discovery_at: at(5),
      discovery_status: 'ok',
      tools: 3,
      enabled_tools: 2,
      enabled_write_tools: 1,
    },
  ].map((row, index) => ({ integration_id: randomUUID(), ...row, created_at: at(index) }));
  for (const row of expected) {
    const { integration_id, key, name, provider, status, access_mode, discovery_at, discovery_status } = row;
    await insertRow(sql, 'integrations', {
      organization_id,
      id: integration_id,
      ...{ key, name, provider, status, access_mode, discovery_at, discovery_status },
      settings_required: true,
      settings: key < 'c' ? null : { databaseName: 'sesame' },
      services: [],
      departments: [],
      connection_revision: 1,
      created_at: row.created_at,
      updated_at: row.updated_at,
    });
    if (row.connection_kind === null) continue;
    const { connected_at, reauthorization_reason, reauthorization_at, degraded_at, degraded_code, checked_at } = row;
    await insertRow(sql, 'integration_connections', {
      organization_id,
      integration_id,
      kind: row.connection_kind,
      ...{ connected_at, reauthorization_reason, reauthorization_at, degraded_at, degraded_code, checked_at },
      account_label: 'sesame',
      subject_hash: '0'.repeat(64),
      token_version: 1,
      check_due_at: at(0),
    });
  }
  const tools = [
    { key: 'find', effect: 'read', enabled: true, offered: true },
    { key: 'count', effect: 'read', enabled: false, offered: true },
    { key: 'insert', effect: 'write', enabled: true, offered: true },
    { key: 'gone', effect: 'write', enabled: false, offered: false },
  ];
  for (const [place, tool] of tools.entries()) {
    const shared = { title: 'T', description: '', risk: 'low', required_scopes: [], input_schema: {} };
    await insertRow(sql, 'integration_tools', {
      organization_id,
      integration_id: expected.at(-1)?.integration_id,
      place,
      ...shared,
      ...tool,
      digest: '0'.repeat(64),
    });
  }
  test.same(await rows(org, 'integrations', 'key'), expected);
});
