// A worker over a stand-in for the API.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { workerApi } from '../../../scripts/worker/api.ts';
import { readOptions } from '../../../scripts/worker/options.ts';
import { pullLoop } from '../../../scripts/worker/pull_loop.ts';
import { type Script, standIn } from './stand_in.ts';

export async function setUp(t: Test, script: Script, command: string, argv: string[] = ['--once']) {
  const server = await standIn(t, script);
  const scratch = await mkdtemp(path.join(tmpdir(), 'worker-run-test-'));
  t.teardown(() => rm(scratch, { recursive: true, force: true }));
  const given = [
    '--exec',
    command,
    '--url',
    server.url,
    '--token',
    'service',
    '--scratch',
    scratch,
    '--worker-id',
    'me',
  ];
  const options = readOptions([...given, ...argv], { PATH: process.env['PATH'] });
  if (!options) throw new Error('no options');
  const printed: string[] = [];
  const drain = new AbortController();
  const stop = new AbortController();
  const work = () =>
    pullLoop({
      api: workerApi(options),
      options,
      print: (line) => printed.push(line),
      drain: drain.signal,
      stop: stop.signal,
    });
  return { ...server, printed, drain, stop, work, scratch, command };
}
