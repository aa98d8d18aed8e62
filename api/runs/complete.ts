import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import type { Json } from '../../engine/db/sql_types.ts';
import { serviceUnavailable } from '../http/errors.ts';
import type { Services } from '../services.ts';
import type { completeBody } from './changes.ts';

const endedSchema = z.object({ status: z.string() });
type Ended = z.output<typeof endedSchema>;

/** What has to be evaluated before the result can be committed, and a digest that stands for exactly that. */
const evaluationSchema = z.object({
  evaluation: z.object({
    digest: z.string(),
    criteria: z.array(z.unknown()),
    outputs: z.array(
      z.object({
        path: z.string(),
        size: z.int(),
        sha256: z.string(),
        mediaType: z.string(),
        storageKey: z.string(),
      }),
    ),
  }),
});

const ROUNDS = 5;

/**
 * Ends a run with a result (docs/interface.md 4.13.2). One round trip when there is nothing to evaluate. With acceptance
 * criteria the database returns first what has to be evaluated; the bytes are read outside of any transaction, and the
 * checks are committed only while task and bytes are still those that they were made of.
 */
export async function completeRun(
  context: Readonly<{ db: Queries; services: Services; signal: AbortSignal }>,
  runId: string,
  body: z.output<typeof completeBody>,
  hash: string,
): Promise<Ended> {
  const { organizationId, leaseToken, output, ...report } = body;
  const args = {
    organizationId,
    runId,
    leaseToken,
    bodyHash: hash,
    result: output.kind === 'task_result' ? output.result : output,
    report,
    maxAttempts: context.services.config.runRequestMaxAttempts,
    backoffSeconds: context.services.config.retryBackoffSeconds,
    backoffMaxSeconds: context.services.config.retryBackoffMaxSeconds,
  };
  let evaluated: { checks: Json; digest: string } | undefined;
  for (let round = 0; round < ROUNDS; round += 1) {
    const completed = await call(
      context.db,
      'run_complete',
      { ...args, checks: evaluated?.checks, evaluationDigest: evaluated?.digest },
      z.union([endedSchema, evaluationSchema]),
    );
    if ('status' in completed) return completed;
    const { criteria, outputs, digest } = completed.evaluation;
    const input = { organizationId, runId, criteria, outputs, signal: context.signal };
    evaluated = { checks: await context.services.evaluateAcceptance(input), digest };
  }
  throw serviceUnavailable('The task or its outputs keep changing. Try again.');
}
