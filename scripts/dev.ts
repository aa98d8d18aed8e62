import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import pretty from 'pino-pretty';
import { environmentWith } from '../engine/config.ts';
import { type Work, watchChanges, workOf } from './dev/changes.ts';
import { followLog } from './dev/follow_log.ts';
import { openLogFile } from './start/log_file.ts';
import { type Processes, startProcesses } from './start/processes.ts';
import { aborted, supervise } from './start/supervise.ts';
import { printLine, printText } from './terminal.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const RESTART_GRACE_MS = 5_500;

const USAGE = `npm run dev: npm start for development. Prints readable logs, and applies each change of a file:

  sql/**/*.sql         migrates (new migrations, changed functions and views), restarts the API and the jobs
  engine/**/*.ts       restarts the API and the jobs
  api/**, jobs/**      restarts the API, or the jobs

A change in scripts/ or package.json needs a restart by hand. LOG_LEVEL=debug logs more. npm run psql, npm run seed and
npm run demo work in another terminal.

  -- --help         shows this
  -- --no-env-file  does not read the settings in .env

`;

/** A stream that turns JSON lines into lines for a person; a request becomes `GET /path 200 3 ms`. */
function readableLogs() {
  return pretty({
    ignore: 'pid,hostname,method,path,status,ms',
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
    messageFormat: ({ msg, method, path: requestPath, status, ms }) =>
      msg === 'request' ? `${method} ${requestPath} ${status} ${ms} ms` : String(msg),
  });
}

/** By a process of its own, which reads the changed code. */
async function migrate(url: string): Promise<boolean> {
  const child = spawn(process.execPath, [path.join(ROOT, 'scripts', 'migrate.ts'), '--no-env-file'], {
    env: environmentWith({ DATABASE_URL: url, LISTEN_DATABASE_URL: undefined }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  const output = `${out}${err}`.trim();
  if (output !== '') printText(`${output}\n`);
  if (status === 0) return true;
  printLine('The migration failed: the API and the jobs go on with the database as it was. npm run reset begins anew.');
  return false;
}

async function apply(files: readonly string[], { api, jobs, migrateUrl }: Processes): Promise<void> {
  const works = files.map(workOf).filter((work) => work !== undefined);
  const needs = (part: keyof Work) => works.some((work) => work[part]);
  printLine(`changed: ${files.slice(0, 5).join(', ')}${files.length > 5 ? ` and ${files.length - 5} more` : ''}`);
  if (needs('migrate') && !(await migrate(migrateUrl))) return;
  await Promise.all([
    needs('api') ? api.restart(RESTART_GRACE_MS) : undefined,
    needs('jobs') ? jobs.restart(RESTART_GRACE_MS) : undefined,
  ]);
}

await supervise({
  name: 'npm run dev',
  usage: USAGE,
  async run(config, signal) {
    const output = readableLogs();
    await using processes = await startProcesses(config, {
      signal,
      print: printLine,
      openLog(dataDir, name, options) {
        const file = openLogFile(dataDir, name, options);
        const stop = followLog(file.path, output);
        return {
          ...file,
          close() {
            file.close();
            stop();
          },
        };
      },
    });
    const stopWatching = await watchChanges(
      ROOT,
      (files) => apply(files, processes),
      (error) => printLine(`Changes of some files are not seen: ${error.message}`),
    );
    printText(processes.screen);
    printLine('Watching api, engine, jobs and sql for changes.');
    await aborted(signal);
    await stopWatching();
  },
});
