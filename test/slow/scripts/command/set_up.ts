import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';
import { bareEnvironment } from '../../../support/environment.ts';
import { openFolder } from '../../../support/folders.ts';
import { gitEnvironment } from '../../../support/git_origin.ts';

export const SHIM = path.resolve(import.meta.dirname, '../../../../scripts/command/business-runner.mjs');

type Run = Readonly<{ url: string; token: string; organizationId: string }>;

/** A folder with the command on the PATH, and the environment of a run. */
export async function openRun(t: Test, { url, token, organizationId }: Run) {
  const folder = await openFolder(t);
  const bin = path.join(folder, 'bin');
  await mkdir(bin);
  await symlink(SHIM, path.join(bin, 'business-runner'));
  const environment: Record<string, string> = {
    ...(bareEnvironment({}) as Record<string, string>),
    ...(gitEnvironment() as Record<string, string>),
    PATH: `${bin}:${process.env['PATH']}`,
    BUSINESS_RUNNER_URL: url.replace(/\/$/, ''),
    BUSINESS_RUNNER_TOKEN: token,
    BUSINESS_RUNNER_ORGANIZATION: organizationId,
    INPUT_DIR: folder,
  };
  async function run(program: string, ...argv: string[]) {
    const child = spawn(program, argv, { cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { status, out, err };
  }
  return { folder, environment, run };
}
