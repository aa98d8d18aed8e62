import type { TaskRun } from './context.ts';
import { describeTask, writeInput } from './workspace.ts';

/** Downloads the inputs of the run, and describes its task, in the folder of the run. */
export async function fetchInputs(run: TaskRun): Promise<void> {
  const { held, worker, workspace, logs } = run;
  const inputs = await run.send((signal) => worker.api.inputs(held.lease, { signal }));
  const available = inputs.filter((input) => input.available);
  for (const input of available) {
    await run.send(async (signal) => {
      // A large file takes its time: the lease is what limits it.
      const call = { signal, timeoutMs: 3_600_000 };
      const content = await worker.api.inputContent(held.lease, input.path, call);
      await writeInput(workspace, input, content, signal);
    });
  }
  const { timeoutMs } = worker.options;
  await describeTask(workspace, run.claim, { runId: held.lease.runId, inputs, timeoutMs });
  const detail = `${available.length} input ${available.length === 1 ? 'file' : 'files'}`;
  logs.note({ category: 'planning', status: 'completed', label: 'Workspace ready', detail });
  worker.print(`${run.claim.task.identifier}  workspace ready: ${detail}`);
}
