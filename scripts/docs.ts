import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { configurationPage } from './docs/configuration.ts';
import { errorsPage } from './docs/errors.ts';
import { printError, printText } from './terminal.ts';

const USAGE = `npm run docs -- COMMAND: the pages of docs/ that are made from the code

  write   writes docs/configuration.md and docs/errors.md
  check   says which of them are out of date, and exits with 1
`;

const EX_USAGE = 64;
const DOCS = path.resolve(import.meta.dirname, '../docs');
const pages: Readonly<Record<string, () => string>> = {
  'configuration.md': configurationPage,
  'errors.md': errorsPage,
};

async function write(): Promise<void> {
  for (const [name, page] of Object.entries(pages)) await writeFile(path.join(DOCS, name), page());
}

async function check(): Promise<void> {
  for (const [name, page] of Object.entries(pages)) {
    const written = await readFile(path.join(DOCS, name), 'utf8').catch(() => '');
    if (written === page()) continue;
    printError(`docs/${name} is out of date: npm run docs -- write`);
    process.exitCode = 1;
  }
}

const [command] = process.argv.slice(2);
if (command === 'write') await write();
else if (command === 'check') await check();
else {
  printText(USAGE);
  if (command !== '--help') process.exitCode = EX_USAGE;
}
