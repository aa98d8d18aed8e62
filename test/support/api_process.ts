import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SERVICE_TOKEN } from './app.ts';
import type { TearDown } from './database.ts';
import { bareEnvironment } from './environment.ts';

const main = path.resolve(import.meta.dirname, '../../api/main.ts');

export type ApiProcess = Readonly<{
  child: ChildProcess;
  /** Empty where it did not come up. */
  url: string;
  output: () => string;
  exit: Promise<number | null>;
}>;

/** The API as a process of its own, as the supervisor starts it. */
export async function startApi(t: TearDown, environment: Record<string, string>): Promise<ApiProcess> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runner-main-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const child = spawn(process.execPath, [main], {
    env: bareEnvironment({
      PORT: '0',
      DATA_DIR: folder,
      AGENT_SERVICE_TOKENS: SERVICE_TOKEN,
      ...environment,
    }),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
  }
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exit;
  });
  const ready = once(child, 'message').then(([message]) => message as { type: string; url: string });
  const first = await Promise.race([ready, exit]);
  const url = typeof first === 'object' && first !== null ? first.url : '';
  return { child, url, output: () => text, exit };
}
