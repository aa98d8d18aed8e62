import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { ConfigError, readConfig } from '../engine/config.ts';
import { findPostgresError, raisedProblem } from '../engine/db/errors.ts';
import { dictionary } from './analyst/dictionary.ts';
import { AnalystError, addAnalyst, findOrganizations, listAnalysts, removeAnalyst } from './analyst/logins.ts';
import { NoDatabaseError, operatorClient, operatorDatabaseUrl } from './database_url.ts';
import { loadEnvironmentFile } from './environment_file.ts';
import { printError, printErrorText, printText } from './terminal.ts';

const USAGE = `npm run analyst -- COMMAND: logins that read the views of schema reporting, and nothing else

  add NAME --organization ID…   makes a login that reads these organizations, by id or slug, and prints its password once; a
                                login that is there already keeps its password and reads these organizations too
  add NAME --all                the same for every organization, also those that are made later
    --password-file FILE        writes the password to FILE, which must not exist, instead of printing it
  list                          says which logins there are, and what they read
  remove NAME                   takes everything from the login, ends its sessions and drops it
  dictionary                    prints what the views and their columns mean (sql/reporting/README.md)

The database is that of DATABASE_URL, with the login that migrates it; without it the one that npm start runs on DATA_DIR.
With --no-env-file the settings in .env are not read.
`;

type Options = Readonly<{ organization?: string[]; all?: boolean; 'password-file'?: string }>;

/** How to connect, without the password; libpq asks for it. */
function connection(url: string, name: string): string {
  const { hostname, port, pathname } = new URL(url);
  const database = decodeURIComponent(pathname.slice(1));
  return `psql "host=${hostname} port=${port || 5432} dbname=${database} user=${name}"`;
}

async function add(client: pg.Client, url: string, name: string, options: Options): Promise<string> {
  const file = options['password-file'];
  const organizationIds = await findOrganizations(client, options.organization ?? []);
  if (file !== undefined && existsSync(file)) throw new AnalystError(`${file} exists already`);
  let written = false;
  const keep = (password: string) => {
    if (file === undefined) return;
    // Never readable by others, not even for a moment.
    try {
      writeFileSync(file, `${password}\n`, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      throw new AnalystError(`the password cannot be written: ${(error as Error).message}`);
    }
    written = true;
  };
  try {
    const { granted, password, notes } = await addAnalyst(
      client,
      name,
      { all: options.all ?? false, organizationIds },
      keep,
    );
    const reads = granted.all ? 'every organization' : granted.organizationIds.join(', ');
    const secret = file === undefined ? `password, shown this once: ${password}` : `the password is in ${file}`;
    return [
      `${name} reads ${reads}`,
      password === undefined ? 'the login was there already and keeps its password' : secret,
      connection(url, name),
      ...notes.map((note) => `note: ${note}`),
    ].join('\n');
  } catch (error) {
    if (written && file !== undefined) rmSync(file, { force: true });
    throw error;
  }
}

async function list(client: pg.Client): Promise<string> {
  const analysts = await listAnalysts(client);
  if (analysts.length === 0) return 'there are no analysts';
  const lines = analysts.map(({ login, all, organizations, gone }) => {
    const reads = all ? 'every organization' : organizations.map(({ slug }) => slug).join(', ') || 'nothing any more';
    return `${login.padEnd(24)} ${reads}${gone ? ' (its login is gone: npm run analyst -- remove it)' : ''}`;
  });
  return lines.join('\n');
}

async function remove(client: pg.Client, name: string): Promise<string> {
  const ended = await removeAnalyst(client, name);
  if (ended === undefined) {
    return `took from ${name} what an earlier login of the name was given; the login that has it now is another one, and stays`;
  }
  return `removed ${name}${ended > 0 ? `, ended ${ended} of its sessions` : ''}`;
}

/** What is to be done; what is wrong with a command; or undefined for what is none. */
function commandOf(
  positionals: readonly string[],
  options: Options,
): ((client: pg.Client, url: string) => Promise<string>) | string | undefined {
  const [command, name, ...rest] = positionals;
  if (rest.length > 0) return undefined;
  if (command === 'add' && name !== undefined) {
    const [chosen, all] = [(options.organization?.length ?? 0) > 0, options.all ?? false];
    if (chosen && all) return '--all is every organization: leave --organization out, or --all';
    if (!chosen && !all) return `which organizations ${name} is to read is said by --organization ID or slug, or --all`;
    return (client, url) => add(client, url, name, options);
  }
  if (Object.keys(options).length > 0) return undefined;
  if (command === 'remove' && name !== undefined) return (client) => remove(client, name);
  if (command === 'list' && name === undefined) return list;
  if (command === 'dictionary' && name === undefined) return async (client) => (await dictionary(client)).trimEnd();
  return undefined;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: loadEnvironmentFile(process.argv.slice(2)),
    options: {
      organization: { type: 'string', multiple: true },
      all: { type: 'boolean' },
      'password-file': { type: 'string' },
      help: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  const { help, ...options } = values;
  const command = help ? undefined : commandOf(positionals, options);
  if (typeof command !== 'function') {
    if (command !== undefined) printError(command);
    printText(USAGE);
    process.exitCode = help ? 0 : 64;
    return;
  }
  const url = operatorDatabaseUrl(readConfig());
  const client = await operatorClient(url, { application_name: 'business-runner analyst' });
  try {
    printText(`${await command(client, url)}\n`);
  } finally {
    await client.end();
  }
}

/** One line for what a person can mend; undefined for what is a fault. */
function explained(error: unknown): string | undefined {
  if ([ConfigError, AnalystError, NoDatabaseError].some((kind) => error instanceof kind))
    return (error as Error).message;
  const found = findPostgresError(error);
  const problem = found && raisedProblem(found);
  if (problem) return problem.message;
  if (found?.code === '42501') return `the login of DATABASE_URL may not do this: ${found.message}`;
  if (found?.code === '42710' || found?.code === '23505') return 'the same analyst is being added at this moment';
  return undefined;
}

try {
  await main();
} catch (error) {
  const badOption = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  const line = badOption ? (error as Error).message : explained(error);
  if (line === undefined) throw error;
  printErrorText(`${line}\n`);
  process.exitCode = error instanceof ConfigError ? 78 : badOption ? 64 : 1;
}
