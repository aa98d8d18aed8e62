import { ConfigError, readConfig } from '../engine/config.ts';
import { MigrateError, migrate } from '../engine/db/migrate.ts';
import { settingsHelp } from '../engine/settings_text.ts';
import { loadEnvironmentFile } from './environment_file.ts';
import { printErrorText, printLine, printText } from './terminal.ts';

const USAGE = `npm run migrate: brings the database of DATABASE_URL to the state of this version.
The login must be a superuser, or own the database and have CREATEROLE. npm start migrates by itself.
With --no-env-file the settings in .env are not read.
`;

async function main(): Promise<void> {
  if (loadEnvironmentFile(process.argv.slice(2)).includes('--help')) {
    printText(`${USAGE}\n${settingsHelp()}`);
    return;
  }
  const config = readConfig();
  // The direct connection where there is one: the lock of the migration belongs to a session.
  const url = config.listenDatabaseUrl;
  if (!url)
    throw new ConfigError('DATABASE_URL: required by npm run migrate (the embedded database is migrated by npm start)');
  const done = await migrate(url, { log: printLine });
  if (done.migrations.length === 0 && !done.functions && !done.views) printLine('nothing to migrate');
}

try {
  await main();
} catch (error) {
  if (!(error instanceof ConfigError) && !(error instanceof MigrateError)) throw error;
  printErrorText(`${error.message}\n`);
  process.exitCode = error instanceof ConfigError ? 78 : 1;
}
