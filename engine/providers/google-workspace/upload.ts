import { z } from 'zod';
import { ProviderError, type ProviderResponse, parsed, undone } from '../outgoing/index.ts';
import type { ToolFile } from '../tool.ts';
import { type Call, fileBytes, KEY, requestOf, site, urlOf } from './site.ts';

// Drive's resumable uploads: a session is begun, which makes nothing yet, and the bytes follow in chunks. The file is there with the last
// one, once, however often a chunk comes.

/** In memory at once. All but the last are multiples of 256 KiB. */
const CHUNK_BYTES = 8 * 1024 * 1024;
const CHUNK_MS = 120_000;

export const uploaded = z.object({
  id: z.string(),
  name: z.string().optional(),
  mimeType: z.string().optional(),
  size: z.string().optional(),
  webViewLink: z.string().optional(),
});
export const UPLOADED_FIELDS = Object.keys(uploaded.shape).join(',');

export type UploadedFile = Pick<ToolFile, 'contentType' | 'sizeBytes' | 'open'>;

const failed = (message: string, response: Pick<ProviderResponse, 'status'>) =>
  new ProviderError(KEY, 'failed', message, { status: response.status });

/** The address of the session. @throws ProviderError: nothing was made */
async function begin(call: Call, metadata: object, { contentType, sizeBytes }: UploadedFile): Promise<URL> {
  const { headers, ...rest } = requestOf(call, 'drive');
  const query = { uploadType: 'resumable', supportsAllDrives: true, fields: UPLOADED_FIELDS };
  try {
    const response = await call.context.client.send(site, {
      ...rest,
      effect: 'write',
      method: 'POST',
      url: urlOf('drive', '/upload/drive/v3/files', query),
      headers: {
        ...headers,
        'content-type': 'application/json; charset=UTF-8',
        'x-upload-content-type': contentType,
        'x-upload-content-length': String(sizeBytes),
      },
      body: JSON.stringify(metadata),
    });
    const url = URL.parse(response.headers['location'] ?? '');
    if (!url) throw failed('The provider names no address for the upload.', response);
    return url;
  } catch (error) {
    throw undone(error, KEY, call.context.signal);
  }
}

/** Chunks of one size, but the last. */
async function* inChunks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, void> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of source) {
    let rest = piece;
    while (length + rest.length >= CHUNK_BYTES) {
      const taken = rest.subarray(0, CHUNK_BYTES - length);
      rest = rest.subarray(taken.length);
      yield Buffer.concat([...pieces, taken]);
      pieces = [];
      length = 0;
    }
    if (rest.length === 0) continue;
    pieces.push(rest);
    length += rest.length;
  }
  if (length > 0) yield Buffer.concat(pieces);
}

/** How many bytes the session has. */
function received({ headers }: ProviderResponse): number {
  const [, last] = /^bytes=0-(\d{1,15})$/.exec(headers['range'] ?? '') ?? [];
  return last === undefined ? 0 : Number(last) + 1;
}

type Session = Readonly<{ url: URL; sizeBytes: number }>;

/** @returns the response of the end, or that of a session that waits for more */
function put(call: Call, { url, sizeBytes }: Session, bytes: Uint8Array, from: number): Promise<ProviderResponse> {
  const { headers, signal } = requestOf(call, 'drive');
  const range = bytes.length === 0 ? '*' : `${from}-${from + bytes.length - 1}`;
  return call.context.client.send(site, {
    effect: 'write',
    method: 'PUT',
    url,
    headers: { ...headers, 'content-range': `bytes ${range}/${sizeBytes}` },
    body: bytes,
    // A part of the request that was counted.
    buckets: [],
    signal,
    totalMs: CHUNK_MS,
    accepts: (status) => status === 308,
  });
}

/** Makes a file of Drive. @throws ProviderError */
export async function uploadFile(call: Call, metadata: object, file: UploadedFile): Promise<z.output<typeof uploaded>> {
  const session: Session = { url: await begin(call, metadata, file), sizeBytes: file.sizeBytes };
  if (file.sizeBytes === 0) return parsed(KEY, await put(call, session, new Uint8Array(), 0), uploaded);
  let from = 0;
  for await (const chunk of inChunks(fileBytes(file))) {
    // Google may keep less of a chunk than was sent: the rest is sent again.
    for (let rest: Uint8Array = chunk; rest.length > 0; ) {
      const isLast = from + rest.length === file.sizeBytes;
      const response = await put(call, session, rest, from).catch((error: unknown) => {
        throw isLast ? error : undone(error, KEY, call.context.signal);
      });
      if (response.status !== 308) return parsed(KEY, response, uploaded);
      const has = received(response);
      if (has <= from || has > from + rest.length) throw failed('The provider lost the upload.', response);
      rest = rest.subarray(has - from);
      from = has;
    }
  }
  throw new ProviderError(KEY, 'failed', 'The provider did not end the upload.', { status: 308 });
}
