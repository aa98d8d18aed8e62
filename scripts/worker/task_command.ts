import { type CommandEnd, runCommand } from './command.ts';
import type { TaskRun } from './context.ts';
import { formatSeconds } from './duration.ts';
import { runEnvironment } from './environment.ts';
import { followLines, parseProgressLine } from './progress.ts';

const PROGRESS_POLL_INTERVAL_MS = 500;
/** Of a log entry. */
const MAX_DETAIL = 2_000;

/** Runs the command of a task; what it writes to PROGRESS_FILE becomes the log of the run. */
export async function runTaskCommand(run: TaskRun): Promise<CommandEnd> {
  const { held, logs, worker, workspace, claim } = run;
  const { identifier } = claim.task;
  const following = new AbortController();
  const followed = followLines(workspace.progressFile, {
    onLine(line) {
      const note = parseProgressLine(line);
      if (!note) return;
      logs.note(note);
      worker.print(`${identifier}  ${note.label}${note.detail ? `: ${note.detail}` : ''}`);
    },
    onPoll: () => void logs.flush(),
    pollIntervalMs: PROGRESS_POLL_INTERVAL_MS,
    signal: following.signal,
  });
  logs.note({ category: 'execution', status: 'running', label: 'Command started' });
  try {
    const end = await runCommand({
      command: worker.options.command,
      cwd: workspace.root,
      environment: {
        ...runEnvironment(worker.options, workspace, {
          organizationId: claim.organizationId,
          runId: held.lease.runId,
          executionToken: run.executionToken,
          mode: claim.mode,
        }),
        OUTPUT_DIR: workspace.outputs,
        PROGRESS_FILE: workspace.progressFile,
        PLAN_FILE: workspace.planFile,
        VERDICT_FILE: workspace.verdictFile,
      },
      timeoutMs: worker.options.timeoutMs,
      signal: held.signal,
      onLine: (line) => worker.print(`${identifier}  | ${line}`),
      onStarted: worker.gate.works,
    });
    worker.gate.ended(end.exitCode);
    const how = end.signal ? `stopped by ${end.signal}` : `exit status ${end.exitCode}`;
    const status = end.exitCode === 0 ? 'completed' : 'failed';
    following.abort();
    await followed;
    logs.note({
      category: 'execution',
      status,
      label: 'Command ended',
      detail: `${how} after ${formatSeconds(end.elapsedMs)}`,
    });
    const said = status === 'failed' ? end.errors.text(held.lease.secrets ?? []) : '';
    if (said !== '') {
      const detail = said.replaceAll('\n', ' | ').slice(-MAX_DETAIL);
      logs.note({ category: 'execution', status, label: 'Standard error', detail });
    }
    worker.print(`${identifier}  command ended: ${how} after ${formatSeconds(end.elapsedMs)}`);
    return end;
  } finally {
    following.abort();
    await followed;
  }
}
