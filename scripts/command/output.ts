import type { styleText } from 'node:util';
import { type Table, tableLines } from '../report/table.ts';
import { cut, width } from '../report/text.ts';
import { plain, plainText } from '../terminal.ts';

type Style = Parameters<typeof styleText>[0];

/** Where the command writes. Whatever a stranger wrote is escaped here. */
export type Output = Readonly<{
  /** Whether JSON is asked for: then nothing else is written to the standard output. */
  json: boolean;
  columns: number;
  /** A further call to copy, for the same organization and API. */
  call: (words: string) => string;
  /** A line of the result. */
  line: (text?: string, style?: Style) => void;
  /** Text of several lines, or a piece of one. */
  text: (text: string) => void;
  table: (table: Table, empty: string) => void;
  value: (value: unknown) => void;
  /** What happens while a person waits, on the standard error; nothing with --json. */
  progress: (line: string, style?: Style) => void;
}>;

export type Streams = Readonly<{
  out: (text: string) => void;
  err: (text: string) => void;
  columns: number;
  /** Leaves the text alone where the stream shows no styles. */
  styleOut: (style: Style, text: string) => string;
  styleErr: (style: Style, text: string) => string;
}>;

/** A word of a shell line. */
export function shellWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** @param given the options of this call that a further one needs as well, by their names */
export function createOutput(
  json: boolean,
  { out, err, columns, styleOut, styleErr }: Streams,
  given: Readonly<Record<string, string | undefined>> = {},
): Output {
  const again = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [` --${name} ${shellWord(value)}`],
  );
  const styled = (apply: Streams['styleOut'], text: string, style: Style | undefined) =>
    style === undefined || text === '' ? plain(text) : apply(style, plain(text));
  return {
    json,
    columns,
    call: (words) => `npx business-runner ${words}${again.join('')}`,
    line: (text = '', style) => out(`${styled(styleOut, text, style)}\n`),
    text: (text) => out(plainText(text)),
    table(table, empty) {
      if (table.rows.length === 0) return out(`${empty}\n`);
      const rows = table.rows.map((row) => row.map((cell) => (typeof cell === 'string' ? plain(cell) : cell)));
      const [head = '', ...lines] = tableLines({ ...table, rows }, columns);
      out(`${[styleOut('bold', head), ...lines].join('\n')}\n`);
    },
    // Controls that JSON itself lets through are escaped as JSON escapes them: it reads back as the same.
    value: (value) => out(`${plainText(JSON.stringify(value, null, 2))}\n`),
    progress(line, style) {
      if (!json) err(`${styled(styleErr, line, style)}\n`);
    },
  };
}

/** Paragraphs broken between words, each line after `indent`. A word that is too long keeps a line of its own. */
export function wrapped(text: string, columns: number, indent = ''): string[] {
  const room = Math.max(20, columns - indent.length);
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let line = '';
    for (const word of paragraph.split(' ')) {
      const longer = line === '' ? word : `${line} ${word}`;
      if (line !== '' && width(longer) > room) {
        lines.push(indent + line);
        line = word;
      } else line = longer;
    }
    return [...lines, indent + line];
  });
}

/** A name and what it has to say, the lines of the latter below each other. */
export function fieldLines(name: string, text: string, columns: number): string[] {
  const indent = '  '.padEnd(12);
  const [first = '', ...rest] = wrapped(text, columns, indent);
  return [`  ${name.padEnd(10)}${first.trimStart()}`, ...rest];
}

/** On one line that fits. */
export function oneLine(text: string, columns: number): string {
  return cut(plain(text.replace(/\s+/g, ' ').trim()), columns);
}

/** "2026-11-27T09:20:42.001Z" → "2026-11-27 09:20", in the time zone of this machine. */
export function localTime(instant: string): string {
  return new Date(instant).toLocaleString('sv-SE', { dateStyle: 'short', timeStyle: 'short' });
}

/** A sentence of the API, whose times are those of no time zone that a person lives in. */
export function withLocalTimes(text: string): string {
  return text.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\b/g, localTime);
}

/** "2026-11-27T09:20:42.001Z" → "09:20:42", in the time zone of this machine. */
export function clockTime(instant: string): string {
  return new Date(instant).toTimeString().slice(0, 8);
}
