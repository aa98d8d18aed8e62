import { copyFileSync, fstatSync, ftruncateSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { unusable } from './data_folder.ts';

const MAX_BYTES = 20 * 1024 * 1024;
const CHECK_MS = 30_000;

/**
 * A log that children write themselves (by its descriptor), so that they never wait for us and survive us. Past 20 MiB
 * it is copied to `….1` and emptied: the descriptors append, so they go on at the new end. Nothing here throws once it is
 * open: what is only said ends nothing.
 */
export type LogFile = Readonly<{
  path: string;
  descriptor: number;
  /** A line that cannot be written, for instance on a full disk, is left out and counted. */
  write: (line: string) => void;
  /** The last lines, for a person who has to see why something did not start; none where they cannot be read. */
  tail: (lines: number) => readonly string[];
  close: () => void;
}>;

export type LogFileOptions = Readonly<{
  /** Prints a line for the person at the terminal: when the log cannot be written, and when it can be again. */
  print: (line: string) => void;
  maxBytes?: number;
  checkMs?: number;
}>;

/** Writes whole lines, leaves out those that cannot be written, and says so once. */
function lineWriter(file: string, descriptor: number, print: (line: string) => void) {
  let failing = false;
  let leftOut = 0;
  /** A full disk may take a part of a line. */
  let isLineOpen = false;

  function append(line: string): void {
    const bytes = Buffer.from(`${isLineOpen ? '\n' : ''}${line}\n`);
    const written = writeSync(descriptor, bytes);
    if (written > 0) isLineOpen = written < bytes.length;
    if (isLineOpen) throw new Error('no space left on device');
  }

  return (line: string): void => {
    try {
      if (leftOut > 0) append(`${leftOut} lines were left out`);
      leftOut = 0;
      append(line);
      if (failing) print(`${file} is written again`);
      failing = false;
    } catch (error) {
      leftOut += 1;
      if (!failing) print(`${file} cannot be written, its lines are left out: ${(error as Error).message}`);
      failing = true;
    }
  };
}

/** Half a copy only takes room. */
function removeCopy(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // Something else lies there.
  }
}

/** @throws ConfigError where the file cannot be opened */
export function openLogFile(dataDir: string, name: string, options: LogFileOptions): LogFile {
  const { print, maxBytes = MAX_BYTES, checkMs = CHECK_MS } = options;
  const folder = path.join(dataDir, 'logs');
  const file = path.join(folder, `${name}.log`);
  let descriptor: number;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    descriptor = openSync(file, 'a+', 0o600);
  } catch (error) {
    throw unusable(dataDir, error);
  }
  let isTold = false;
  const rotate = () => {
    try {
      if (fstatSync(descriptor).size < maxBytes) return;
      copyFileSync(file, `${file}.1`);
      ftruncateSync(descriptor);
      isTold = false;
    } catch (error) {
      removeCopy(`${file}.1`);
      if (!isTold) print(`${file} cannot be copied to ${file}.1 and grows: ${(error as Error).message}`);
      isTold = true;
    }
  };
  rotate();
  const timer = setInterval(rotate, checkMs);
  timer.unref();
  return {
    path: file,
    descriptor,
    write: lineWriter(file, descriptor, print),
    tail(lines) {
      try {
        return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines);
      } catch {
        return [];
      }
    },
    close: () => clearInterval(timer),
  };
}
