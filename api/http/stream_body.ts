import type { Readable } from 'node:stream';

/** A body that is not JSON: the handler reads it as a stream by `openBody()`. */
export type StreamBody = Readonly<{
  stream: true;
  // Media types that are accepted, or `*/*`; others are 415.
  mediaTypes: readonly string[];
  /** Values of Content-Encoding that the handler decodes, or hands on. Default: none. */
  encodings?: readonly string[];
  /** Longest body in bytes; beyond it 413 with `tooLargeCode`. */
  maxBytes: number;
  tooLargeCode?: string;
}>;

export type StreamedBody = Readable;
