import path from 'node:path';
import { type Finding, findings, type Source } from './text.ts';

const TABLE = /\bcreate table app\.(\w+) \(\n([\s\S]*?)\n\)/g;

function columnsOf(body: string): string[] {
  return [...body.matchAll(/^ {2}(\w+) /gm)].map(([, name = '']) => name).filter((name) => name !== 'constraint');
}

/** A migration: each table that it creates is complete. */
export function migrationFile(source: Source): Finding[] {
  const { code } = source;
  const found: Finding[] = [];
  for (const match of code.matchAll(TABLE)) {
    const [, table = '', body = ''] = match;
    const columns = columnsOf(body);
    const need = (text: string, message: string) => {
      if (!code.includes(text)) found.push({ at: match.index, message: `app.${table}: ${message}` });
    };
    need(`comment on table app.${table} is`, 'the table has no comment');
    for (const column of columns) need(`comment on column app.${table}.${column} is`, `${column} has no comment`);
    if (columns.includes('organization_id')) {
      need(`alter table app.${table} enable row level security;`, 'row security is not enabled');
      need(`alter table app.${table} force row level security;`, 'row security is not forced');
      need(`create policy owner_all on app.${table} to runner_owner`, 'its owner has no policy');
    }
  }
  return [
    ...found,
    ...findings(
      source,
      /\breferences\s+app\.\w+\s*\([^)]*\)\s*(?!\s*on delete (?:cascade|no action|restrict|set null))/g,
      () => 'a foreign key says what a deletion does: on delete …',
    ),
  ];
}

/** A view for analysts. */
export function viewFile(source: Source): Finding[] {
  const name = path.posix.basename(source.path, '.sql');
  const { code } = source;
  const need: readonly (readonly [RegExp, string])[] = [
    [
      new RegExp(`\\bcreate view reporting\\.${name} with \\(security_barrier\\) as\\n`),
      `the file creates reporting.${name} as a security barrier`,
    ],
    [new RegExp(`\\bcomment on view reporting\\.${name} is`), 'the view has no comment'],
  ];
  return need.flatMap(([pattern, message]) => (pattern.test(code) ? [] : [{ at: 0, message }]));
}
