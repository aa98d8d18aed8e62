import { writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { openLogFile } from '../../../scripts/start/log_file.ts';
import { startService } from '../../../scripts/start/service.ts';
import { openFolder } from '../../support/folders.ts';
import { until } from '../../support/wait.ts';

/** A service that is ready at once, with the environments of its starts in turn; the last one is that of all others. */
async function startWith(test: Test, code: string, environments: readonly NodeJS.ProcessEnv[]) {
  const folder = await openFolder(test);
  const script = path.join(folder, 'service.mjs');
  writeFileSync(script, code);
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  const log = openLogFile(folder, 'service', { print });
  test.teardown(log.close);
  let starts = 0;
  const service = startService({
    ...{ name: 'service', script, log, print },
    environment: () => environments[Math.min(starts++, environments.length - 1)] ?? {},
  });
  test.teardown(() => service.stop(1_000));
  return { service, printed };
}

// More than a system passes to a process.
const TOO_MUCH = { LARGE: 'x'.repeat(8 * 1024 * 1024) };

t.test('a service that cannot be started is started when it can be', async (test) => {
  const code = `
    process.send({ type: 'ready' });
    process.on('disconnect', () => process.exit());
    if (process.env.DIES) process.exit(3);`;
  const { service, printed } = await startWith(test, code, [{ DIES: '1' }, TOO_MUCH, TOO_MUCH, {}]);
  await service.ready;
  await until('it runs', () => printed.includes('service is running again'));
  test.match(printed, [
    /^service ended with status 3, restarting in 0\.5 s/,
    /^service could not be started \(spawn E2BIG\), restarting in 1 s/,
    /^service could not be started \(spawn E2BIG\), restarting in 2 s/,
    'service is running again',
  ]);
});

t.test('a service that cannot be started at first says so', async (test) => {
  const { service } = await startWith(test, '', [TOO_MUCH]);
  await test.rejects(service.ready, {
    name: 'ServiceError',
    message: /^service could not be started \(spawn E2BIG\) before it was ready/,
  });
  await service.stop(1_000);
});

t.test('a service tells that its log cannot be written', async (test) => {
  const code = `
    for (const message of [{ type: 'ready' }, { type: 'log', reason: 'no room' }, { type: 'log', reason: null, leftOut: 7 }])
      process.send(message);
    process.on('disconnect', () => process.exit());`;
  const { service, printed } = await startWith(test, code, [{}]);
  await service.ready;
  await until('it is told', () => printed.length === 2);
  test.match(printed, [
    /^service cannot write \/.*service\.log: no room$/,
    /^\/.*service\.log is written again; 7 lines of service were left out$/,
  ]);
});
