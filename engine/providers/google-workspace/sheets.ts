import { z } from 'zod';
import { counted, quoted } from '../texts.ts';
import { covers } from './services.ts';
import { read, readJson, urlOf, type Write, write, writeJson } from './site.ts';

const spreadsheetId = z.string().regex(/^[A-Za-z0-9_-]{1,200}$/);
const range = z
  .string()
  .regex(/^(?!\.{1,2}$)[^\p{Cc}]{1,300}$/u)
  .describe('such as Sheet1!A1:D10');
const cell = z.union([z.string().max(50_000), z.number(), z.boolean(), z.null()]);
const values = z.array(z.array(cell).max(500)).min(1).max(5_000).describe('rows of cells; null leaves one as it is');
const valueInputOption = z
  .enum(['RAW', 'USER_ENTERED'])
  .optional()
  .describe('USER_ENTERED reads texts as if typed, formulas too; by default RAW');
const input = { spreadsheetId, range, values, valueInputOption };
type Given = z.output<z.ZodObject<typeof input>>;

const pathOf = ({ spreadsheetId: of, range: at }: Readonly<{ spreadsheetId: string; range: string }>) =>
  `/v4/spreadsheets/${of}/values/${encodeURIComponent(at)}`;

const placeOf = ({ spreadsheetId: of }: Given) => `spreadsheet ${of} (https://docs.google.com/spreadsheets/d/${of})`;

const updated = z.object({
  spreadsheetId: z.string(),
  updatedRange: z.string().optional(),
  updatedRows: z.int().optional(),
  updatedCells: z.int().optional(),
});

function cellsText({ values: rows, valueInputOption: option }: Given): string {
  const cells = rows.reduce((sum, row) => sum + row.length, 0);
  const how = option === 'USER_ENTERED' ? ', formulas are computed' : '';
  const begin = rows.slice(0, 20).map((row) => row.slice(0, 20).map(String).join(' | '));
  return `${counted(cells, 'cell')} in ${counted(rows.length, 'row')}${how}: ${quoted(begin.join(' / '), 500)}`;
}

function send(
  call: Write<Given>,
  { method, path, query }: Readonly<{ method: 'PUT' | 'POST'; path: string; query?: Readonly<Record<string, string>> }>,
): Promise<unknown> {
  const { range: at, values: rows, valueInputOption: option = 'RAW' } = call.args;
  const url = urlOf('sheets', path, { valueInputOption: option, ...query });
  const schema = z.union([z.object({ updates: updated }).transform(({ updates }) => updates), updated]);
  return writeJson(call, 'sheets', { method, url, body: { range: at, majorDimension: 'ROWS', values: rows } }, schema);
}

// Cells do not say who wrote them: no look-up.
export const sheets = [
  read({
    key: 'google_workspace.sheets.values.get',
    title: 'Read cells',
    description: 'Reads cells of a spreadsheet.',
    scopes: covers.sheetsRead,
    input: {
      spreadsheetId,
      range,
      majorDimension: z.enum(['ROWS', 'COLUMNS']).optional(),
      valueRenderOption: z.enum(['FORMATTED_VALUE', 'UNFORMATTED_VALUE', 'FORMULA']).optional(),
    },
    read: async (call) => {
      const { majorDimension, valueRenderOption } = call.args;
      const url = urlOf('sheets', pathOf(call.args), { majorDimension, valueRenderOption });
      const found = z.object({
        range: z.string(),
        majorDimension: z.string().optional(),
        values: z.array(z.array(z.unknown())).default([]),
      });
      return { data: await readJson(call, 'sheets', url, found) };
    },
  }),
  write({
    key: 'google_workspace.sheets.values.update',
    title: 'Write cells',
    description: 'Writes cells of a spreadsheet. What was in them is replaced.',
    risk: 'external',
    scopes: covers.sheetsWrite,
    input,
    summary: ({ args }) => `Replace what is in ${quoted(args.range)} of ${placeOf(args)} by ${cellsText(args)}`,
    execute: (call) => send(call, { method: 'PUT', path: pathOf(call.args) }),
  }),
  write({
    key: 'google_workspace.sheets.values.append',
    title: 'Add rows',
    description: 'Adds rows below the table that is in a range of a spreadsheet.',
    risk: 'external',
    scopes: covers.sheetsWrite,
    input,
    summary: ({ args }) => `Add below ${quoted(args.range)} of ${placeOf(args)} ${cellsText(args)}`,
    execute: (call) =>
      send(call, { method: 'POST', path: `${pathOf(call.args)}:append`, query: { insertDataOption: 'INSERT_ROWS' } }),
  }),
];
