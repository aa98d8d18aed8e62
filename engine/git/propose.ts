import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { z } from 'zod';
import { Problem } from '../db/problem.ts';
import { integrationProblem } from '../integrations/index.ts';
import { invocationKey } from '../storage/index.ts';
import { summaryOf } from './describe.ts';
import type { Git } from './git.ts';
import { argumentsDigest, PACK_ARGUMENT, PUSH_TOOL, pushDigest, riskOf } from './push_action.ts';
import type { StagedPush } from './stage.ts';

export const proposedSchema = z.object({
  action: z.object({ id: z.string(), status: z.string(), summary: z.string() }),
  made: z.boolean(),
});
export type Proposed = z.output<typeof proposedSchema>;

/** For its call of the provider: a push may have half a gibibyte. */
const TIMEOUT_MS = 600_000;

/** Makes an action of a proposal, or returns the one that equals it (app.action_propose). */
export type Propose = (proposal: Readonly<Record<string, unknown>>) => Promise<Proposed>;

/** An action that is not over. */
const OPEN: ReadonlySet<string> = new Set(['awaiting_approval', 'approved', 'executing', 'unknown']);

/** `repeats`: the action that did the same before, whose push was taken back at the provider. */
export type ProposedPush = Readonly<{ action: Proposed['action']; repeats: string | null }>;

/**
 * What equals a push that was done is that one, unless its branches are back where they were: then it is proposed anew, which needs an
 * approval. Such a proposal is named by the one before it, so that pushes at once, and the same one again, are one action.
 */
async function proposeOrRepeat(
  propose: Propose,
  proposal: Readonly<Record<string, unknown>>,
  wasTakenBack: () => Promise<boolean>,
): Promise<ProposedPush & Readonly<{ made: boolean }>> {
  let proposed = await propose(proposal);
  let repeats: string | null = null;
  for (;;) {
    const { action, made } = proposed;
    if (made || OPEN.has(action.status)) return { action, made, repeats };
    if (action.status === 'succeeded') {
      if (!(await wasTakenBack())) return { action, made, repeats: null };
      repeats = action.id;
    }
    const name = { invocationId: `push-after-${action.id}`, bodySha256: proposal['equalsBy'] };
    proposed = await propose({ ...proposal, ...name, repeat: true });
  }
}

/**
 * Stores the pack of a push, and proposes its action. A process that dies in between leaves a pack that no action names, which is
 * found by its age. `wasTakenBack`: whether its branches are at the provider where they were before it.
 * @throws Problem, or the error of the storage
 */
export async function proposePush(
  { storage, log }: Pick<Git, 'storage' | 'log'>,
  organizationId: string,
  staged: StagedPush,
  propose: Propose,
  signal: AbortSignal,
  wasTakenBack: () => Promise<boolean>,
): Promise<ProposedPush> {
  const { arguments: given, packFile } = staged;
  const key = invocationKey(organizationId, 'files');
  const forget = () =>
    storage.delete(key).catch((error: unknown) => log.warn({ err: error }, 'a pack that no action needs stays stored'));
  const { size, sha256 } = await storage.put(key, createReadStream(packFile), { signal });
  const digest = argumentsDigest(given);
  try {
    const proposal = {
      invocationId: randomUUID(),
      bodySha256: digest,
      tool: PUSH_TOOL,
      summary: summaryOf(given),
      risk: riskOf(given),
      arguments: given,
      argumentsSha256: digest,
      equalsBy: pushDigest(given),
      files: [
        {
          argument: PACK_ARGUMENT,
          name: 'push.pack',
          contentType: 'application/x-git-packed-objects',
          sizeBytes: size,
          sha256,
          storageKey: key,
        },
      ],
      timeoutMs: TIMEOUT_MS,
    };
    const { action, made, repeats } = await proposeOrRepeat(propose, proposal, wasTakenBack);
    if (!made) await forget();
    return { action, repeats };
  } catch (error) {
    // What the database refuses is an error of it until it is mapped. Any other one may have come after the commit.
    const problem = integrationProblem(error);
    if (problem instanceof Problem && problem.status < 500) await forget();
    throw problem;
  }
}
