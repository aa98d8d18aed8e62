import path from 'node:path';
import type { WorkerOptions } from './options.ts';
import type { Workspace } from './workspace.ts';

/** What the command of a run or a chat turn finds in its environment, besides what is that of one of them alone. */
export function runEnvironment(
  { url, environment }: Pick<WorkerOptions, 'url' | 'environment'>,
  { bin, cache, inputs, resultFile, usageFile }: Workspace,
  run: Readonly<{ organizationId: string; runId: string; executionToken: string; mode: string }>,
): NodeJS.ProcessEnv {
  const { PATH = '/usr/local/bin:/usr/bin:/bin' } = environment;
  return {
    ...environment,
    PATH: `${bin}${path.delimiter}${PATH}`,
    BUSINESS_RUNNER_URL: url,
    BUSINESS_RUNNER_TOKEN: run.executionToken,
    BUSINESS_RUNNER_ORGANIZATION: run.organizationId,
    BUSINESS_RUNNER_RUN: run.runId,
    BUSINESS_RUNNER_CACHE: cache,
    BUSINESS_RUNNER_MODE: run.mode,
    INPUT_DIR: inputs,
    RESULT_FILE: resultFile,
    USAGE_FILE: usageFile,
  };
}
