import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

/** As Postgres makes them itself. */
const ITERATIONS = 4096;

/** 256 bits, of letters that need no escaping anywhere. */
export function makePassword(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * What Postgres stores of a password, computed here: statements, logs and pg_stat_activity then hold the verifier alone,
 * which lets nobody in. The password is ASCII.
 */
export function scramVerifier(password: string, salt = randomBytes(16)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const storedKey = createHash('sha256').update(clientKey).digest('base64');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
