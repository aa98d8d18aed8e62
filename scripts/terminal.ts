import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { writeOutput } from '../engine/process/output.ts';

/**
 * What moves the cursor, colours, rings, ends the line or turns the direction of writing: C0 and C1 controls, line and paragraph
 * separators, the marks and overrides of bidirectional text.
 */
const CONTROLS = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gv;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escaped(character: string): string {
  return SHORT[character] ?? `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}

/** Text of a stranger on one line, with nothing in it that a terminal obeys. */
export function plain(text: string): string {
  // A lone surrogate has no bytes in UTF-8.
  return text.toWellFormed().replace(CONTROLS, escaped);
}

/** The same for text of several lines, or a piece of one: line feeds and tabs stay. */
export function plainText(text: string): string {
  return text.toWellFormed().replace(CONTROLS, (found) => (found === '\n' || found === '\t' ? found : escaped(found)));
}

/** One line on standard output, whatever it holds. */
export function printLine(line = ''): void {
  writeOutput(process.stdout, `${plain(line)}\n`);
}

/** The same with the time of the clock before it. */
export function printTimed(line: string): void {
  printLine(`${new Date().toTimeString().slice(0, 8)}  ${line}`);
}

/** Text of several lines, or a piece of one. */
export function printText(text: string): void {
  writeOutput(process.stdout, plainText(text));
}

/** One line on standard error. */
export function printError(line: string): void {
  writeOutput(process.stderr, `${plain(line)}\n`);
}

/** Several lines on standard error, such as a stack. */
export function printErrorText(text: string): void {
  writeOutput(process.stderr, plainText(text));
}

/** Asks a question that only a line `yes` affirms. The end of input, such as Ctrl-D, is a no, and so is that of `signal`. */
export async function askYes(question: string, input: Readable, signal?: AbortSignal): Promise<boolean> {
  printText(`${question} Type yes: `);
  // Unlike the promise of `question`, the lines end with the input.
  for await (const line of createInterface({ input, ...(signal ? { signal } : {}) })) return line.trim() === 'yes';
  // Nobody ended the line of the question.
  printLine();
  return false;
}
