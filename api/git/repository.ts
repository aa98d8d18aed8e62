import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import type { Logger } from 'pino';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { GitMissingError, PktLineError, type Remote, remoteOf } from '../../engine/git/index.ts';
import { integrationProblem, useConnection } from '../../engine/integrations/index.ts';
import { ProviderError } from '../../engine/providers/outgoing/index.ts';
import type { GatewayCaller } from '../http/caller.ts';
import { invalid, UnavailableError } from '../http/errors.ts';
import type { Services } from '../services.ts';

const accessSchema = z.object({
  integration: z.object({ connectionRevision: z.int() }),
  pushRefusal: z.object({ code: z.string(), message: z.string() }).nullable(),
});
export type GitAccess = z.output<typeof accessSchema>;

export type RepositoryCall = Readonly<{
  services: Services;
  caller: GatewayCaller;
  params: Readonly<{ integrationId: string; owner: string; repository: string }>;
  signal: AbortSignal;
}>;

/** What the capability is good for now. @throws Problem 401, 409 */
export function checkGit({ services, caller, params }: RepositoryCall): Promise<GitAccess> {
  const { organizationId, tokenHash } = caller;
  const args = { organizationId, tokenHash, integrationId: params.integrationId };
  return call(services.db.of(organizationId), 'integration_git_check', args, accessSchema);
}

/** What goes wrong with a repository, as the codes of the contract. Anything else stays as it is. */
export function gitProblem(error: unknown): unknown {
  if (error instanceof GitMissingError) {
    return new UnavailableError('The service cannot use git at the moment.', { cause: error });
  }
  if (error instanceof PktLineError) return invalid('', `The body ${error.message}.`, 'invalid_body');
  return integrationProblem(error);
}

/**
 * Does something at a repository, with an open connection of its integration. `once`: it reads a body, and cannot be done again with
 * another token.
 * @throws Problem 404 for a repository that is none of the integration, and as `gitProblem`
 */
export async function withRepository<T>(
  { services, caller, params, signal }: RepositoryCall,
  { integration }: GitAccess,
  run: (remote: Remote) => Promise<T>,
  { once = false } = {},
): Promise<T> {
  const { integrationId, owner, repository } = params;
  const revision = integration.connectionRevision;
  const target = { organizationId: caller.organizationId, integrationId, revision };
  let calls = 0;
  try {
    return await useConnection(
      services.integrations,
      target,
      async (connection) => {
        const remote = remoteOf(connection, owner, repository);
        calls += 1;
        if (once && calls > 1) {
          const message = 'The credential was renewed meanwhile. Try again.';
          throw new ProviderError(connection.provider.key, 'unavailable', message, { isOurs: true });
        }
        return run(remote);
      },
      { signal },
    );
  } catch (error) {
    throw gitProblem(error);
  }
}

/**
 * Responds with bytes as they come. What fails before the first of them is thrown, and becomes a response; what fails later cuts the
 * connection.
 */
export async function sendGit(
  res: Response,
  mediaType: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const chunks = body[Symbol.asyncIterator]();
  const first = await chunks.next().catch((error: unknown) => {
    throw gitProblem(error);
  });
  async function* bytes() {
    if (first.done) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  }
  res.status(200).set({ 'Content-Type': mediaType, 'Cache-Control': 'no-cache, max-age=0, must-revalidate' });
  try {
    // In object mode chunks are handed on as they come; else those that wait would be copied into one.
    await pipeline(Readable.from(bytes()), res, { signal });
  } catch (error) {
    // A client that hangs up is no error of ours.
    if (!signal.aborted) throw error;
  }
}

/** What happened, as a sentence for the client of a push; what is not the client's own affair is logged. */
export function explain(error: unknown, log: Logger): string {
  const problem = gitProblem(error);
  if (problem instanceof Problem) {
    const [issue] = problem.issues ?? [];
    return issue && !problem.message.includes(issue.message) ? `${problem.message}: ${issue.message}` : problem.message;
  }
  log.error({ err: problem }, 'a push was not staged');
  return problem instanceof UnavailableError ? problem.message : 'Something went wrong on our side. Try again.';
}
