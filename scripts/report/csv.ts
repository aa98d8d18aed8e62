import { plain } from '../terminal.ts';

/** What a spreadsheet takes for a formula when a cell begins with it, also in another width or size (＝, ﹢, ⁻). */
const FORMULA = /^[=+\-\u2212@]/;
const isFormula = (text: string) => FORMULA.test(text.slice(0, 4).normalize('NFKD'));
const QUOTED = /[",\r\n]/;

/**
 * Text by RFC 4180, that no spreadsheet calculates with (an apostrophe stands before what would be a formula) and no terminal
 * obeys.
 */
function textField(text: string): string {
  const shown = plain(text);
  const safe = isFormula(shown) ? `'${shown}` : shown;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** `numeric`: a number as the database wrote it, which stays one. Null is an empty field. */
export type CsvField = Readonly<{ value: string | boolean | null; numeric: boolean }>;

/** A record with its line end. */
export function csvRecord(fields: readonly CsvField[]): string {
  const texts = fields.map(({ value, numeric }) => {
    if (value === null) return '';
    return numeric ? String(value) : textField(String(value));
  });
  return `${texts.join(',')}\r\n`;
}
