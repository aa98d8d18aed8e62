import { declaredAccess } from './access.ts';
import { type SqlFile, sqlFile, sqlFiles } from './files.ts';
import type { FunctionFolder } from './functions.ts';

/** What the folder `sql` holds, by the order in which it is applied. */
export type Source = Readonly<{
  roles: SqlFile;
  triggers: FunctionFolder;
  migrations: readonly SqlFile[];
  functions: FunctionFolder;
  reporting: readonly SqlFile[];
}>;

async function functionFolder(sqlFolder: string, name: string): Promise<FunctionFolder> {
  const files = await sqlFiles(sqlFolder, name);
  return { name, files, declared: files.length > 0 ? await declaredAccess(sqlFolder, name) : undefined };
}

/** @throws MigrateError for a folder of functions whose owners and rights are not declared. */
export async function readSource(sqlFolder: string): Promise<Source> {
  const [roles, triggers, migrations, functions, reporting] = await Promise.all([
    sqlFile(sqlFolder, 'roles.sql'),
    functionFolder(sqlFolder, 'triggers'),
    sqlFiles(sqlFolder, 'migrations'),
    functionFolder(sqlFolder, 'functions'),
    sqlFiles(sqlFolder, 'reporting'),
  ]);
  return { roles, triggers, migrations, functions, reporting };
}
