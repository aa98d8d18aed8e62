import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Client } from 'pg';
import { z } from 'zod';
import { digestOf, explain, MigrateError, type SqlFile } from './files.ts';

const FILE = 'access.json';
const SEARCH_PATH = 'pg_catalog, pg_temp';
/** Names the login that migrates, where an owner is expected: it keeps what it creates. */
const MIGRATING_LOGIN = 'migrating_login';

const Name = z.string().regex(/^[a-z][a-z0-9_]*$/);
const Access = z.strictObject({
  /** Owns every function that `owners` does not name. */
  defaultOwner: Name,
  owners: z.record(Name, z.array(Name)),
  /** Role → folder → the functions that it executes besides their owner. Nobody else does. */
  execute: z.record(Name, z.record(Name, z.array(Name))),
  /** Functions that stay without a search path, so that they are inlined or take no time for it. */
  noSearchPath: z.array(Name).optional(),
});

/** What is declared of the functions of one folder. */
export type Access = z.infer<typeof Access>;

export type Declared = Readonly<{
  file: SqlFile;
  access: Access;
  /** Set where only some functions of the folder are at hand. */
  partial?: boolean;
}>;

/** The declaration of the folder `sql/<folder>`. @throws MigrateError where it is missing or says something else. */
export async function declaredAccess(sqlFolder: string, folder: string): Promise<Declared> {
  const name = path.posix.join(folder, FILE);
  const refuse = (reason: string) => new MigrateError(`sql/${name}: ${reason}`);
  const text = await readFile(path.join(sqlFolder, name), 'utf8').catch((error) => {
    throw refuse((error as Error).message);
  });
  try {
    return { file: { path: name, text, sha256: digestOf(text) }, access: Access.parse(JSON.parse(text)) };
  } catch (error) {
    throw refuse(error instanceof z.ZodError ? z.prettifyError(error).replaceAll('\n', ' ') : String(error));
  }
}

/** Function → who executes it. */
function granted(access: Access): ReadonlyMap<string, readonly string[]> {
  const roles = new Map<string, string[]>();
  for (const [role, folders] of Object.entries(access.execute)) {
    for (const name of Object.values(folders).flat()) roles.set(name, [...(roles.get(name) ?? []), role]);
  }
  return roles;
}

/** Function → its owner, where it is not the default. */
function owners(access: Access): ReadonlyMap<string, string> {
  return new Map(Object.entries(access.owners).flatMap(([owner, names]) => names.map((name) => [name, owner])));
}

/** Who executes which of the functions without being declared, e.g. because an earlier version was declared so. */
async function undeclared(
  client: Client,
  signatures: readonly string[],
): Promise<readonly Readonly<{ name: string; signature: string; role: string }>[]> {
  const { rows } = await client.query<{ name: string; signature: string; role: string }>(
    `select p.proname as name, f.signature, case a.grantee when 0 then 'public' else a.grantee::regrole::text end as role
     from unnest($1::text[]) f(signature)
     join pg_proc p on p.oid = f.signature::regprocedure
     cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where a.grantee <> p.proowner`,
    [signatures],
  );
  return rows;
}

/** Gives the functions (name → signature) their owners, search paths and rights, as declared and nothing else. */
export async function applyAccess(
  client: Client,
  { file, access, partial = false }: Declared,
  functions: ReadonlyMap<string, string>,
): Promise<void> {
  const owner = owners(access);
  const executes = granted(access);
  const bare = access.noSearchPath ?? [];
  const unknown = [...owner.keys(), ...executes.keys(), ...bare].find((name) => !functions.has(name));
  if (unknown && !partial)
    throw new MigrateError(`sql/${file.path} names ${unknown}, which no file of its folder makes`);
  const shape = [...functions].flatMap(([name, signature]) => {
    const to = owner.get(name) ?? access.defaultOwner;
    return [
      to === MIGRATING_LOGIN ? '' : `alter routine ${signature} owner to ${to};`,
      bare.includes(name) ? '' : `alter routine ${signature} set search_path = ${SEARCH_PATH};`,
    ];
  });
  const grants = [...functions].flatMap(([name, signature]) =>
    (executes.get(name) ?? []).map((role) => `grant execute on routine ${signature} to ${role};`),
  );
  try {
    await client.query(shape.join('\n'));
    const excess = (await undeclared(client, [...functions.values()]))
      .filter(({ name, role }) => !executes.get(name)?.includes(role))
      .map(({ signature, role }) => `revoke all on routine ${signature} from ${role};`);
    await client.query([...excess, ...grants].join('\n'));
  } catch (error) {
    throw explain(file, error);
  }
}
