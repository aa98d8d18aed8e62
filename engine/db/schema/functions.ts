import type { Client } from 'pg';
import { applyAccess, type Declared } from './access.ts';
import { explain, type SqlFile, sqlState } from './files.ts';
import { type Record, recordedFiles, recordFiles } from './records.ts';

const CREATES = /create\s+(?:or\s+replace\s+)?(?:function|procedure)\s+app\."?(\w+)"?/gi;
/** Those that own functions may create them while the files are applied, and at no other time. */
const FUNCTION_OWNERS = ['runner_scoped', 'runner_global', 'runner_report'];
/** The text does not fit the function that is there: invalid_function_definition, ambiguous_function. */
const DOES_NOT_FIT = ['42P13', '42725'];

/** A folder of function files, and what is declared of them: nothing where there are none. */
export type FunctionFolder = Readonly<{ name: string; files: readonly SqlFile[]; declared: Declared | undefined }>;

type Routine = Readonly<{ oid: number; version: string; name: string; signature: string }>;

function createdNames(file: SqlFile): readonly string[] {
  return [...file.text.matchAll(CREATES)].map((match) => match[1] ?? '');
}

/** Every routine of the schema; `version` changes whenever one is created, replaced or altered. */
async function routines(client: Client): Promise<readonly Routine[]> {
  const { rows } = await client.query<Routine>(
    `select p.oid::int8::float8 as oid, p.xmin::text || '.' || p.cmin::text as version, p.proname as name,
            format('app.%I(%s)', p.proname, oidvectortypes(p.proargtypes)) as signature
     from pg_proc p
     where p.pronamespace = 'app'::regnamespace and p.prokind in ('f', 'p')`,
  );
  return rows;
}

function signatures(list: readonly Routine[]): ReadonlyMap<string, string> {
  return new Map(list.map(({ name, signature }) => [name, signature]));
}

async function drop(client: Client, list: Iterable<string>): Promise<void> {
  for (const signature of list) await client.query(`drop routine ${signature}`);
}

/** Applies one file; functions that it cannot replace, for their shape changed, are dropped and made anew. */
async function applyFile(client: Client, file: SqlFile): Promise<void> {
  try {
    await client.query('savepoint function_file');
    try {
      await client.query(file.text);
    } catch (error) {
      if (!DOES_NOT_FIT.includes(sqlState(error) ?? '')) throw error;
      await client.query('rollback to savepoint function_file');
      const names = createdNames(file);
      const same = (await routines(client)).filter((routine) => names.includes(routine.name));
      await drop(
        client,
        same.map((routine) => routine.signature),
      );
      await client.query(file.text);
    }
    await client.query('release savepoint function_file');
  } catch (error) {
    throw explain(file, error);
  }
}

async function setCreate(client: Client, verb: 'grant' | 'revoke'): Promise<void> {
  const { rows } = await client.query<{ names: string | null }>(
    `select string_agg(quote_ident(rolname), ', ') as names from pg_roles where rolname = any ($1)`,
    [FUNCTION_OWNERS],
  );
  if (rows[0]?.names)
    await client.query(`${verb} create on schema app ${verb === 'grant' ? 'to' : 'from'} ${rows[0].names}`);
}

/** One transaction in which the owners of functions may create them. */
async function inTransaction<Result>(client: Client, apply: () => Promise<Result>): Promise<Result> {
  await client.query('begin');
  try {
    // Functions call each other: bodies are checked when they run. Names are written out, so the path is not needed.
    await client.query('set local check_function_bodies = off; set local search_path = pg_catalog, pg_temp');
    await setCreate(client, 'grant');
    const result = await apply();
    await setCreate(client, 'revoke');
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}

async function applyAll(
  client: Client,
  folders: readonly FunctionFolder[],
  recorded: readonly string[],
): Promise<string[]> {
  const versions = new Map((await routines(client)).map((routine) => [routine.oid, routine.version]));
  for (const file of folders.flatMap(({ files }) => files)) await applyFile(client, file);
  const after = await routines(client);
  const made = after.filter((routine) => versions.get(routine.oid) !== routine.version);
  // Old argument lists would stay behind as overloads, and functions of removed files for ever.
  const names = new Set(made.map((routine) => routine.name));
  const stale = after
    .filter((routine) => !made.includes(routine))
    .filter((routine) => names.has(routine.name) || recorded.includes(routine.signature))
    .map((routine) => routine.signature);
  await drop(client, stale);
  const byName = Map.groupBy(made, (routine) => routine.name);
  const madeBy = (file: SqlFile) => [...new Set(createdNames(file))].flatMap((name) => byName.get(name) ?? []);
  const records: Record[] = [];
  for (const { files, declared } of folders) {
    if (!declared) continue;
    await applyAccess(client, declared, signatures(files.flatMap(madeBy)));
    for (const file of files) records.push({ file, functions: madeBy(file).map(({ signature }) => signature) });
    records.push({ file: declared.file });
  }
  await recordFiles(
    client,
    folders.map(({ name }) => name),
    records,
  );
  return stale;
}

/**
 * Creates those functions of triggers that are not there yet, so that the migration which makes their table can name them.
 * Functions that are there stay as they are until the migrations are through.
 */
export async function createTriggerFunctions(client: Client, { files, declared }: FunctionFolder): Promise<void> {
  const there = new Set((await routines(client)).map((routine) => routine.name));
  const missing = files.filter((file) => !createdNames(file).every((name) => there.has(name)));
  if (missing.length === 0 || !declared) return;
  await inTransaction(client, async () => {
    for (const file of missing) await applyFile(client, file);
    const names = missing.flatMap(createdNames);
    const made = (await routines(client)).filter((routine) => names.includes(routine.name));
    await applyAccess(client, { ...declared, partial: true }, signatures(made));
  });
}

/**
 * Applies all function files in one transaction when the text of any, or what is declared of them, changed: callers see the
 * old functions or the new ones, never a mixture. The caller holds the migration lock.
 */
export async function applyFunctions(
  client: Client,
  folders: readonly FunctionFolder[],
  log: (line: string) => void,
): Promise<boolean> {
  const files = folders.flatMap((folder) => folder.files);
  const declarations = folders.flatMap(({ declared }) => declared?.file ?? []);
  const recorded = await recordedFiles(
    client,
    folders.map(({ name }) => name),
  );
  if (recorded.same([...files, ...declarations])) return false;
  const dropped = await inTransaction(client, () => applyAll(client, folders, recorded.functions));
  log(`applied ${files.length} function files${dropped.length > 0 ? `, dropped ${dropped.join(', ')}` : ''}`);
  return true;
}
