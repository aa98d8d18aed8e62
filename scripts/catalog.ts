import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { z } from 'zod';
import { type Catalog, catalogRevision, catalogSchema } from '../engine/catalog/index.ts';
import { ConfigError, readConfig } from '../engine/config.ts';
import { functionText } from '../engine/db/function_text.ts';
import { NoDatabaseError, operatorClient, operatorDatabaseUrl } from './database_url.ts';
import { loadEnvironmentFile } from './environment_file.ts';
import { printErrorText, printText } from './terminal.ts';

const USAGE = `npm run catalog -- COMMAND: the template catalog that agent profiles are provisioned from

  publish FILE   publishes a catalog; it becomes the current one, earlier ones stay what they are
  show           says which catalog is current, and what is in it
  show --json    prints the current catalog as JSON (npm run -s catalog -- show --json > catalog.json)

The database is that of DATABASE_URL, with the login that migrates it; without it the one that npm start runs on DATA_DIR.
With --no-env-file the settings in .env are not read.
`;

/** What a person can mend, in one line. */
class CatalogError extends Error {
  override name = 'CatalogError';
}

function readCatalog(file: string): Catalog {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new CatalogError(`${file}: ${error instanceof Error ? error.message : error}`);
  }
  const parsed = catalogSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new CatalogError(`${file} is no catalog:\n${z.prettifyError(parsed.error)}`);
}

async function publish(client: pg.Client, file: string): Promise<string> {
  const catalog = readCatalog(file);
  const revision = catalogRevision(catalog);
  // With its entry in the audit log, as by an administrator: the login is all that is known of who types.
  const admin = `session_user || ' (command line)'`;
  const publishing = functionText('admin_catalog_publish', { revision: '$1', catalog: '$2', admin });
  const { rows } = await client.query(`select ${publishing} as result`, [revision, catalog]);
  const { published } = z.object({ published: z.boolean() }).parse(rows[0]?.result);
  const profiles = `${catalog.profiles.length} profiles`;
  return published ? `published ${revision} (${profiles}); it is current now` : `${revision} is published already`;
}

async function show(client: pg.Client, asJson: boolean): Promise<string> {
  const { rows } = await client.query(
    'select revision, catalog, published_at from app.agent_catalogs order by ordinal desc limit 1',
  );
  if (!rows[0]) return 'no catalog is published';
  const { revision, published_at: publishedAt, catalog } = rows[0];
  if (asJson) return JSON.stringify(catalog, null, 2);
  const lines = catalogSchema.parse(catalog).profiles.map(({ key, kind, summary }) => {
    return `  ${key.padEnd(14)} ${kind.padEnd(11)} ${summary.split('. ')[0]}.`;
  });
  return [`revision ${revision}, version ${catalog.version}, published ${publishedAt.toISOString()}`, ...lines].join(
    '\n',
  );
}

async function main(): Promise<void> {
  const options = { json: { type: 'boolean' }, help: { type: 'boolean' } } as const;
  const { values, positionals } = parseArgs({
    args: loadEnvironmentFile(process.argv.slice(2)),
    options,
    allowPositionals: true,
  });
  const [command, file] = positionals;
  const known = (command === 'publish' && file !== undefined) || (command === 'show' && file === undefined);
  if (values.help || !known || positionals.length > 2) {
    printText(USAGE);
    process.exitCode = values.help ? 0 : 64;
    return;
  }
  const config = readConfig();
  const client = await operatorClient(operatorDatabaseUrl(config), { application_name: 'business-runner catalog' });
  try {
    // Publishing is for operators: no login of the API or the jobs may become this role.
    await client.query('set role runner_global').catch((error: Error) => {
      throw new CatalogError(`this database or login is not one that npm run migrate was used with: ${error.message}`);
    });
    const said = command === 'publish' ? await publish(client, file ?? '') : await show(client, values.json ?? false);
    printText(`${said}\n`);
  } finally {
    await client.end();
  }
}

try {
  await main();
} catch (error) {
  const badOption = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  const known = [ConfigError, CatalogError, NoDatabaseError].some((kind) => error instanceof kind);
  if (!known && !badOption) throw error;
  printErrorText(`${(error as Error).message}\n`);
  process.exitCode = error instanceof ConfigError ? 78 : badOption ? 64 : 1;
}
