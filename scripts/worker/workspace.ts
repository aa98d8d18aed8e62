import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { lstat, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { Claim, Input } from './api.ts';
import { writeCommand } from './command_shim.ts';
import { taskText } from './task_text.ts';

/** The folder of one run. All of it belongs to the run and is removed with it. */
export type Workspace = Readonly<{
  root: string;
  inputs: string;
  outputs: string;
  progressFile: string;
  resultFile: string;
  /** What a plan or verify run decides. */
  planFile: string;
  verdictFile: string;
  usageFile: string;
  /** Comes first on the PATH of the run. */
  bin: string;
  /** What calls of `business-runner` share. */
  cache: string;
}>;

/** Something about the files of a run that is not as it has to be. */
export class WorkspaceError extends Error {
  override name = 'WorkspaceError';
}

/**
 * Where a path that came over the network lies below `root`.
 * @throws WorkspaceError for one that would lie anywhere else.
 */
export function pathBelow(root: string, given: string): string {
  const segments = given.split('/');
  const plain = segments.every((segment) => segment !== '' && segment !== '.' && segment !== '..');
  const joined = path.join(root, ...segments);
  if (!plain || /[\\\p{Cc}]/u.test(given) || path.relative(root, joined) !== path.join(...segments)) {
    throw new WorkspaceError(`not a path below the folder of the run: ${JSON.stringify(given.slice(0, 200))}`);
  }
  return joined;
}

/** Where the files of a run lie; nothing is made yet. @throws WorkspaceError */
export function workspaceAt(scratch: string, runId: string): Workspace {
  const root = pathBelow(scratch, runId);
  const at = (name: string) => path.join(root, name);
  return {
    root,
    inputs: at('inputs'),
    outputs: at('outputs'),
    progressFile: at('progress.log'),
    resultFile: at('result.json'),
    planFile: at('plan.json'),
    verdictFile: at('verdict.json'),
    usageFile: at('usage.json'),
    bin: at('.business-runner/bin'),
    cache: at('.business-runner/cache'),
  };
}

export async function makeFolders(workspace: Workspace): Promise<void> {
  const scratch = path.dirname(workspace.root);
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  // The temporary folder is everybody's: what somebody else made there under our name, or a link, is not for our files.
  const stats = await lstat(scratch);
  if (!stats.isDirectory() || (process.getuid && stats.uid !== process.getuid())) {
    throw new WorkspaceError('the scratch folder belongs to another user; give another one by --scratch');
  }
  // Not recursive: a folder that is there already was not made by this run.
  await mkdir(workspace.root, { mode: 0o700 });
  await mkdir(workspace.inputs);
  await mkdir(workspace.outputs);
  await mkdir(workspace.bin, { recursive: true });
  await writeCommand(workspace.bin);
  await writeFile(workspace.progressFile, '');
}

/** Writes what the task is, for people and for programs. */
export async function describeTask(
  workspace: Workspace,
  claim: Claim,
  run: Readonly<{ runId: string; inputs: readonly Input[]; timeoutMs: number }>,
): Promise<void> {
  const { runId, inputs, timeoutMs } = run;
  const { organizationId, attempt, mode, agentProfile, task } = claim;
  const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  await writeFile(path.join(workspace.root, 'task.json'), json(task));
  await writeFile(
    path.join(workspace.root, 'run.json'),
    json({ organizationId, runId, attempt, mode, agentProfile, inputs }),
  );
  await writeFile(path.join(workspace.root, 'TASK.md'), taskText(claim, inputs, timeoutMs));
}

/** Writes one input file, and checks that it is the one that was announced. @throws WorkspaceError */
export async function writeInput(
  workspace: Workspace,
  input: Input,
  content: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
): Promise<void> {
  const file = pathBelow(workspace.inputs, input.path);
  await mkdir(path.dirname(file), { recursive: true });
  const hash = createHash('sha256');
  let size = 0;
  const hashing = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      size += chunk.byteLength;
      yield chunk;
    }
  };
  await pipeline(content ? Readable.fromWeb(content) : Readable.from([]), hashing, createWriteStream(file), { signal });
  if (size !== input.sizeBytes || (input.sha256 && hash.digest('hex') !== input.sha256)) {
    throw new WorkspaceError(`the input ${input.path} did not arrive whole`);
  }
}

export async function removeWorkspace(workspace: Workspace): Promise<void> {
  await rm(workspace.root, { recursive: true, force: true });
}
