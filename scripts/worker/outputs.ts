import { ApiError } from './api.ts';
import type { TaskRun } from './context.ts';
import { type OutputFile, outputFiles } from './workspace.ts';

/** Uploads every file below the output folder; what is left out is named in the log of the run. */
export async function uploadOutputs(run: TaskRun): Promise<OutputFile[]> {
  const { held, worker, logs, claim } = run;
  const { files, skipped } = await outputFiles(run.workspace);
  const stored: OutputFile[] = [];

  function leaveOut(path: string, detail: string): void {
    logs.note({ category: 'sync', status: 'skipped', label: `Left out ${path}`, detail });
    worker.print(`${claim.task.identifier}  left out ${path}: ${detail}`);
  }

  for (const path of skipped) leaveOut(path, 'the folder of a repository');
  for (const one of files) {
    const { path, file, size } = one;
    try {
      await run.send((signal) => worker.api.putOutput(held.lease, path, file, { signal, timeoutMs: 3_600_000 }));
    } catch (error) {
      // One name that is refused must not cost the other files.
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      leaveOut(path, error.message);
      continue;
    }
    stored.push(one);
    logs.note({ category: 'sync', status: 'completed', label: `Stored ${path}`, detail: `${size} bytes` });
    worker.print(`${claim.task.identifier}  stored ${path} (${size} bytes)`);
  }
  return stored;
}
