import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';

const guarded = new WeakSet<Writable>();

/**
 * Writes to standard output or standard error. Whoever reads may go first, and the disk of a file be full: then nobody reads it,
 * and the work goes on.
 */
export function writeOutput(stream: Writable & { readonly fd: number }, text: string): void {
  // A file. Its stream would take nothing more after one failure, and others throw what they hear of it.
  if (!(stream instanceof Socket)) {
    try {
      writeSync(stream.fd, text);
    } catch {
      // Perhaps the next time.
    }
    return;
  }
  if (!guarded.has(stream)) {
    guarded.add(stream);
    stream.on('error', () => {});
  }
  stream.write(text);
}
