/** Why the command of this worker cannot be started at all. */
export class CommandNotFoundError extends Error {
  override name = 'CommandNotFoundError';
}

/** The shell's exit statuses for a program that it may not run, or cannot find. */
const NOT_STARTED = [126, 127];

/** Lets one run start until it is known that the command can be started: a typing error costs one attempt. */
export type CommandGate = Readonly<{
  /** Waits for its turn; false: the command is known not to start, and nothing may be started for it. */
  enter: () => Promise<boolean>;
  /** The command runs. */
  works: () => void;
  /** It ended: unless its status says that it was never there, it works. */
  ended: (exitCode: number | null) => void;
  /** Whether a command that ended with this status was never there; then `broken` is aborted. */
  fails: (exitCode: number | null) => boolean;
  /** Whoever entered is done, whatever became of it. */
  leave: () => void;
  /** Aborted when the command is known not to start. */
  broken: AbortSignal;
}>;

export function commandGate(): CommandGate {
  const broken = new AbortController();
  let known = false;
  let probing: PromiseWithResolvers<void> | undefined;

  function open(): void {
    probing?.resolve();
    probing = undefined;
  }
  function works(): void {
    known = true;
    open();
  }

  return {
    broken: broken.signal,
    async enter() {
      while (!known && probing && !broken.signal.aborted) await probing.promise;
      if (!known) probing ??= Promise.withResolvers<void>();
      return !broken.signal.aborted;
    },
    works,
    ended(exitCode) {
      if (!NOT_STARTED.includes(exitCode ?? 0)) works();
    },
    fails(exitCode) {
      if (known || !NOT_STARTED.includes(exitCode ?? 0)) return false;
      broken.abort();
      open();
      return true;
    },
    leave: open,
  };
}
