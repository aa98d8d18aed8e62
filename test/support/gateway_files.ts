// Files of invocations, as an execution sends them over HTTP.
import { createHash, randomUUID } from 'node:crypto';
import type { Caller } from './gateway_world.ts';

export type Declared = Readonly<{ name: string; contentType: string; sizeBytes: number; sha256: string }>;
export type Upload = Readonly<{ uploadUrl: string; method: 'PUT'; headers: Record<string, string>; expiresAt: string }>;
export type FileRecord = Declared & Readonly<{ fileId: string }>;

export function declare(bytes: Uint8Array | string, fields: Partial<Declared> = {}): Declared {
  const content = Buffer.from(bytes);
  const found = { sizeBytes: content.length, sha256: createHash('sha256').update(content).digest('hex') };
  return { name: 'note.txt', contentType: 'text/plain', ...found, ...fields };
}

/** The calls about one file of an invocation. */
export function fileCalls(
  { integrationId, client }: Pick<Caller, 'integrationId' | 'client'>,
  invocationId: string = randomUUID(),
  fileId: string = randomUUID(),
) {
  const path = `/internal/cli/integrations/${integrationId}/invocations/${invocationId}/files/${fileId}`;
  return {
    path,
    invocationId,
    fileId,
    put: (bytes: Uint8Array | string, query: Readonly<Record<string, string>> = {}) =>
      client.put<FileRecord>(path, Buffer.from(bytes), { query }),
    begin: (file: object) => client.post<Upload>(`${path}/begin`, file),
    complete: (file: object) => client.post<FileRecord>(`${path}/complete`, file),
    get: (headers: Record<string, string> = {}) => client.fetch(path, { headers }),
  };
}

/** Sends bytes to the URL of an upload. */
export function send({ uploadUrl, method, headers }: Upload, bytes: Uint8Array | string, other: object = {}) {
  return fetch(uploadUrl, { method, headers: { ...headers, ...other }, body: Buffer.from(bytes) });
}
