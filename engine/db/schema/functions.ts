import type { Client } from 'pg';
import { applyAccess, type Declared } from './access.ts';
import { explain, type SqlFile, sqlState } from './files.ts';

const CREATES = /create\s+(?:or\s+replace\s+)?(?:function|procedure)\s+app\."?(\w+)"?/gi;
/** Those that own functions may create them while the files are applied, and at no other time. */
const FUNCTION_OWNERS = ['runner_scoped', 'runner_global', 'runner_report'];
/** The text does not fit the function that is there: invalid_function_definition, ambiguous_function. */
const DOES_NOT_FIT = ['42P13', '42725'];

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

async function drop(client: Client, signatures: Iterable<string>): Promise<void> {
  for (const signature of signatures) await client.query(`drop routine ${signature}`);
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
  const { rows } = await client.query<{ name: string }>(
    'select quote_ident(rolname) as name from pg_roles where rolname = any ($1)',
    [FUNCTION_OWNERS],
  );
  const direction = verb === 'grant' ? 'to' : 'from';
  for (const { name } of rows) await client.query(`${verb} create on schema app ${direction} ${name}`);
}

async function applyAll(
  client: Client,
  files: readonly SqlFile[],
  declared: Declared,
  recorded: readonly string[],
): Promise<string[]> {
  const owned = new Map<string, string[]>();
  let before = await routines(client);
  const touched = new Set<number>();
  for (const file of files) {
    await applyFile(client, file);
    const after = await routines(client);
    const versions = new Map(before.map((routine) => [routine.oid, routine.version]));
    const names = createdNames(file);
    const made = after.filter(
      (routine) => names.includes(routine.name) && versions.get(routine.oid) !== routine.version,
    );
    for (const routine of made) touched.add(routine.oid);
    owned.set(
      file.path,
      made.map((routine) => routine.signature),
    );
    before = after;
  }
  // Old argument lists would stay behind as overloads, and functions of removed files for ever.
  const names = new Set(before.filter((routine) => touched.has(routine.oid)).map((routine) => routine.name));
  const stale = before
    .filter((routine) => !touched.has(routine.oid))
    .filter((routine) => names.has(routine.name) || recorded.includes(routine.signature))
    .map((routine) => routine.signature);
  await drop(client, stale);
  const current = before.filter((routine) => touched.has(routine.oid));
  await applyAccess(client, declared, new Map(current.map((routine) => [routine.name, routine.signature])));
  await client.query('delete from app.schema_functions');
  for (const file of [...files, declared.file]) {
    await client.query('insert into app.schema_functions (path, sha256, functions) values ($1, $2, $3)', [
      file.path,
      file.sha256,
      owned.get(file.path) ?? [],
    ]);
  }
  return stale;
}

/**
 * Applies all function files in one transaction when the text of any, or what is declared of them, changed: callers see the old functions or the new
 * ones, never a mixture. The caller holds the migration lock.
 */
export async function applyFunctions(
  client: Client,
  files: readonly SqlFile[],
  declared: Declared,
  log: (line: string) => void,
): Promise<boolean> {
  const { rows } = await client.query<{ path: string; sha256: string; functions: string[] }>(
    'select path, sha256, functions from app.schema_functions',
  );
  const hashes = new Map(rows.map((row) => [row.path, row.sha256]));
  const sources = [...files, declared.file];
  if (rows.length === sources.length && sources.every((file) => hashes.get(file.path) === file.sha256)) return false;
  await client.query('begin');
  try {
    // Functions call each other: bodies are checked when they run. Names are written out, so the path is not needed.
    await client.query('set local check_function_bodies = off; set local search_path = pg_catalog, pg_temp');
    await setCreate(client, 'grant');
    const dropped = await applyAll(
      client,
      files,
      declared,
      rows.flatMap((row) => row.functions),
    );
    await setCreate(client, 'revoke');
    await client.query('commit');
    log(`applied ${files.length} function files${dropped.length > 0 ? `, dropped ${dropped.join(', ')}` : ''}`);
    return true;
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}
