// Compactions as tests work with them, made through the transitions with the rights of the jobs.
import { z } from 'zod';
import type { TestOrganization } from './fixtures.ts';
import { adapters, claimed, commit, createCollected, type Place, segment } from './insight_fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

export type Month = Readonly<{ organizationId: string; sourceId: string; month: string }>;

const claimSchema = z.looseObject({
  claimed: z.boolean(),
  reason: z.string().optional(),
  compaction: z
    .looseObject({
      id: z.string(),
      fence: z.int(),
      isWhole: z.boolean(),
      schemaVersion: z.int(),
      segments: z.array(z.looseObject({ id: z.string(), objectKey: z.string(), rowCount: z.int() })),
    })
    .optional(),
});
export type CompactionRow = Month & NonNullable<z.output<typeof claimSchema>['compaction']>;

export const LIMITS = { segments: 4, files: 128, bytes: 1_000_000, rows: 100_000 };

export async function tryCompaction(
  connection: Connection,
  month: Month,
  options: Readonly<{ limits?: Partial<typeof LIMITS>; adapters?: JsonObject; seconds?: number }> = {},
): Promise<CompactionRow | string> {
  const { limits = {}, adapters: known = adapters(), seconds = 60 } = options;
  const given = { ...month, adapters: known, limits: { ...LIMITS, ...limits }, seconds };
  const { compaction, reason } = claimSchema.parse(await transition(connection, 'insight_compaction_claim', given));
  return compaction ? { ...compaction, ...month } : String(reason);
}

export async function claimCompaction(...args: Parameters<typeof tryCompaction>): Promise<CompactionRow> {
  const row = await tryCompaction(...args);
  if (typeof row === 'string') throw new Error(`nothing was claimed: ${row}`);
  return row;
}

const leaseOf = ({ organizationId, sourceId, month, id, fence }: CompactionRow) => ({
  organizationId,
  sourceId,
  month,
  compactionId: id,
  fence,
});

/** `segment` null: nothing is left. */
export function commitCompaction(
  connection: Connection,
  row: CompactionRow,
  options: Readonly<{ removed?: number; segment?: JsonObject | null }> = {},
) {
  const { removed = 0, segment: stored = segment(row.month) } = options;
  const result = { removed, segment: stored && { ...stored, schemaVersion: row.schemaVersion } };
  return transition(connection, 'insight_compaction_commit', { ...leaseOf(row), result });
}

export function endCompaction(connection: Connection, row: CompactionRow, error: JsonObject | null = null) {
  return transition(connection, 'insight_compaction_end', { ...leaseOf(row), error });
}

/** Files of a unit, in January 2026. */
export async function publish(sql: Pick<Sql, 'jobs'>, place: Place, count: number, result: JsonObject = {}) {
  const { staged = false } = result;
  const segments = Array.from({ length: count }, () => segment('2026-01', { staged }));
  const unit = await claimed(sql.jobs, place);
  await commit(sql.jobs, unit, { segments, ...result });
  return { organizationId: place.organizationId, sourceId: unit.source?.id ?? '', month: '2026-01' };
}

/** A source with so many files in January 2026. */
export async function createPublished(sql: Pick<Sql, 'api' | 'jobs'>, org: TestOrganization, count = 4) {
  const place = await createCollected(sql, org);
  return { place, month: await publish(sql, place, count) };
}

/** The lease of whoever compacts is over. */
export async function endCompactionLease(sql: Pick<Sql, 'owner'>, { sourceId }: Month): Promise<void> {
  await sql.owner.query(
    `update app.insight_compactions set lease_expires_at = now() - interval '1 second' where source_id = $1`,
    [sourceId],
  );
}
