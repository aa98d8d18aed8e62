import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { workerApi } from '../../../scripts/worker/api.ts';
import { readOptions } from '../../../scripts/worker/options.ts';
import { pullLoop } from '../../../scripts/worker/pull_loop.ts';
import { type Script, standIn } from './stand_in.ts';

/** A worker inside the test, against a stand-in that hands out one chat. */
export async function setUpChat(t: Test, script: Script, argv: readonly string[], key?: string) {
  const server = await standIn(t, { chats: [{}], ...script });
  const scratch = await mkdtemp(path.join(tmpdir(), 'worker-chat-test-'));
  t.teardown(() => rm(scratch, { recursive: true, force: true }));
  const fixed = ['--url', server.url, '--token', 'service', '--scratch', scratch, '--worker-id', 'me', '--once'];
  const environment = { PATH: process.env['PATH'], BUSINESS_RUNNER_LLM_KEY: key };
  const options = readOptions([...fixed, ...argv], environment);
  if (!options) throw new Error('no options');
  const printed: string[] = [];
  const drain = new AbortController();
  const stop = new AbortController();
  const print = (line: string) => void printed.push(line);
  const worker = { api: workerApi(options), options, print, drain: drain.signal, stop: stop.signal };
  return { ...server, printed, drain, stop, scratch, worker, work: () => pullLoop(worker) };
}
