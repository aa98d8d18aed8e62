import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

export type SupervisedOptions = Readonly<{
  name: string;
  /** Starts it; `generation` counts from 1. */
  launch: (generation: number) => ChildProcess;
  /** How long it stays away after a kill, in ms. */
  downMs: () => number;
  /** It ended although nobody had killed it. */
  onCrash: (how: string) => void;
}>;

/** A child process that is started again whenever it is gone. */
export type Supervised = Readonly<{
  name: string;
  /** How often it was started; its `workerId` and the like carry it. */
  generation: () => number;
  alive: () => boolean;
  /** SIGKILL; a new one follows. False when there was nothing to kill. */
  kill: () => boolean;
  /** SIGSTOP, and SIGCONT after `ms`. False when there was nothing to stop. */
  pause: (ms: number) => boolean;
  /** SIGKILL, and no new one. */
  end: () => Promise<void>;
}>;

export function supervise({ name, launch, downMs, onCrash }: SupervisedOptions): Supervised {
  const timers = new Set<NodeJS.Timeout>();
  let generation = 0;
  let child: ChildProcess | undefined;
  let killed = false;
  let ending = false;

  function later(work: () => void, ms: number): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, ms);
    timers.add(timer);
  }

  function start(): void {
    generation += 1;
    killed = false;
    const current = launch(generation);
    child = current;
    let over = false;
    function gone(how: string): void {
      // `error` alone when it could not be spawned, `exit` else.
      if (over) return;
      over = true;
      child = undefined;
      if (ending) return;
      if (!killed) onCrash(`${name} ${how}`);
      later(start, downMs());
    }
    current.once('error', (error) => gone(`could not be started: ${error.message}`));
    current.once('exit', (code, signal) => gone(signal ? `was ended by ${signal}` : `ended with status ${code}`));
  }

  function kill(): boolean {
    if (!child || killed) return false;
    killed = true;
    return child.kill('SIGKILL');
  }

  start();
  return {
    name,
    generation: () => generation,
    alive: () => child !== undefined && !killed,
    kill,
    pause(ms) {
      const paused = child;
      if (!paused || killed || !paused.kill('SIGSTOP')) return false;
      later(() => paused.kill('SIGCONT'), ms);
      return true;
    },
    async end() {
      ending = true;
      for (const timer of timers) clearTimeout(timer);
      const current = child;
      if (!current) return;
      const exit = once(current, 'exit');
      current.kill('SIGKILL');
      await exit;
    },
  };
}
