import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { ConfigError } from '../../engine/config.ts';
import { receiptKeys } from '../../engine/receipts/index.ts';
import { encryptionKeys } from '../../engine/secrets/index.ts';
import { OWNER_TOKEN_FILE, TOKEN_FILE } from '../worker/local_data.ts';
import { unusable } from './data_folder.ts';

/** Where an administrator finds the token of the administration. */
export const ADMIN_TOKEN_FILE = 'admin-token';
/** Where the key lies that the credentials of integrations are encrypted with. */
export const ENCRYPTION_KEYS_FILE = 'encryption-keys';
/** Where the key lies that signs the receipts of actions. */
export const RECEIPT_KEYS_FILE = 'receipt-keys';
const PASSWORD_FILE = 'database-passwords.json';

const logins = ['superuser', 'runner_api', 'runner_jobs', 'runner_admin'] as const;
export type DatabasePasswords = Readonly<Record<(typeof logins)[number], string>>;
// A folder of an earlier version has no password of a login that came later.
const passwords = z.partialRecord(z.enum(logins), z.string());

function makeSecret(): string {
  return randomBytes(32).toString('hex');
}

/** Whole or not at all, and never readable by others, not even for a moment. */
function writeSecret(file: string, text: string): void {
  const temporary = `${file}.${randomBytes(4).toString('hex')}`;
  try {
    writeFileSync(temporary, text, { mode: 0o600, flag: 'wx' });
    renameSync(temporary, file);
  } catch (error) {
    throw unusable(path.dirname(file), error);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** A token of this data folder, made on the first start. */
function keptToken(dataDir: string, name: string): { token: string; file: string } {
  const file = path.join(dataDir, name);
  const existing = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (existing.length >= 32) return { token: existing, file };
  const token = makeSecret();
  writeSecret(file, `${token}\n`);
  return { token, file };
}

/** The token of workers and agent runtimes. */
export const serviceToken = (dataDir: string) => keptToken(dataDir, TOKEN_FILE);

/** The token of the administration. */
export const adminToken = (dataDir: string) => keptToken(dataDir, ADMIN_TOKEN_FILE);

/** The token of owners, for what takes one in open mode too. */
export const ownerToken = (dataDir: string) => keptToken(dataDir, OWNER_TOKEN_FILE);

type Kept = Readonly<{ keys: string; file: string }>;
type KeysSetting = Readonly<{ name: string; file: string; schema: z.ZodType; made: () => string; loss: string }>;

/** A setting with keys, made on the first start. A damaged file is never replaced: another copy of it may be at hand. */
function keptKeys(dataDir: string, { name, file: fileName, schema, made, loss }: KeysSetting): Kept {
  const file = path.join(dataDir, fileName);
  if (!existsSync(file)) {
    const keys = made();
    writeSecret(file, `${keys}\n`);
    return { keys, file };
  }
  const keys = readFileSync(file, 'utf8').trim();
  if (!schema.safeParse(keys).success) {
    throw new ConfigError(`${name}: ${file} is damaged; put back a copy of it, or move it away, ${loss}`);
  }
  return { keys, file };
}

const makeKey = () => randomBytes(32).toString('base64');

/** The ENCRYPTION_KEYS of this data folder: what was encrypted opens with its key alone. @throws ConfigError */
export const keptEncryptionKeys = (dataDir: string): Kept =>
  keptKeys(dataDir, {
    name: 'ENCRYPTION_KEYS',
    file: ENCRYPTION_KEYS_FILE,
    schema: encryptionKeys,
    made: () => `local:${makeKey()}`,
    loss: 'and connect each integration again',
  });

/** The RECEIPT_KEYS of this data folder: receipts that were handed out name their key. @throws ConfigError */
export const keptReceiptKeys = (dataDir: string): Kept =>
  keptKeys(dataDir, {
    name: 'RECEIPT_KEYS',
    file: RECEIPT_KEYS_FILE,
    schema: receiptKeys,
    made: makeKey,
    loss: 'and keep the public keys of earlier receipts elsewhere',
  });

function storedPasswords(file: string): Partial<DatabasePasswords> {
  try {
    return passwords.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof z.ZodError)) throw error;
    // Damaged: as if it were lost.
    return {};
  }
}

/** The superuser's password, for commands that only read the folder; undefined where none was kept. */
export function keptSuperuserPassword(dataDir: string): string | undefined {
  const file = path.join(dataDir, PASSWORD_FILE);
  return existsSync(file) ? storedPasswords(file).superuser : undefined;
}

/** The passwords of the embedded database; `fresh` when the superuser's was made now, so that an existing cluster has another. */
export function databasePasswords(dataDir: string): { passwords: DatabasePasswords; fresh: boolean } {
  const file = path.join(dataDir, PASSWORD_FILE);
  const stored = existsSync(file) ? storedPasswords(file) : {};
  const all = Object.fromEntries(logins.map((login) => [login, stored[login] ?? makeSecret()])) as DatabasePasswords;
  if (logins.some((login) => stored[login] === undefined)) writeSecret(file, `${JSON.stringify(all, null, 2)}\n`);
  return { passwords: all, fresh: stored.superuser === undefined };
}
