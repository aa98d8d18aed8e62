import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Writable } from 'node:stream';

const POLL_INTERVAL_MS = 100;

/** Copies what is appended to `file` from now on to `output`. Returns how to stop, after a last look. */
export function followLog(file: string, output: Writable): () => void {
  const descriptor = openSync(file, 'r');
  const chunk = Buffer.alloc(64 * 1024);
  let position = fstatSync(descriptor).size;
  const copy = () => {
    // A log that is too long is emptied.
    if (fstatSync(descriptor).size < position) position = 0;
    for (;;) {
      const length = readSync(descriptor, chunk, 0, chunk.length, position);
      if (length === 0) return;
      position += length;
      output.write(Buffer.from(chunk.subarray(0, length)));
    }
  };
  const timer = setInterval(copy, POLL_INTERVAL_MS);
  return () => {
    clearInterval(timer);
    copy();
    closeSync(descriptor);
  };
}
