import path from 'node:path';
import { lintSql } from './lint_sql/lint.ts';
import { printLine, printText } from './terminal.ts';

const USAGE = `npm run lint:sql: checks the files of sql/ against the conventions, without a database

Prints a line for each breach and exits with 1 when there is one.
`;

if (process.argv.includes('--help')) {
  printText(USAGE);
} else {
  const breaches = await lintSql(path.resolve(import.meta.dirname, '..', 'sql'));
  for (const breach of breaches) printLine(breach);
  if (breaches.length > 0) process.exitCode = 1;
}
