import { declaredAccess } from '../../engine/db/schema/access.ts';
import { sqlFiles } from '../../engine/db/schema/files.ts';
import { functionFile } from './functions.ts';
import { general, namesIn, qualified } from './general.ts';
import { migrationFile, viewFile } from './tables.ts';
import { type Finding, lineOf, type Source, sourceOf } from './text.ts';

async function sources(sqlFolder: string, folder: string): Promise<readonly Source[]> {
  return (await sqlFiles(sqlFolder, folder)).map(sourceOf);
}

/** Checks the files against the conventions, without a database. Returns a line for each breach: `sql/path:line: what`. */
export async function lintSql(sqlFolder: string): Promise<string[]> {
  const [migrations, triggers, functions, reporting] = await Promise.all([
    sources(sqlFolder, 'migrations'),
    sources(sqlFolder, 'triggers'),
    sources(sqlFolder, 'functions'),
    sources(sqlFolder, 'reporting'),
  ]);
  const ofFunctions = (await declaredAccess(sqlFolder, 'functions')).access;
  const ofTriggers = (await declaredAccess(sqlFolder, 'triggers')).access;
  const names = namesIn([...migrations, ...triggers, ...functions]);
  const rules: readonly (readonly [readonly Source[], (source: Source) => readonly Finding[]])[] = [
    [migrations, migrationFile],
    [triggers, (source) => functionFile(source, ofTriggers)],
    [functions, (source) => functionFile(source, ofFunctions)],
    [reporting, viewFile],
  ];
  return rules.flatMap(([files, rule]) =>
    files.flatMap((source) =>
      [...general(source), ...qualified(source, names), ...rule(source)]
        .sort((a, b) => a.at - b.at)
        .map(({ at, message }) => `sql/${source.path}:${lineOf(source, at)}: ${message}`),
    ),
  );
}
