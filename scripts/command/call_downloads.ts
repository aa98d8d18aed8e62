import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { link, lstat, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { AgentContext } from './agent.ts';
import { isNetworkError, reasonOf } from './api.ts';
import { CommandError, EXIT } from './errors.ts';
import { IDLE_MS, type Idle, idleLimit } from './idle.ts';
import type { StoredFile } from './schemas.ts';

const MAX_NAME = 100;
/** Of file systems that have no hard links. */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/** A name of a stranger as one of a file in this folder. */
function nameHere(name: string, index: number): string {
  const plain = name.replace(/[^\p{L}\p{N}._ -]/gu, '_').replace(/^[. ]+/, '');
  return `${index + 1}-${plain.slice(-MAX_NAME) || 'file'}`;
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

/** Gives a whole file its name, unless something has it. */
async function place(part: string, file: string): Promise<void> {
  try {
    await link(part, file);
    await rm(part);
  } catch (error) {
    if (!NO_LINKS.includes(codeOf(error) ?? '')) throw error;
    if (await lstat(file).catch(() => undefined)) throw Object.assign(new Error('it is there'), { code: 'EEXIST' });
    await rename(part, file);
  }
}

/** Writes all bytes of a response. @throws CommandError where they are not those of the file */
async function write(response: Response, part: string, { sizeBytes, sha256 }: StoredFile, { moved }: Idle) {
  const hash = createHash('sha256');
  let size = 0;
  async function* observed(source: AsyncIterable<Uint8Array>) {
    for await (const chunk of source) {
      moved();
      hash.update(chunk);
      size += chunk.length;
      yield chunk;
    }
  }
  const body = response.body as Parameters<typeof Readable.fromWeb>[0] | null;
  const bytes = body === null ? Readable.from([]) : Readable.fromWeb(body);
  await pipeline(bytes, observed, createWriteStream(part, { flags: 'wx' }));
  if (size === sizeBytes && hash.digest('hex') === sha256) return;
  throw new CommandError(EXIT.unavailable, `what came is not the file: ${size} of ${sizeBytes} bytes, or others`);
}

type Brought = Readonly<{
  key: string;
  invocationId: string;
  files: readonly StoredFile[];
  folder: string;
  signal?: AbortSignal | undefined;
  idleMs?: number;
}>;

/**
 * Saves what a read brought, each file whole or not at all, and over nothing that is there. Returns where each is.
 * @throws CommandError
 */
export async function saveFiles(
  { capabilities, stop }: Pick<AgentContext, 'capabilities' | 'stop'>,
  { key, invocationId, files, folder, signal = stop.signal, idleMs = IDLE_MS }: Brought,
): Promise<string[]> {
  const saved: string[] = [];
  for (const [index, stored] of files.entries()) {
    const file = path.join(folder, nameHere(stored.name, index));
    const part = path.join(folder, `.${path.basename(file)}.${randomUUID()}.part`);
    const at = `/invocations/${invocationId}/files/${stored.fileId}`;
    const idle = idleLimit(`the download of ${file}`, signal, idleMs);
    try {
      await mkdir(folder, { recursive: true });
      // Before anything is fetched for nothing.
      if (await lstat(file).catch(() => undefined)) throw Object.assign(new Error('it is there'), { code: 'EEXIST' });
      const limits = { signal: idle.signal, timeoutMs: Number.POSITIVE_INFINITY };
      const response = await capabilities.call(key, (gateway) => gateway.open(at), limits);
      await write(response, part, stored, idle);
      await place(part, file);
    } catch (error) {
      await rm(part, { force: true }).catch(() => {});
      idle.signal.throwIfAborted();
      if (error instanceof CommandError) throw error;
      if (isNetworkError(error)) {
        throw new CommandError(EXIT.unavailable, `the download of ${file} broke off (${reasonOf(error)})`);
      }
      throw new CommandError(EXIT.refused, `${file} was not saved (${codeOf(error) ?? reasonOf(error)})`);
    } finally {
      idle.clear();
    }
    saved.push(file);
  }
  return saved;
}
