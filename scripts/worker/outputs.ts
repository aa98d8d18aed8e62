import { ApiError, UnreadableFileError } from './api.ts';
import type { TaskRun } from './context.ts';
import { type OutputFile, outputFiles } from './output_files.ts';

/** A folder of packages has thousands of links. */
const MAX_NAMED = 20;

/** Uploads every file below the output folder. The log of the run names what is left out, up to twenty, and counts the rest. */
export async function uploadOutputs(run: TaskRun): Promise<OutputFile[]> {
  const { held, worker, logs, claim } = run;
  const { files, leftOut } = await outputFiles(run.workspace);
  const stored: OutputFile[] = [];

  function leaveOut(what: string, detail: string): void {
    logs.note({ category: 'sync', status: 'skipped', label: `Left out ${what}`, detail });
    worker.print(`${claim.task.identifier}  left out ${what}: ${detail}`);
  }

  for (const { path, why } of leftOut.slice(0, MAX_NAMED)) leaveOut(path, why);
  const unnamed = leftOut.length - MAX_NAMED;
  if (unnamed > 0) leaveOut(`${unnamed} more`, 'links, pipes, repositories, and names that are not UTF-8');
  for (const one of files) {
    const { path, file, size } = one;
    try {
      await run.send((signal) => worker.api.putOutput(held.lease, path, file, { signal, timeoutMs: 3_600_000 }));
    } catch (error) {
      // One that is refused, or that cannot be read, must not cost the other files.
      if (!(error instanceof UnreadableFileError) && !(error instanceof ApiError && error.status === 400)) throw error;
      leaveOut(path, error.message);
      continue;
    }
    stored.push(one);
    logs.note({ category: 'sync', status: 'completed', label: `Stored ${path}`, detail: `${size} bytes` });
    worker.print(`${claim.task.identifier}  stored ${path} (${size} bytes)`);
  }
  return stored;
}
