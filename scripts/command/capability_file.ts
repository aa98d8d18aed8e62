import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';

/** What the gateway is called with. */
export const keptSchema = z.object({ capability: z.string(), expiresAt: z.string(), url: z.string() });
export type Kept = z.output<typeof keptSchema>;

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Keeps capabilities from call to call of one run. They are encrypted by the run's own token, which is in no file: whoever reads the
 * folder has nothing. What cannot be read or written is as if it were not there.
 */
export function capabilityFile(folder: string, token: string) {
  const key = Buffer.from(hkdfSync('sha256', token, '', 'business-runner capabilities', 32));
  const fileOf = (name: string) =>
    path.join(folder, createHash('sha256').update(key).update(name).digest('hex').slice(0, 32));

  function seal(kept: Kept): Buffer {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, key, iv);
    const sealed = [cipher.update(JSON.stringify(kept), 'utf8'), cipher.final()];
    return Buffer.concat([iv, cipher.getAuthTag(), ...sealed]);
  }

  function open(bytes: Buffer): Kept | undefined {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    return keptSchema.safeParse(JSON.parse(text)).data;
  }

  return {
    async find(name: string): Promise<Kept | undefined> {
      try {
        return open(await readFile(fileOf(name)));
      } catch {
        return undefined;
      }
    },
    async keep(name: string, kept: Kept): Promise<void> {
      const file = fileOf(name);
      const written = `${file}.${randomUUID()}`;
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await writeFile(written, seal(kept), { mode: 0o600 });
        await rename(written, file);
      } catch {
        await rm(written, { force: true }).catch(() => {});
      }
    },
  };
}
