import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { ConfigError, environmentWithoutLibpq, readConfig } from '../engine/config.ts';
import { NoDatabaseError, operatorDatabaseUrl } from './database_url.ts';
import { loadEnvironmentFile } from './environment_file.ts';
import { printError, printErrorText, printText } from './terminal.ts';

const USAGE = `npm run psql [-- options] [-- arguments of psql]: psql on the database of the running npm start

  --role ROLE        admin      reads every organization; writes only by app.admin_… functions (default)
                     api, jobs  the rights of that process; api reads the tenant of --organization
                     superuser  may do everything, row security does not apply
  --organization ID  the tenant that row security shows (sets app.organization_id)
  --no-env-file      does not read the settings in .env
  --help

  npm run psql -- --role superuser
  npm run psql -- --organization ID -- -c 'select identifier_scope, identifier_number, status, title from tasks'

It uses DATABASE_URL where that is set, else the embedded database of DATA_DIR. The search path is app, reporting.
`;

const EX_USAGE = 64;
const EX_CONFIG = 78;
const EX_NOT_FOUND = 127;
const ROLES = ['admin', 'api', 'jobs', 'superuser'];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The command line is wrong. */
class UsageError extends Error {
  override name = 'UsageError';
}

function readArguments(argv: readonly string[]) {
  const end = argv.indexOf('--');
  const own = end === -1 ? argv : argv.slice(0, end);
  const { values } = (() => {
    try {
      return parseArgs({
        args: [...own],
        options: { role: { type: 'string' }, organization: { type: 'string' }, help: { type: 'boolean' } },
      });
    } catch (error) {
      throw new UsageError((error as Error).message);
    }
  })();
  const { role = 'admin', organization, help = false } = values;
  if (!ROLES.includes(role)) throw new UsageError(`--role must be ${ROLES.join(', ')}`);
  if (organization !== undefined && !UUID.test(organization)) throw new UsageError('--organization must be a UUID');
  return { role, organization: organization ?? '', help, psql: end === -1 ? [] : argv.slice(end + 1) };
}

/** The URL without its password, for the command line, which others see; with the role and the tenant. */
function connectionOf(url: string, role: string, organization: string) {
  const parsed = new URL(url);
  // Of two, libpq and the driver of Node take the one in the query.
  const password = parsed.searchParams.getAll('password').at(-1) || decodeURIComponent(parsed.password);
  parsed.password = '';
  parsed.searchParams.delete('password');
  const settings = [
    ...(role === 'superuser' ? [] : [`-c role=runner_${role}`]),
    `-c app.organization_id=${organization}`,
    '-c search_path=app,reporting',
  ];
  const options = [parsed.searchParams.get('options') ?? process.env['PGOPTIONS'], ...settings]
    .filter(Boolean)
    .join(' ');
  parsed.searchParams.set('options', options);
  // libpq does not read + as a space.
  parsed.search = parsed.search.replaceAll('+', '%20');
  return { url: parsed.href, password };
}

function missingPsql(url: string): string {
  const { username, host, pathname, hostname } = new URL(url);
  const embedded = hostname === '127.0.0.1' ? ' (the embedded one has it in database-passwords.json, in DATA_DIR)' : '';
  return `psql is not installed. Debian and Ubuntu: apt install postgresql-client; macOS: brew install libpq.
Any other client connects with
  postgres://${username}:PASSWORD@${host}${pathname}
and the password of ${username || 'the login'}${embedded}; then: set role runner_admin; set app.organization_id = '';
`;
}

async function main(): Promise<void> {
  const { role, organization, help, psql } = readArguments(loadEnvironmentFile(process.argv.slice(2)));
  if (help) {
    printText(USAGE);
    return;
  }
  // With DATABASE_URL, psql reads libpq's environment itself; what we make of it is for the driver of Node.
  const { url, password } = connectionOf(
    operatorDatabaseUrl(readConfig(environmentWithoutLibpq())),
    role,
    organization,
  );
  // Ctrl-C is for psql: it cancels the query there.
  process.on('SIGINT', () => {});
  const child = spawn('psql', ['--dbname', url, ...psql], {
    env: { ...process.env, ...(password === '' ? {} : { PGPASSWORD: password }) },
    stdio: 'inherit',
  });
  try {
    const [status] = await once(child, 'exit');
    process.exitCode = status ?? 1;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    printErrorText(missingPsql(url));
    process.exitCode = EX_NOT_FOUND;
  }
}

try {
  await main();
} catch (error) {
  if (![UsageError, ConfigError, NoDatabaseError].some((kind) => error instanceof kind)) throw error;
  const usage = error instanceof UsageError ? '; see npm run psql -- --help' : '';
  printError(`${(error as Error).message}${usage}`);
  process.exitCode = error instanceof UsageError ? EX_USAGE : error instanceof ConfigError ? EX_CONFIG : 1;
}
