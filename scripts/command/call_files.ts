import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import type { AgentContext } from './agent.ts';
import { CommandError, EXIT, usageError } from './errors.ts';

const MAX_NAME = 100;

/** `name=value` → both; a name may not be empty. @throws CommandError */
export function pairOf(option: string, given: string): [name: string, value: string] {
  const at = given.indexOf('=');
  if (at > 0) return [given.slice(0, at), given.slice(at + 1)];
  throw usageError(`--${option} takes NAME=VALUE, not ${JSON.stringify(given)}`);
}

/** The same bytes for the same argument of the same call are the same file, so that a repeat is one. */
function fileIdOf(invocationId: string, argument: string, bytes: Uint8Array): string {
  const digest = createHash('sha256').update(`${invocationId} ${argument} `).update(bytes).digest('hex');
  const [a, b, c, d, e] = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    digest.slice(13, 16),
    digest.slice(17, 20),
    digest.slice(20, 32),
  ];
  return `${a}-${b}-8${c}-8${d}-${e}`;
}

/** Stores what the call sends along. Returns the ids by argument. @throws CommandError */
export async function storeFiles(
  { capabilities, values }: AgentContext,
  key: string,
  invocationId: string,
): Promise<{ files?: Readonly<Record<string, string>> }> {
  const files: Record<string, string> = {};
  for (const given of values.file ?? []) {
    const [argument, file] = pairOf('file', given);
    const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new CommandError(EXIT.notFound, `${file} cannot be read (${error.code})`);
    });
    const fileId = fileIdOf(invocationId, argument, bytes);
    const at = `/invocations/${invocationId}/files/${fileId}?${new URLSearchParams({ name: path.basename(file) })}`;
    await capabilities.call(key, (gateway) => gateway.put(z.unknown(), at, bytes));
    files[argument] = fileId;
  }
  return Object.keys(files).length > 0 ? { files } : {};
}

/** A name of a stranger as one of a file in this folder. */
function nameHere(name: string, index: number): string {
  const plain = name.replace(/[^\p{L}\p{N}._ -]/gu, '_').replace(/^[. ]+/, '');
  return `${index + 1}-${plain.slice(-MAX_NAME) || 'file'}`;
}

type Brought = Readonly<{
  key: string;
  invocationId: string;
  files: readonly Readonly<{ fileId: string; name: string }>[];
  folder: string;
}>;

/** Saves what a read brought, over nothing that is there. Returns where each is. @throws CommandError */
export async function saveFiles(
  { capabilities }: Pick<AgentContext, 'capabilities'>,
  { key, invocationId, files, folder }: Brought,
): Promise<string[]> {
  const saved: string[] = [];
  for (const [index, { fileId, name }] of files.entries()) {
    const file = path.join(folder, nameHere(name, index));
    const at = `/invocations/${invocationId}/files/${fileId}`;
    const { body } = await capabilities.call(key, (gateway) => gateway.open(at));
    try {
      await mkdir(folder, { recursive: true });
      const bytes =
        body === null ? Readable.from([]) : Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
      await pipeline(bytes, createWriteStream(file, { flags: 'wx' }));
    } catch (error) {
      throw new CommandError(EXIT.refused, `${file} was not saved (${(error as NodeJS.ErrnoException).code})`);
    }
    saved.push(file);
  }
  return saved;
}
