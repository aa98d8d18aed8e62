// The command of the seed's worker: does what the input seed.json of its task says.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const { INPUT_DIR, OUTPUT_DIR, RESULT_FILE, USAGE_FILE } = process.env;
const { files, result, usage } = JSON.parse(readFileSync(path.join(INPUT_DIR, 'seed.json'), 'utf8'));

for (const [name, text] of Object.entries(files ?? {})) writeFileSync(path.join(OUTPUT_DIR, name), text);
if (result) writeFileSync(RESULT_FILE, JSON.stringify(result));
if (usage) writeFileSync(USAGE_FILE, JSON.stringify(usage));
