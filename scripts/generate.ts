import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { startTestPostgres } from '../test/support/postgres.ts';
import { dictionary } from './analyst/dictionary.ts';
import { functionsFile } from './generate/functions.ts';
import { describeSchema } from './generate/schema/describe.ts';
import { printLine, printText } from './terminal.ts';

const ROOT = path.resolve(import.meta.dirname, '..');

const USAGE = `npm run generate: makes the files that follow from the database, by a Postgres of its own

Run it after a change of SQL, and commit what it writes. A test fails when it was forgotten.
`;

/** Each file, and how its text follows from a migrated database. */
const files: Readonly<Record<string, (db: pg.Client) => Promise<string>>> = {
  'engine/db/generated/functions.ts': functionsFile,
  'sql/schema.sql': describeSchema,
  'sql/reporting/README.md': dictionary,
};

async function main(): Promise<void> {
  const server = await startTestPostgres();
  const db = new pg.Client({ connectionString: server.url });
  try {
    await db.connect();
    for (const [name, textOf] of Object.entries(files)) {
      const file = path.join(ROOT, name);
      const text = await textOf(db);
      const same = existsSync(file) && readFileSync(file, 'utf8') === text;
      if (!same) writeFileSync(file, text);
      printLine(`${same ? 'unchanged' : 'written'}: ${name}`);
    }
  } finally {
    await db.end();
    await server.stop();
  }
}

if (process.argv.includes('--help')) printText(USAGE);
else await main();
