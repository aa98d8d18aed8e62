import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { envExample } from '../engine/settings_text.ts';
import { configurationPage } from './docs/configuration.ts';
import { errorsPage } from './docs/errors.ts';
import { printError, printText } from './terminal.ts';

const USAGE = `npm run docs -- COMMAND: the texts that are made from the code

  write   writes docs/configuration.md, docs/errors.md and .env.example
  check   says which of them are out of date, and exits with 1
`;

const EX_USAGE = 64;
const ROOT = path.resolve(import.meta.dirname, '..');
const pages: Readonly<Record<string, () => string>> = {
  'docs/configuration.md': configurationPage,
  'docs/errors.md': errorsPage,
  '.env.example': envExample,
};

async function write(): Promise<void> {
  for (const [name, page] of Object.entries(pages)) await writeFile(path.join(ROOT, name), page());
}

async function check(): Promise<void> {
  for (const [name, page] of Object.entries(pages)) {
    const written = await readFile(path.join(ROOT, name), 'utf8').catch(() => '');
    if (written === page()) continue;
    printError(`${name} is out of date: npm run docs -- write`);
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
