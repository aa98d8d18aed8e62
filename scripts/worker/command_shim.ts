import { writeFile } from 'node:fs/promises';
import path from 'node:path';

const COMMAND = path.resolve(import.meta.dirname, '../command/business-runner.mjs');

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Puts `business-runner` into the folder that a run has on its PATH, on the Node of this worker. */
export async function writeCommand(bin: string): Promise<void> {
  // Settings of the machine are none of the agent's.
  const shim = `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(COMMAND)} --no-env-file "$@"\n`;
  await writeFile(path.join(bin, 'business-runner'), shim, { mode: 0o755 });
}
