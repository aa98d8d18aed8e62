import { eastAsianWidth } from 'get-east-asian-width';
import { plain } from '../terminal.ts';

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const EMOJI = /^\p{RGI_Emoji}$/v;
const WITHOUT_WIDTH = /^[\p{Default_Ignorable_Code_Point}\p{Mark}]+$/v;

/** JSON with the controls escaped that JSON itself lets through; it reads back as the same. */
export function json(value: unknown): string {
  return plain(JSON.stringify(value));
}

function widthOf(grapheme: string): number {
  if (WITHOUT_WIDTH.test(grapheme)) return 0;
  return EMOJI.test(grapheme) ? 2 : eastAsianWidth(grapheme.codePointAt(0) ?? 0);
}

/** The columns that `text` takes in a terminal. */
export function width(text: string): number {
  let columns = 0;
  for (const { segment } of graphemes.segment(text)) columns += widthOf(segment);
  return columns;
}

/** At most `columns` wide: what is longer ends with an ellipsis, between two characters as a reader sees them. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += widthOf(segment);
    if (used > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

export type Align = 'left' | 'right';

/** `text` filled with spaces to `columns`. */
export function pad(text: string, columns: number, align: Align): string {
  const spaces = ' '.repeat(Math.max(columns - width(text), 0));
  return align === 'left' ? text + spaces : spaces + text;
}
