import type { TaskRun } from './context.ts';
import { type OutputFile, outputFiles } from './workspace.ts';

/** Uploads every file below the output folder. */
export async function uploadOutputs(run: TaskRun): Promise<OutputFile[]> {
  const { held, worker, logs, claim } = run;
  const files = await outputFiles(run.workspace);
  for (const { path, file, size } of files) {
    await run.send((signal) => worker.api.putOutput(held.lease, path, file, { signal, timeoutMs: 3_600_000 }));
    logs.note({ category: 'sync', status: 'completed', label: `Stored ${path}`, detail: `${size} bytes` });
    worker.print(`${claim.task.identifier}  stored ${path} (${size} bytes)`);
  }
  return files;
}
