import { existsSync } from 'node:fs';
import path from 'node:path';

const FILE = path.resolve(import.meta.dirname, '..', '.env');

/** Reads the settings in `.env`, where there is one. The environment wins over the file. */
export function loadEnvironmentFile(): void {
  if (existsSync(FILE)) process.loadEnvFile(FILE);
}
