import { copyFileSync, fstatSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';

const MAX_BYTES = 20 * 1024 * 1024;
const CHECK_MS = 30_000;

/**
 * A log that children write themselves (by its descriptor), so that they never wait for us and survive us. Past 20 MiB
 * it is copied to `….1` and emptied: the descriptors append, so they go on at the new end.
 */
export type LogFile = Readonly<{
  path: string;
  descriptor: number;
  write: (line: string) => void;
  /** The last lines, for a person who has to see why something did not start. */
  tail: (lines: number) => readonly string[];
  close: () => void;
}>;

export function openLogFile(dataDir: string, name: string): LogFile {
  const folder = path.join(dataDir, 'logs');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, `${name}.log`);
  const descriptor = openSync(file, 'a+', 0o600);
  const rotate = () => {
    if (fstatSync(descriptor).size < MAX_BYTES) return;
    copyFileSync(file, `${file}.1`);
    ftruncateSync(descriptor);
  };
  rotate();
  const timer = setInterval(rotate, CHECK_MS);
  timer.unref();
  return {
    path: file,
    descriptor,
    write: (line) => void writeSync(descriptor, `${line}\n`),
    tail: (lines) => readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines),
    close: () => clearInterval(timer),
  };
}
