import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import type { Services } from '../services.ts';
import type { heartbeatBody } from './changes.ts';

const beatSchema = z.object({ status: z.string() });
type Beat = z.output<typeof beatSchema>;

/**
 * Renews the lease of a run, and waits up to `waitMs` for its cancel: then the status is `cancelling` (docs/interface.md 3.5).
 * Nothing is held while it waits.
 */
export async function heartbeat(
  context: Readonly<{ db: Queries; services: Services; signal: AbortSignal }>,
  runId: string,
  body: z.output<typeof heartbeatBody>,
): Promise<Beat> {
  const { db, services, signal } = context;
  const { organizationId, leaseToken, waitMs } = body;
  const { leaseSeconds, cancelGraceSeconds } = services.config;
  const args = { organizationId, runId, leaseToken, leaseSeconds, cancelGraceSeconds };
  const beat = () => call(db, 'run_heartbeat', args, beatSchema);
  if (waitMs === 0) return beat();
  // Before the first look, so that no cancel falls between the two.
  using watch = services.runStops.watch(runId);
  const first = await beat();
  if (first.status === 'cancelling' || !(await watch.wait(waitMs, signal))) return first;
  return beat();
}
