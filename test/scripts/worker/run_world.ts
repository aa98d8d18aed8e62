// A worker over a stand-in for the API.
import type { Test } from 'tap';
import { workerApi } from '../../../scripts/worker/api.ts';
import { readOptions } from '../../../scripts/worker/options.ts';
import { pullLoop } from '../../../scripts/worker/pull_loop.ts';
import { openFolder } from '../../support/folders.ts';
import { type Script, standIn } from './stand_in.ts';

/** @param environment of the worker itself */
export async function setUp(
  t: Test,
  script: Script,
  command: string,
  argv: readonly string[] = ['--once'],
  environment: Readonly<Record<string, string>> = {},
) {
  const server = await standIn(t, script);
  const scratch = await openFolder(t);
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
  const options = readOptions([...given, ...argv], { PATH: process.env['PATH'], ...environment });
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
