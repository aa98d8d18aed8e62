// Units of collecting as tests work with them, made through the transitions with the rights of the jobs.
import { z } from 'zod';
import type { TestOrganization } from './fixtures.ts';
import { account, connect, createIntegration, sealed } from './integration_fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

export const DATASET = 'stripe.balance_tx';
export const MODES = [
  { mode: 'tail', dueInSeconds: 0 },
  { mode: 'backfill', dueInSeconds: 0 },
];
/** Of one dataset. */
export const adapters = (adapter = 1, schema = 1, modes: readonly JsonObject[] = MODES) => {
  return { stripe: { [DATASET]: { adapter, schema, modes } } };
};

const unitSchema = z.looseObject({
  id: z.string(),
  fence: z.int(),
  mode: z.string(),
  source: z.looseObject({ id: z.string(), timezone: z.string(), coverage: z.array(z.unknown()) }).nullable(),
  cursor: z.unknown(),
});
export type UnitRow = z.output<typeof unitSchema> & Readonly<{ organizationId: string; integrationId: string }>;
const claimSchema = z.looseObject({ claimed: z.boolean(), reason: z.string().optional(), unit: unitSchema.optional() });

export type Place = Readonly<{ organizationId: string; integrationId: string }>;

export async function claim(
  connection: Connection,
  { organizationId, integrationId }: Place,
  options: Readonly<{ adapters?: JsonObject; active?: number; seconds?: number }> = {},
): Promise<UnitRow | string> {
  const given = {
    adapters: options.adapters ?? adapters(),
    active: options.active ?? 2,
    seconds: options.seconds ?? 60,
  };
  const result = await transition(connection, 'insight_unit_claim', { organizationId, integrationId, ...given });
  const { unit, reason } = claimSchema.parse(result);
  return unit ? { ...unit, organizationId, integrationId } : String(reason);
}

export async function claimed(...args: Parameters<typeof claim>): Promise<UnitRow> {
  const unit = await claim(...args);
  if (typeof unit === 'string') throw new Error(`nothing was claimed: ${unit}`);
  return unit;
}

export const leaseOf = ({ organizationId, id, fence }: UnitRow) => ({ organizationId, unitId: id, fence });

/** A source as its provider tells of it. */
export function found(resourceId: string, fields: JsonObject = {}) {
  return {
    dataset: DATASET,
    resourceId,
    environment: 'live',
    timezone: null,
    adapter: 1,
    schema: 1,
    modes: MODES,
    ...fields,
  };
}

export function putSources(
  connection: Connection,
  unit: UnitRow,
  sources: readonly JsonObject[],
  nextSeconds = 86_400,
) {
  return transition(connection, 'insight_sources_put', { ...leaseOf(unit), sources, nextSeconds });
}

let files = 0;
/** A file that was stored for a unit. */
export function segment(month = '2026-01', fields: JsonObject = {}) {
  files += 1;
  const at = `${month}-15T00:00:00Z`;
  const size = { rowCount: 1, sizeBytes: 100, sha256: 'a'.repeat(64) };
  return {
    month,
    objectKey: `organizations/o/insights/${files}`,
    ...size,
    minAt: at,
    maxAt: at,
    staged: false,
    ...fields,
  };
}

export function commit(connection: Connection, unit: UnitRow, result: JsonObject = {}) {
  const nothing = { pages: 1, records: 1, bytes: 10, changed: 1, cursor: null, round: null, done: false };
  const none = { nextDueAt: null, coverage: [], segments: [], publishStaged: false, dropStaged: false };
  return transition(connection, 'insight_unit_commit', {
    ...leaseOf(unit),
    result: { ...nothing, ...none, ...result },
  });
}

export function fail(connection: Connection, unit: UnitRow, error: JsonObject = {}, more: JsonObject = {}) {
  const { retryNotBefore = null, restart = null } = more as {
    retryNotBefore?: string | null;
    restart?: JsonObject | null;
  };
  const given = { code: 'provider_unavailable', message: 'down', ...error };
  return transition(connection, 'insight_unit_fail', { ...leaseOf(unit), error: given, retryNotBefore, restart });
}

/** A connector: an integration that is connected, and due. */
export async function createConnector(sql: Pick<Sql, 'api'>, org: TestOrganization, name = 'acme'): Promise<Place> {
  const { id } = await createIntegration(sql, org, { provider: 'stripe' });
  await connect(sql.api, org, id, account(name));
  return { organizationId: org.organizationId, integrationId: id };
}

/** One with a source, of which all is due. */
export async function createCollected(sql: Pick<Sql, 'api' | 'jobs'>, org: TestOrganization, ...resources: string[]) {
  const place = await createConnector(sql, org);
  const discovery = await claimed(sql.jobs, place);
  await putSources(
    sql.jobs,
    discovery,
    (resources.length > 0 ? resources : ['r1']).map((id) => found(id)),
  );
  return place;
}

/** The lease of whatever a connector has leased is over. */
export async function endLease(sql: Pick<Sql, 'owner'>, { integrationId }: Place): Promise<void> {
  await sql.owner.query(
    `update app.insight_connectors set lease_expires_at = now() - interval '1 second', due_at = now() - interval '1 second'
     where integration_id = $1`,
    [integrationId],
  );
}

/** All that waits is due. */
export async function passTime(sql: Pick<Sql, 'owner'>, { integrationId }: Place): Promise<void> {
  await sql.owner.query(
    `update app.insight_cursors set due_at = now() where due_at is not null and source_id in
       (select id from app.insight_sources where integration_id = $1)`,
    [integrationId],
  );
  await sql.owner.query(
    `update app.insight_connectors set due_at = now(), retry_not_before = null,
       discovery_due_at = case when failure_count > 0 then now() else discovery_due_at end where integration_id = $1`,
    [integrationId],
  );
}

/** Rows of every table of insights. */
export async function createInsightRows(sql: Pick<Sql, 'api' | 'jobs'>, org: TestOrganization): Promise<void> {
  const place = await createCollected(sql, org);
  const unit = await claimed(sql.jobs, place);
  await commit(sql.jobs, unit, { segments: [segment(), segment()] });
  await transition(sql.jobs, 'insight_compaction_claim', {
    organizationId: org.organizationId,
    sourceId: unit.source?.id ?? '',
    month: '2026-01',
    adapters: adapters(),
    limits: { segments: 2, files: 2, bytes: 1_000, rows: 10 },
    seconds: 60,
  });
  const { keyId, wrappedKey, ciphertext } = sealed('pseudonym_key');
  const { organizationId } = org;
  await transition(sql.jobs, 'insight_pseudonym_key_read', {
    organizationId,
    sealed: { keyId, wrappedKey, ciphertext },
  });
}
