import { startProcesses } from './start/processes.ts';
import { aborted, supervise } from './start/supervise.ts';
import { printLine, printText } from './terminal.ts';

await supervise({
  name: 'npm start',
  usage: `npm start: everything on this machine: an embedded Postgres (unless DATABASE_URL is set), the API and the jobs.

  -- --help         shows this
  -- --no-env-file  does not read the settings in .env

`,
  async run(config, signal) {
    await using processes = await startProcesses(config, { signal, print: printLine });
    printText(processes.screen);
    await aborted(signal);
  },
});
