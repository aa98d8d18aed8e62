import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';

/** Settings before the program, then its name: bare, or in single quotes. What else a shell can do is left to the shell. */
const PROGRAM = /^\s*(?:[A-Za-z_]\w*=[\w./:,-]*\s+)*(?:'((?:[^']|'\\'')+)'|([\w./][\w./+-]*))(?=[\s;&|<>]|$)/;
/** Folders that the folder of each run has. */
const OF_EACH_RUN = /^(?:inputs|outputs)\//;

/** An interpreter and the script that it runs, as plain words. */
const SCRIPT = /^(\s*(?:node|python[\d.]*|bash|dash|sh|zsh|ruby|perl|php)\s+)(?!-)([\w./+-]+)(?=\s|$)/;

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function isFile(file: string): boolean {
  try {
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * Commands run in the folder of their run, which is empty but for the task: a relative path of a program, or of the script of an
 * interpreter, means the folder in which the worker was started.
 */
export function resolveProgram(command: string, directory: string): string {
  const absolute = (file: string) => quoted(path.resolve(directory, file));
  return command
    .replace(/^\s*(\.{1,2}\/\S+)/, (_match, program: string) => absolute(program))
    .replace(SCRIPT, (whole, before: string, script: string) =>
      !path.isAbsolute(script) && isFile(path.resolve(directory, script)) ? before + absolute(script) : whole,
    );
}

function missingFile(file: string): string | undefined {
  try {
    if (!statSync(file).isFile()) return `${file} is no file`;
    accessSync(file, constants.X_OK);
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return `there is no ${file}`;
    return `${file} may not be executed (chmod +x)`;
  }
}

/**
 * Why the shell could not start the program of this command, as far as that can be told before it tries; undefined: perhaps it
 * can. `environment` is the one that the command will have.
 */
export function missingProgram(command: string, environment: NodeJS.ProcessEnv): string | undefined {
  const [, , script = ''] = SCRIPT.exec(command) ?? [];
  // One that is there has become a path in quotes.
  if (path.extname(script) !== '' && !OF_EACH_RUN.test(script)) {
    const file = path.resolve(environment['WORKER_DIR'] ?? '', script);
    if (!isFile(file)) return `there is no ${file}`;
  }
  const [, quoted, bare] = PROGRAM.exec(command) ?? [];
  const program = quoted?.replaceAll(`'\\''`, "'") ?? bare;
  if (program === undefined) return undefined;
  if (program.startsWith('/')) return missingFile(program);
  if (OF_EACH_RUN.test(program)) return undefined;
  if (program.includes('/')) return `${program} is looked for in the folder of the run: write ./${program}`;
  // Keywords, what the shell has built in, and the programs in PATH.
  const { status } = spawnSync('/bin/sh', ['-c', 'command -v "$1"', 'sh', program], {
    env: environment,
    stdio: 'ignore',
  });
  if (status === 0) return undefined;
  const isHere = isFile(path.resolve(environment['WORKER_DIR'] ?? '', program));
  return `there is no program ${program} in PATH${isHere ? `: write ./${program}` : ''}`;
}
