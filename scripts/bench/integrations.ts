import type pg from 'pg';
import { client } from './http_lifecycle.ts';
import { rate } from './measure.ts';

const TOOLS = 5;

/** Connected integrations with five tools each, as rows. */
export async function seedIntegrations(db: pg.Pool, organizationId: string, count: number): Promise<void> {
  await db.query(
    `insert into app.integrations (organization_id, key, provider, name, settings_required, connection_revision)
     select $1, 'i-' || lpad(n::text, 6, '0'), 'stripe', 'Shop', false, 1 from generate_series(1, $2::integer) n`,
    [organizationId, count],
  );
  await db.query(
    `insert into app.integration_connections (organization_id, integration_id, kind, account_label, subject_hash,
       connected_at, check_due_at)
     select organization_id, id, 'api_key', 'acme', repeat('0', 64), now(), now() + interval '1 day'
     from app.integrations where organization_id = $1`,
    [organizationId],
  );
  await db.query(
    `insert into app.integration_tools (organization_id, integration_id, key, place, title, effect, risk, input_schema,
       digest, enabled)
     select i.organization_id, i.id, 'tool.' || n, n, 'Tool', 'read', 'low', '{"type": "object"}', repeat('0', 64), true
     from app.integrations i, generate_series(1, $2::integer) n where i.organization_id = $1`,
    [organizationId, TOOLS],
  );
}

/** First pages of ten integrations a second, over HTTP. */
export async function measureIntegrations(url: string, organizationId: string, seconds: number): Promise<number> {
  const { get, close } = client(url, 8);
  const path = `/organizations/${organizationId}/integrations?limit=10`;
  const perSecond = await rate(8, seconds, async () => {
    const { status } = await get(path, undefined);
    if (status !== 200) throw new Error(`${path}: ${status}`);
    return 1;
  });
  close();
  return perSecond;
}
