import { ApiError } from './api.ts';
import type { Conversation, Part } from './chat_schemas.ts';
import type { ChatTurn } from './context.ts';

/** All texts together: the context of most models then still has room for the conversation. */
const MAX_TEXT_BYTES = 256 * 1024;
/** One image, and all together: about what endpoints accept in one request, as base64. */
const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
const MAX_IMAGES_BYTES = 15 * 1024 * 1024;
/** Downloads are limited by the lease: a large file takes its time. */
const DOWNLOAD_TIMEOUT_MS = 3_600_000;

const TEXT = /^(?:text\/.+|application\/(?:json|yaml|toml|xml))$/;
const IMAGE = /^image\/(?:png|jpeg|webp|gif)$/;

/** What a model gets of an attached file, or `why` it gets nothing. */
export type FileContent = Readonly<
  { kind: 'text'; text: string; cut: boolean } | { kind: 'image'; url: string } | { kind: 'none'; why: string }
>;

/** By attachment id. */
export type FileContents = ReadonlyMap<string, FileContent>;

const none = (why: string): FileContent => ({ kind: 'none', why });

/** At most `limit` bytes; the rest is not downloaded. */
async function readBytes(content: ReadableStream<Uint8Array> | null, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop cancels the download.
  for await (const chunk of content ?? []) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size >= limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}

function download(turn: ChatTurn, attachmentId: string, limit: number): Promise<Buffer> {
  return turn.send(async (signal) => {
    const call = { signal, timeoutMs: DOWNLOAD_TIMEOUT_MS };
    return readBytes(await turn.worker.api.attachmentContent(turn.held.lease, attachmentId, call), limit);
  });
}

/** Text that may be cut inside a character: the half character is dropped. */
function decode(bytes: Buffer, cut: boolean): string {
  return new TextDecoder().decode(bytes, { stream: cut });
}

async function fetchFiles(turn: ChatTurn, latestFirst: readonly Part[], images: boolean): Promise<FileContents> {
  const contents = new Map<string, FileContent>();
  let [textsLeft, imagesLeft] = [MAX_TEXT_BYTES, MAX_IMAGES_BYTES];

  async function contentOf({ attachmentId = '', mediaType = '', sizeBytes = 0 }: Part): Promise<FileContent> {
    if (TEXT.test(mediaType)) {
      if (textsLeft === 0) return none('later files fill the space');
      const bytes = await download(turn, attachmentId, Math.min(sizeBytes, textsLeft));
      textsLeft -= bytes.byteLength;
      const cut = bytes.byteLength < sizeBytes;
      return { kind: 'text', text: decode(bytes, cut), cut };
    }
    if (!images || !IMAGE.test(mediaType)) return none('you cannot read files of this type');
    if (sizeBytes > MAX_IMAGE_BYTES) return none('it is too large');
    if (sizeBytes > imagesLeft) return none('later images fill the space');
    const bytes = await download(turn, attachmentId, sizeBytes);
    imagesLeft -= bytes.byteLength;
    return { kind: 'image', url: `data:${mediaType};base64,${bytes.toString('base64')}` };
  }

  for (const part of latestFirst) {
    const { attachmentId = '', fileName } = part;
    if (contents.has(attachmentId)) continue;
    try {
      contents.set(attachmentId, await contentOf(part));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      turn.worker.print(`${turn.name}  without ${fileName}: ${error.message}`);
      contents.set(attachmentId, none('its content is gone'));
    }
  }
  return contents;
}

/**
 * Downloads what the model gets of attached files: texts (the beginning of long ones), and images where the model accepts
 * them. The latest files go first, until the space is used up.
 * @throws ApiError 409 when the lease is lost
 */
export function readFiles(turn: ChatTurn, conversation: Conversation, images: boolean): Promise<FileContents> {
  const attached = conversation.messages
    .filter(({ role }) => role !== 'assistant')
    .flatMap(({ parts }) => parts.filter(({ kind }) => kind === 'attachment'));
  return fetchFiles(turn, attached.reverse(), images);
}
