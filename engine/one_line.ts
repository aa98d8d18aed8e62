import { storableText } from './storable.ts';

/** Breaks of lines, and characters that move or hide others. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** A stranger's text as one line, of which a person sees all; a longer one ends in an ellipsis. */
export function oneLine(text: string, maxLength: number): string {
  const line = storableText(text).replace(UNSEEN, ' ').replace(/ {2,}/g, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength - 1).toWellFormed()}…`;
}
