import { ApiError } from './api.ts';
import type { Turn } from './chat.ts';
import type { Conversation, Part } from './chat_schemas.ts';

/** Of all texts together, in bytes: beside them the context of most models has room for the conversation. */
const LONGEST_TEXTS = 256 * 1024;
/** Of one image, and of all together, in bytes; what endpoints take in one request is about the latter, as base64. */
const LONGEST_IMAGE = 5 * 1024 * 1024;
const LONGEST_IMAGES = 15 * 1024 * 1024;
/** Downloads are limited by the lease: a large file takes its time. */
const DOWNLOAD_MS = 3_600_000;

const TEXT = /^(?:text\/.+|application\/(?:json|yaml|toml|xml))$/;
const IMAGE = /^image\/(?:png|jpeg|webp|gif)$/;

/** What a model gets of an attached file; `why` it gets nothing of it. */
export type FileContent = Readonly<
  { kind: 'text'; text: string; cut: boolean } | { kind: 'image'; url: string } | { kind: 'none'; why: string }
>;

/** By attachment id. */
export type FileContents = ReadonlyMap<string, FileContent>;

const none = (why: string): FileContent => ({ kind: 'none', why });

/** At most `limit` bytes: the rest is neither kept nor fetched. */
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

function download(turn: Turn, attachmentId: string, limit: number): Promise<Buffer> {
  return turn.send(async (signal) => {
    const call = { signal, timeoutMs: DOWNLOAD_MS };
    return readBytes(await turn.tools.api.attachmentContent(turn.held.lease, attachmentId, call), limit);
  });
}

/** UTF-8 up to where it was cut, which may be inside of a character: half a character is left out. */
function decode(bytes: Buffer, cut: boolean): string {
  return new TextDecoder().decode(bytes, { stream: cut });
}

async function fetchFiles(turn: Turn, latestFirst: readonly Part[], images: boolean): Promise<FileContents> {
  const contents = new Map<string, FileContent>();
  let [textsLeft, imagesLeft] = [LONGEST_TEXTS, LONGEST_IMAGES];

  async function contentOf({ attachmentId = '', mediaType = '', sizeBytes = 0 }: Part): Promise<FileContent> {
    if (TEXT.test(mediaType)) {
      if (textsLeft === 0) return none('later files fill the space');
      const bytes = await download(turn, attachmentId, Math.min(sizeBytes, textsLeft));
      textsLeft -= bytes.byteLength;
      const cut = bytes.byteLength < sizeBytes;
      return { kind: 'text', text: decode(bytes, cut), cut };
    }
    if (!images || !IMAGE.test(mediaType)) return none('you cannot read files of this type');
    if (sizeBytes > LONGEST_IMAGE) return none('it is too large');
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
      turn.tools.say(`${turn.name}  without ${fileName}: ${error.message}`);
      contents.set(attachmentId, none('its content is gone'));
    }
  }
  return contents;
}

/**
 * Fetches what the model gets of the files that people attached: texts, the beginning of one that is too long, and images
 * where the model takes them. The latest files come first, until the space is used up.
 * @throws ApiError 409 when the lease is lost
 */
export function readFiles(turn: Turn, conversation: Conversation, images: boolean): Promise<FileContents> {
  const attached = conversation.messages
    .filter(({ role }) => role !== 'assistant')
    .flatMap(({ parts }) => parts.filter(({ kind }) => kind === 'attachment'));
  return fetchFiles(turn, attached.reverse(), images);
}
