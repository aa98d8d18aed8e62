import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { AgentContext } from './agent.ts';
import { uploadFile } from './call_uploads.ts';
import { declare, withFile } from './given_file.ts';

/** Beyond it the gateway takes a file by a URL of its own. */
const PUT_MAX_BYTES = 33_554_432;

/** The same bytes for the same argument of the same call are the same file, so that a repeat is one. */
function fileIdOf(invocationId: string, argument: string, sha256: string): string {
  const digest = createHash('sha256').update(`${invocationId} ${argument} ${sha256}`).digest('hex');
  const [a, b, c, d, e] = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    digest.slice(13, 16),
    digest.slice(17, 20),
    digest.slice(20, 32),
  ];
  return `${a}-${b}-8${c}-8${d}-${e}`;
}

type Place = Readonly<{ key: string; invocationId: string; signal?: AbortSignal | undefined; idleMs?: number }>;

/**
 * Stores files of this machine for a call, each `[argument, path]`. Returns their ids by argument.
 * @throws CommandError
 */
export async function storeFiles(
  { capabilities, stop }: Pick<AgentContext, 'capabilities' | 'stop'>,
  { key, invocationId, signal = stop.signal, idleMs }: Place,
  files: readonly (readonly [argument: string, file: string])[],
): Promise<{ files?: Readonly<Record<string, string>> }> {
  const ids: Record<string, string> = {};
  for (const [argument, file] of files) {
    await withFile(file, async (opened) => {
      const declared = await declare(opened, signal);
      const fileId = fileIdOf(invocationId, argument, declared.sha256);
      const at = `/invocations/${invocationId}/files/${fileId}`;
      if (declared.sizeBytes > PUT_MAX_BYTES) {
        await uploadFile({ capabilities, key, at, signal, idleMs }, opened, declared);
      } else {
        const bytes = await buffer(opened.read());
        await opened.check();
        const put = `${at}?${new URLSearchParams({ name: declared.name })}`;
        await capabilities.call(key, (gateway) => gateway.put(z.unknown(), put, bytes), { signal });
      }
      ids[argument] = fileId;
    });
  }
  return files.length > 0 ? { files: ids } : {};
}
