import { isUtf8 } from 'node:buffer';
import path from 'node:path';
import { likelyEncoding } from './text_encoding.ts';

export const OCTET_STREAM = 'application/octet-stream';
/** Without parameters, in lower case. */
export const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}$/;

/** How much of a file the signature is looked for in: office files name their kind some way into the archive. */
const SAMPLE_BYTES = 64 * 1024;

/** Types without a signature: the name says which text it is, the bytes have to be text. */
const TEXT_TYPES: Readonly<Record<string, string>> = {
  '.md': 'text/markdown',
  '.markdown': 'text/markdown',
  '.txt': 'text/plain',
  '.text': 'text/plain',
  '.log': 'text/plain',
  '.csv': 'text/csv',
  '.tsv': 'text/tab-separated-values',
  '.json': 'application/json',
  '.jsonl': 'application/x-ndjson',
  '.ndjson': 'application/x-ndjson',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.toml': 'application/toml',
  '.html': 'text/html',
  '.htm': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.xml': 'application/xml',
  '.svg': 'image/svg+xml',
  '.sql': 'application/sql',
  '.ics': 'text/calendar',
  '.patch': 'text/x-diff',
  '.diff': 'text/x-diff',
};

/** How many bytes of a UTF-8 character that `chunk` does not hold whole are at its end: at most three. */
export function cutOff(chunk: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= chunk.length; back += 1) {
    const byte = chunk[chunk.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? back : 0;
    }
  }
  return 0;
}

export type TextCheck = Readonly<{
  observe: (chunk: Uint8Array) => void;
  /** Why the bytes are no text, for people; null for text. After the last chunk. */
  problem: () => string | null;
}>;

/** Strict UTF-8 without NUL, chunk by chunk; a character may lie across two chunks. */
export function textCheck(): TextCheck {
  let carry = Buffer.alloc(0);
  /** Where the first bytes that are no text lie. */
  let wrong: Uint8Array | undefined;
  return {
    observe(chunk) {
      if (wrong) return;
      const bytes = carry.length > 0 ? Buffer.concat([carry, chunk]) : chunk;
      const whole = bytes.subarray(0, bytes.length - cutOff(bytes));
      // A copy: the source may use its buffer again.
      if (!isUtf8(whole) || whole.includes(0)) wrong = Uint8Array.from(whole.subarray(0, SAMPLE_BYTES));
      carry = Buffer.from(bytes.subarray(whole.length));
    },
    problem() {
      const sample = wrong ?? (carry.length > 0 ? carry : undefined);
      if (sample === undefined) return null;
      const encoding = likelyEncoding(sample);
      return `is not UTF-8 text${encoding ? `; it seems to be ${encoding}` : ''}`;
    },
  };
}

export type MediaTypeProbe = Readonly<{
  observe: (chunk: Uint8Array) => void;
  /** After the last chunk. */
  mediaType: () => Promise<string>;
  /** Why a file whose name stands for text is none, for people; null for text, and for other names. */
  textProblem: () => string | null;
}>;

/**
 * The canonical media type of a file, from its bytes while they pass by: a text type when the name has a text extension
 * and all of the file is UTF-8, else what the signature of its first bytes says, else `application/octet-stream`.
 * What a caller claims plays no part.
 */
export function mediaTypeProbe(fileName: string): MediaTypeProbe {
  const textType = TEXT_TYPES[path.extname(fileName).toLowerCase()];
  const text = textCheck();
  const sample: Uint8Array[] = [];
  let sampled = 0;
  return {
    observe(chunk) {
      if (textType !== undefined) text.observe(chunk);
      if (sampled >= SAMPLE_BYTES) return;
      // A copy: the source may use its buffer again.
      const part = Uint8Array.from(chunk.subarray(0, SAMPLE_BYTES - sampled));
      sample.push(part);
      sampled += part.length;
    },
    async mediaType() {
      if (textType !== undefined && text.problem() === null) return textType;
      const { fileTypeFromBuffer } = await import('file-type');
      const found = await fileTypeFromBuffer(Buffer.concat(sample));
      return found?.mime ?? OCTET_STREAM;
    },
    textProblem: text.problem,
  };
}

const ZIP = 'application/zip';
const OFFICE = 'application/vnd.openxmlformats-officedocument';
const MP4 = ['video/mp4', 'video/quicktime', 'video/x-m4v', 'audio/mp4', 'audio/x-m4a'];

/** Types whose bytes begin with a signature that is found for sure, and what it is found to be. */
const SIGNATURES: Readonly<Record<string, readonly string[]>> = {
  'application/pdf': ['application/pdf'],
  'image/png': ['image/png', 'image/apng'],
  'image/jpeg': ['image/jpeg'],
  'image/gif': ['image/gif'],
  'image/webp': ['image/webp'],
  'application/gzip': ['application/gzip'],
  // An archive may hold its parts in an order by which its kind is not seen.
  [`${OFFICE}.wordprocessingml.document`]: [`${OFFICE}.wordprocessingml.document`, ZIP],
  [`${OFFICE}.spreadsheetml.sheet`]: [`${OFFICE}.spreadsheetml.sheet`, ZIP],
  [`${OFFICE}.presentationml.presentation`]: [`${OFFICE}.presentationml.presentation`, ZIP],
  'video/mp4': MP4,
  'video/quicktime': MP4,
  'audio/mp4': MP4,
};

/** What bytes are found to be that may be text all the same. */
const TEXT_FOUND = /^text\/|^application\/(?:octet-stream|xml|rtf)$|\+xml$/;

/**
 * Why the bytes are not of the type that is declared, for people; null: they may be. Types without a signature of their own may be
 * anything, save that text is not of a type that has one. `found`: what `mediaTypeProbe('')` says, which looks at signatures alone.
 */
export function signatureProblem(declared: string, found: string): string | null {
  const expected = SIGNATURES[declared];
  if (expected) return expected.includes(found) ? null : `the bytes do not have the signature of ${declared}`;
  return declared.startsWith('text/') && !TEXT_FOUND.test(found) ? `the bytes have the signature of ${found}` : null;
}
