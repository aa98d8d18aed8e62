import type { Claim, WorkerApi } from './api.ts';
import { type CommandEnd, runCommand } from './command.ts';
import type { HeldLease } from './lease.ts';
import type { WorkerOptions } from './options.ts';
import { followLines, type LogShipper, parseProgressLine } from './progress.ts';
import { describeTask, type OutputFile, outputFiles, type Workspace, writeInput } from './workspace.ts';

const PROGRESS_EVERY_MS = 500;

export type RunTools = Readonly<{
  api: WorkerApi;
  options: WorkerOptions;
  /** One readable line for the person who watches the worker. */
  say: (line: string) => void;
  /** Aborted when the worker itself has to end at once: its runs are handed back. */
  stop: AbortSignal;
}>;

export type Run = Readonly<{
  claim: Claim;
  held: HeldLease;
  logs: LogShipper;
  workspace: Workspace;
  executionToken: string;
  tools: RunTools;
  /** Sends a call again until it is answered or the lease is over; ends at once when the run has to stop. */
  send: <T>(call: (signal: AbortSignal) => Promise<T>) => Promise<T>;
}>;

export const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** Writes the inputs of the run and what its task is into its folder. */
export async function fetchInputs(run: Run): Promise<void> {
  const { held, tools, workspace, logs } = run;
  const inputs = await run.send((signal) => tools.api.inputs(held.lease, { signal }));
  const available = inputs.filter((input) => input.available);
  for (const input of available) {
    await run.send(async (signal) => {
      // A large file takes its time: the lease is what limits it.
      const call = { signal, timeoutMs: 3_600_000 };
      const content = await tools.api.inputContent(held.lease, input.path, call);
      await writeInput(workspace, input, content, signal);
    });
  }
  await describeTask(workspace, run.claim, held.lease.runId, inputs);
  const detail = `${available.length} input ${available.length === 1 ? 'file' : 'files'}`;
  logs.note({ category: 'planning', status: 'completed', label: 'Workspace ready', detail });
  tools.say(`${run.claim.task.identifier}  workspace ready: ${detail}`);
}

/** Runs the command; what it writes to PROGRESS_FILE becomes the log of the run. */
export async function execute(run: Run): Promise<CommandEnd> {
  const { held, logs, tools, workspace, claim } = run;
  const { identifier } = claim.task;
  const following = new AbortController();
  const followed = followLines(workspace.progressFile, {
    take(line) {
      const note = parseProgressLine(line);
      if (!note) return;
      logs.note(note);
      tools.say(`${identifier}  ${note.label}${note.detail ? `: ${note.detail}` : ''}`);
    },
    tick: () => void logs.flush(),
    everyMs: PROGRESS_EVERY_MS,
    signal: following.signal,
  });
  logs.note({ category: 'execution', status: 'running', label: 'Command started' });
  try {
    const end = await runCommand({
      command: tools.options.command,
      cwd: workspace.root,
      environment: {
        ...tools.options.environment,
        BUSINESS_RUNNER_URL: tools.options.url,
        BUSINESS_RUNNER_TOKEN: run.executionToken,
        BUSINESS_RUNNER_MODE: claim.mode,
        INPUT_DIR: workspace.inputs,
        OUTPUT_DIR: workspace.outputs,
        PROGRESS_FILE: workspace.progressFile,
        RESULT_FILE: workspace.resultFile,
        PLAN_FILE: workspace.planFile,
        VERDICT_FILE: workspace.verdictFile,
        USAGE_FILE: workspace.usageFile,
      },
      timeoutMs: tools.options.timeoutMs,
      signal: held.signal,
      onLine: (line) => tools.say(`${identifier}  | ${line}`),
    });
    const how = end.signal ? `stopped by ${end.signal}` : `exit status ${end.exitCode}`;
    const status = end.exitCode === 0 ? 'completed' : 'failed';
    following.abort();
    await followed;
    logs.note({
      category: 'execution',
      status,
      label: 'Command ended',
      detail: `${how} after ${seconds(end.elapsedMs)}`,
    });
    tools.say(`${identifier}  command ended: ${how} after ${seconds(end.elapsedMs)}`);
    return end;
  } finally {
    following.abort();
    await followed;
  }
}

/** Uploads every file below the output folder. */
export async function handIn(run: Run): Promise<OutputFile[]> {
  const { held, tools, logs, claim } = run;
  const files = await outputFiles(run.workspace);
  for (const { path, file, size } of files) {
    await run.send((signal) => tools.api.putOutput(held.lease, path, file, { signal, timeoutMs: 3_600_000 }));
    logs.note({ category: 'sync', status: 'completed', label: `Stored ${path}`, detail: `${size} bytes` });
    tools.say(`${claim.task.identifier}  stored ${path} (${size} bytes)`);
  }
  return files;
}
