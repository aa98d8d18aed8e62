import { createHash } from 'node:crypto';
import type * as Tap from 'tap';
import { googleWorkspace } from '../../../engine/providers/google-workspace/index.ts';
import type { ToolFile } from '../../../engine/providers/tool.ts';
import { openClient, openServer, type Reply } from './support.ts';
import { toolsOf } from './tool_calls.ts';

export const GOOGLE = 'https://www.googleapis.com';
const HOSTS = ['www', 'gmail', 'docs', 'sheets', 'tasks'];

const credential = { kind: 'oauth2', accessToken: 'ya29.x', refreshToken: 'r', scopes: [], expiresAt: null };

/** Tools of Google Workspace, at a server that stands in for all of its hosts. */
export function toolsAt(test: Tap.Test, origin: string) {
  const client = openClient(test, Object.fromEntries(HOSTS.map((host) => [`https://${host}.googleapis.com`, origin])));
  return { client, ...toolsOf(googleWorkspace, { client, credential, settings: null }) };
}

export async function openGoogle(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  return { server, ...toolsAt(test, server.origin) };
}

/** A file of an action, in chunks. */
export function fileOf(name: string, contentType: string, bytes: Buffer, chunkBytes = 1_000): ToolFile {
  return {
    name,
    contentType,
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    async open() {
      return (async function* () {
        for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
      })();
    },
  };
}

export async function bytesOf(body: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}
