import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { isNetworkError, RETRY_AFTER_MS, reasonOf, UnavailableError } from './api.ts';
import type { Capabilities } from './capabilities.ts';
import { CommandError, EXIT } from './errors.ts';
import { changedFile, type Declared, type GivenFile } from './given_file.ts';
import { IDLE_MS, type Idle, idleLimit } from './idle.ts';

/** The gateway reads and copies all of it. */
const COMPLETE_TIMEOUT_MS = 300_000;

const uploadSchema = z.looseObject({
  uploadUrl: z.string(),
  method: z.string(),
  headers: z.record(z.string(), z.string()),
});
type Upload = z.output<typeof uploadSchema>;

/** Where an upload goes. */
export type UploadPlace = Readonly<{
  capabilities: Capabilities;
  key: string;
  /** Of the file, below the integration. */
  at: string;
  signal: AbortSignal;
  idleMs?: number | undefined;
}>;

/** The bytes as they are read, all of which but the last ones are sent before it is known that they are those that were declared. */
async function* declaredBytes({ file, read, check }: GivenFile, { sizeBytes, sha256 }: Declared, { moved }: Idle) {
  const hash = createHash('sha256');
  let left = sizeBytes;
  for await (const chunk of read()) {
    moved();
    hash.update(chunk);
    left -= chunk.length;
    if (left === 0) {
      await check();
      if (hash.digest('hex') !== sha256) throw changedFile(file);
    }
    yield chunk;
  }
  if (left !== 0) throw changedFile(file);
}

/** @throws CommandError; the reason of the signal */
async function send({ uploadUrl, method, headers }: Upload, given: GivenFile, declared: Declared, idle: Idle) {
  const what = `the upload of ${given.file}`;
  let own: unknown;
  async function* body() {
    try {
      yield* declaredBytes(given, declared, idle);
    } catch (error) {
      own = error;
      throw error;
    }
  }
  // The URL is all that this needs: a token of ours would be none of its server's business.
  const response = await fetch(uploadUrl, {
    method,
    headers,
    body: body(),
    duplex: 'half',
    signal: idle.signal,
  } as RequestInit).catch((error: unknown) => {
    idle.signal.throwIfAborted();
    if (own !== undefined) throw own;
    if (!isNetworkError(error)) throw error;
    throw new UnavailableError(`${what} broke off (${reasonOf(error)})`);
  });
  await response.body?.cancel().catch(() => {});
  if (own !== undefined) throw own;
  if (response.ok) return;
  const refused = `${what} was not taken (HTTP ${response.status})`;
  throw response.status >= 500 ? new UnavailableError(refused) : new CommandError(EXIT.refused, refused);
}

/**
 * Sends a file by a URL of its own, anew where the connection breaks: begun, sent while it is read, completed.
 * @throws CommandError
 */
export async function uploadFile(place: UploadPlace, given: GivenFile, declared: Declared): Promise<void> {
  const { capabilities, key, at, signal, idleMs = IDLE_MS } = place;

  async function sendOnce(upload: Upload): Promise<void> {
    const idle = idleLimit(`the upload of ${given.file}`, signal, idleMs);
    try {
      await send(upload, given, declared, idle);
    } finally {
      idle.clear();
    }
  }

  for (const wait of [...RETRY_AFTER_MS, undefined]) {
    // This is asked again as any other call.
    const upload = await capabilities.call(key, (gateway) => gateway.post(uploadSchema, `${at}/begin`, declared), {
      signal,
    });
    try {
      await sendOnce(upload);
      break;
    } catch (error) {
      if (wait === undefined || !(error instanceof UnavailableError)) throw error;
      await sleep(wait, undefined, { signal }).catch(() => {});
      signal.throwIfAborted();
    }
  }
  await capabilities.call(key, (gateway) => gateway.post(z.unknown(), `${at}/complete`, declared), {
    signal,
    timeoutMs: COMPLETE_TIMEOUT_MS,
  });
}
