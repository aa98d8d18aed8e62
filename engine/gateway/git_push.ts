import { type Git, lookUpGitPush, PACK_ARGUMENT, prepareGitPush, pushArguments } from '../git/index.ts';
import { StorageBrokenError } from '../storage/index.ts';
import type { Executor, LeasedAction } from './executor.ts';

/** A push may have half a gibibyte. */
const TIMEOUT_MS = 600_000;
/** Within the lease, before it is sent, and for a look-up: both may have to fetch the repository. */
const PREPARE_MS = 480_000;

/** Executes pushes. */
export function pushExecutor(git: Git, { action, files }: LeasedAction): Executor {
  const push = pushArguments.parse(action.arguments);
  const file = files.find(({ argument }) => argument === PACK_ARGUMENT);
  return {
    timeoutMs: TIMEOUT_MS,
    async prepare(connection) {
      if (!file) return { obstacle: 'file_changed' };
      const pack = { key: file.storageKey, size: file.sizeBytes, sha256: file.sha256 };
      const given = { connection, arguments: push, pack, signal: AbortSignal.timeout(PREPARE_MS) };
      const prepared = await prepareGitPush(git, given).catch((error: unknown) => {
        if (error instanceof StorageBrokenError) return undefined;
        throw error;
      });
      if (!prepared) return { obstacle: 'file_changed' };
      return {
        async send(current) {
          const sent = await prepared.send(current, AbortSignal.timeout(TIMEOUT_MS));
          return sent.outcome === 'unanswered' ? undefined : sent;
        },
        close: prepared.close,
      };
    },
    lookUp: (connection) =>
      lookUpGitPush(git, { connection, arguments: push, signal: AbortSignal.timeout(PREPARE_MS) }),
  };
}
