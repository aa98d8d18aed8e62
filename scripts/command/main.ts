import { styleText } from 'node:util';
import { writeOutput } from '../../engine/process/output.ts';
import { readEnvironmentFile } from '../environment_file.ts';
import { askYes } from '../terminal.ts';
import { command } from './command.ts';
import { openStop } from './stop.ts';

/** Of a screen whose width nobody says. */
const COLUMNS = 80;

const { stdin, stdout, stderr } = process;
const { argv, settings } = readEnvironmentFile(process.argv.slice(2));
process.exitCode = await command({
  argv,
  settings,
  environment: process.env,
  streams: {
    out: (text) => writeOutput(stdout, text),
    err: (text) => writeOutput(stderr, text),
    // A terminal whose size nobody has set says 0.
    columns: stdout.columns || COLUMNS,
    // It leaves text alone where the stream is no terminal or NO_COLOR is set.
    styleOut: (style, text) => styleText(style, text, { stream: stdout }),
    styleErr: (style, text) => styleText(style, text, { stream: stderr }),
  },
  stop: openStop(),
  ask: stdin.isTTY && stdout.isTTY ? (question, signal) => askYes(question, stdin, signal) : undefined,
});
