// What jobs have collected, as a query would read it.
import { z } from 'zod';
import { adapterOf } from '../../engine/insights/adapters.ts';
import { keepNewest, type StoredFact } from '../../engine/insights/facts.ts';
import { readMonth } from '../../engine/insights/segments/index.ts';
import { sealFields } from '../../engine/integrations/secrets.ts';
import type { EncryptionKey } from '../../engine/secrets/index.ts';
import type { Storage } from '../../engine/storage/index.ts';
import type { TestOrganization } from './fixtures.ts';
import type { Place } from './insight_fixtures.ts';
import { account, connect, createIntegration } from './integration_fixtures.ts';
import { type JsonObject, type Sql, transition } from './transitions.ts';
import { until } from './wait.ts';

const segmentsSchema = z.object({
  revision: z.int(),
  segments: z.array(
    z.object({ objectKey: z.string(), sizeBytes: z.int(), rowCount: z.int(), sha256: z.string(), month: z.string() }),
  ),
});

/** An integration whose credential opens. */
export async function connectProvider(
  sql: Pick<Sql, 'api'>,
  org: TestOrganization,
  given: Readonly<{
    provider: string;
    keys: readonly EncryptionKey[];
    credential: JsonObject;
    subject: string;
    settings?: JsonObject;
  }>,
): Promise<Place> {
  const { provider, keys, credential, subject, settings } = given;
  const { id } = await createIntegration(sql, org, { provider, tools: [] });
  const { organizationId } = org;
  const place = { organizationId, integrationId: id, revision: 1 };
  const secrets = sealFields(keys, provider, place, new Map([['credential', JSON.stringify(credential)]]));
  if (settings) {
    await transition(sql.api, 'integration_settings_put', {
      organizationId,
      integrationRef: id,
      connectionRevision: 0,
      settings,
      disconnect: false,
      forgetTools: false,
    });
  }
  await connect(sql.api, org, id, account(subject, { grantedScopes: null }), { secrets });
  return { organizationId, integrationId: id };
}

export type CollectedSource = Readonly<{
  id: string;
  provider: string;
  dataset: string;
  resource_id: string;
  coverage: JsonObject[];
}>;

export async function collectedSources(sql: Pick<Sql, 'owner'>, { integrationId }: Place): Promise<CollectedSource[]> {
  const { rows } = await sql.owner.query(
    'select * from app.insight_sources where integration_id = $1 order by dataset, resource_id',
    [integrationId],
  );
  return rows;
}

/** The published segments of a source, at a revision, or now. */
export async function segmentsOf(
  sql: Pick<Sql, 'jobs'>,
  { organizationId }: Pick<Place, 'organizationId'>,
  sourceId: string,
  revision: number | null = null,
) {
  const args = { organizationId, sourceId, from: null, to: null, revision };
  return segmentsSchema.parse(await transition(sql.jobs, 'insight_segments_read', args));
}

/** By key, those that are there. */
export async function factsOf(
  sql: Pick<Sql, 'jobs'>,
  storage: Storage,
  place: Pick<Place, 'organizationId'>,
  { id, provider, dataset }: CollectedSource,
): Promise<ReadonlyMap<string, StoredFact>> {
  const { segments } = await segmentsOf(sql, place, id);
  const columns = adapterOf(provider, dataset)?.columns ?? {};
  const newest = new Map<string, StoredFact>();
  for (const ofMonth of Map.groupBy(segments, ({ month }) => month).values()) {
    const files = ofMonth.map(({ objectKey: key, sizeBytes: size, rowCount: rows, sha256 }) => ({
      key,
      size,
      rows,
      sha256,
    }));
    for (const fact of (await readMonth(storage, files, columns)).values()) keepNewest(newest, fact);
  }
  return new Map([...newest].filter(([, { deleted }]) => !deleted));
}

/** Waits until nothing of a connector is under way, and nothing is due. */
export async function settled(sql: Pick<Sql, 'owner'>, { integrationId }: Place): Promise<void> {
  await until('all is collected', async () => {
    const { rows } = await sql.owner.query(
      `select unit_id is null and due_at > now() and discovered_at is not null as done
       from app.insight_connectors where integration_id = $1`,
      [integrationId],
    );
    return rows[0]?.done === true;
  });
}
