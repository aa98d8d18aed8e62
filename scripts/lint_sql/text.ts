import type { SqlFile } from '../../engine/db/schema/files.ts';

/** What a rule finds at a place of the file's text. */
export type Finding = Readonly<{ at: number; message: string }>;

export type Source = SqlFile &
  Readonly<{
    /** The text with comments and the inside of strings blanked out, place by place; bodies of functions stay. */
    code: string;
  }>;

const COMMENT_OR_STRING = /--[^\n]*|'(?:[^']|'')*'/g;

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ');
}

export function sourceOf(file: SqlFile): Source {
  const code = file.text.replaceAll(COMMENT_OR_STRING, (found) =>
    found.startsWith('--') ? blank(found) : `'${blank(found.slice(1, -1))}'`,
  );
  return { ...file, code };
}

/** Where the pattern is found in the code. */
export function findings(
  source: Source,
  pattern: RegExp,
  message: (match: RegExpMatchArray) => string | undefined,
): Finding[] {
  return [...source.code.matchAll(pattern)].flatMap((match) => {
    const said = message(match);
    return said === undefined ? [] : [{ at: match.index, message: said }];
  });
}

export function lineOf(source: SqlFile, at: number): number {
  return source.text.slice(0, at).split('\n').length;
}
