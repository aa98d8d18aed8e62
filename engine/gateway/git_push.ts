import { Problem } from '../db/problem.ts';
import {
  type Git,
  lookUpGitPush,
  MirrorTooLargeError,
  PACK_ARGUMENT,
  PackUnusableError,
  prepareGitPush,
  pushArguments,
} from '../git/index.ts';
import { StorageBrokenError } from '../storage/index.ts';
import type { Executor, LeasedAction } from './executor.ts';

/** Within the lease, before it is sent, and for a look-up: both may have to fetch the repository. */
const PREPARE_MS = 480_000;

/** Why a push can never be made ready. @throws any other error, which may pass */
function obstacleOf(error: unknown): Readonly<{ obstacle: string }> {
  if (error instanceof StorageBrokenError) return { obstacle: 'file_changed' };
  // The repository is one that the settings no longer name.
  if (error instanceof Problem && error.status === 404) return { obstacle: 'settings_changed' };
  if (error instanceof MirrorTooLargeError) return { obstacle: 'repository_too_large' };
  if (error instanceof PackUnusableError) return { obstacle: 'pack_unusable' };
  throw error;
}

/** Executes pushes. */
export function pushExecutor(git: Git, { action, files }: LeasedAction): Executor {
  // Those of an older version may have another form.
  const parsed = pushArguments.safeParse(action.arguments);
  const file = files.find(({ argument }) => argument === PACK_ARGUMENT);
  const timeoutMs = action.timeout_ms;
  return {
    timeoutMs,
    async prepare(connection) {
      if (!parsed.success) return { obstacle: 'arguments_unusable' };
      if (!file) return { obstacle: 'file_changed' };
      const pack = { key: file.storageKey, size: file.sizeBytes, sha256: file.sha256 };
      const given = { connection, arguments: parsed.data, pack, signal: AbortSignal.timeout(PREPARE_MS) };
      const prepared = await prepareGitPush(git, given).catch(obstacleOf);
      if ('obstacle' in prepared) return prepared;
      return {
        async send(current) {
          const sent = await prepared.send(current, AbortSignal.timeout(timeoutMs));
          return sent.outcome === 'unanswered' ? undefined : sent;
        },
        close: prepared.close,
      };
    },
    async lookUp(connection) {
      // Nobody but a person can say.
      if (!parsed.success) return { outcome: 'none', final: true };
      return lookUpGitPush(git, { connection, arguments: parsed.data, signal: AbortSignal.timeout(PREPARE_MS) });
    },
  };
}
