import { z } from 'zod';
import { call } from '../../db/call.ts';
import type { Database } from '../../db/database.ts';
import { INSIGHT_CURSOR_MODES, INSIGHT_ENVIRONMENTS } from '../../insight_states.ts';
import { COVERAGE_STATES } from '../../providers/dataset.ts';
import { knownAdapters } from '../adapters.ts';

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text).getTime());

const sourceSchema = z.object({
  id: z.uuid(),
  resourceId: z.string(),
  dataset: z.string(),
  environment: z.enum(INSIGHT_ENVIRONMENTS),
  timezone: z.string(),
  coverage: z.array(
    z.object({ start: time, end: time, state: z.enum(COVERAGE_STATES), reason: z.string().optional() }),
  ),
});
export type ClaimedSource = z.output<typeof sourceSchema>;

const unitSchema = z.object({
  id: z.uuid(),
  fence: z.int(),
  provider: z.string(),
  connectionRevision: z.int(),
  cursor: z.unknown(),
  round: z.unknown(),
});
const claimSchema = z.discriminatedUnion('claimed', [
  z.object({ claimed: z.literal(false), reason: z.string() }),
  z.object({
    claimed: z.literal(true),
    unit: z.discriminatedUnion('mode', [
      unitSchema.extend({ mode: z.literal('discovery'), source: z.null() }),
      unitSchema.extend({ mode: z.enum(INSIGHT_CURSOR_MODES), source: sourceSchema }),
    ]),
  }),
]);

/** A connector: an integration whose facts are collected. */
export type Connector = Readonly<{ organizationId: string; integrationId: string }>;
export type Unit = Extract<z.output<typeof claimSchema>, { claimed: true }>['unit'] & Connector;
export type CollectUnit = Extract<Unit, { source: ClaimedSource }>;
/** Nobody may write what a unit has found without it. */
export type UnitLease = Readonly<{ organizationId: string; unitId: string; fence: number }>;

/** Past it another process may claim the connector: it covers a unit, and storing what it has found. */
const LEASE_SECONDS = 120;

/** Claims what is due of a connector. @returns why there is nothing to do, where there is not */
export async function claimUnit(
  db: Database,
  { organizationId, integrationId }: Connector,
  limits: Readonly<{ perOrganization: number }>,
): Promise<Unit | string> {
  const args = {
    organizationId,
    integrationId,
    adapters: knownAdapters,
    active: limits.perOrganization,
    seconds: LEASE_SECONDS,
  };
  const claim = await call(db.of(organizationId), 'insight_unit_claim', args, claimSchema);
  return claim.claimed ? { ...claim.unit, organizationId, integrationId } : claim.reason;
}

export function leaseOf({ organizationId, id, fence }: Unit): UnitLease {
  return { organizationId, unitId: id, fence };
}
