import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

/** Where workers and agent runtimes find their service token. */
export const TOKEN_FILE = 'agent-service-token';
const PASSWORD_FILE = 'database-passwords.json';

const passwords = z.object({ superuser: z.string(), runner_api: z.string(), runner_jobs: z.string() });
export type DatabasePasswords = z.output<typeof passwords>;

function makeSecret(): string {
  return randomBytes(32).toString('hex');
}

/** Whole or not at all, and never readable by others, not even for a moment. */
function writeSecret(file: string, text: string): void {
  const temporary = `${file}.${randomBytes(4).toString('hex')}`;
  writeFileSync(temporary, text, { mode: 0o600, flag: 'wx' });
  renameSync(temporary, file);
}

/** The service token of this data folder, made on the first start. */
export function serviceToken(dataDir: string): { token: string; file: string } {
  const file = path.join(dataDir, TOKEN_FILE);
  const existing = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (existing.length >= 32) return { token: existing, file };
  const token = makeSecret();
  writeSecret(file, `${token}\n`);
  return { token, file };
}

/** The passwords of the embedded database; `fresh` when there were none, so that an existing cluster has others. */
export function databasePasswords(dataDir: string): { passwords: DatabasePasswords; fresh: boolean } {
  const file = path.join(dataDir, PASSWORD_FILE);
  if (existsSync(file)) {
    try {
      return { passwords: passwords.parse(JSON.parse(readFileSync(file, 'utf8'))), fresh: false };
    } catch (error) {
      if (!(error instanceof SyntaxError) && !(error instanceof z.ZodError)) throw error;
      // Damaged: as if it were lost.
    }
  }
  const made = { superuser: makeSecret(), runner_api: makeSecret(), runner_jobs: makeSecret() };
  writeSecret(file, `${JSON.stringify(made, null, 2)}\n`);
  return { passwords: made, fresh: true };
}
