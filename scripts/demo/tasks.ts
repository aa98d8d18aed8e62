import { readFileSync } from 'node:fs';
import path from 'node:path';

export const EXAMPLES = path.resolve(import.meta.dirname, '../../examples');

/** The totals of the shipped sales; a test computes them anew. */
export const GROSS_TOTAL = 19643.33;
export const NET_TOTAL = 18780.36;

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A shell command that runs a script by the Node of this process. */
export function nodeCommand(file: string): string {
  return `${quoted(process.execPath)} ${quoted(file)}`;
}

/** A shipped example as a command. */
export function exampleCommand(name: string): string {
  return nodeCommand(path.join(EXAMPLES, name));
}

/** The demo's worker runs this for each task. */
export const DEMO_COMMAND = exampleCommand('sales_report.mjs');

/** A task whose input is the shipped sales file and whose acceptance criteria expect its total. */
function reportTask(title: string, objective: string, total: number, basis: string) {
  return {
    title,
    ownerProfileKey: 'growth',
    spec: {
      objective,
      inputs: [
        {
          kind: 'inline',
          path: 'sales.csv',
          text: readFileSync(path.join(EXAMPLES, 'sales.csv'), 'utf8'),
          mediaType: 'text/csv',
        },
      ],
      acceptanceCriteria: [
        {
          kind: 'output_file',
          path: 'report.json',
          checks: [
            { kind: 'media_type', anyOf: ['application/json'] },
            { kind: 'json_pointer', pointer: '/total', operator: 'eq', value: total },
            { kind: 'json_pointer', pointer: '/basis', operator: 'eq', value: basis },
          ],
        },
        { kind: 'output_file', path: 'report.md', checks: [{ kind: 'media_type', anyOf: ['text/markdown'] }] },
      ],
    },
  };
}

/** The first result of the second task is refused: the script deducts returns only in its second attempt. */
export function demoTasks() {
  return [
    reportTask(
      'Gross sales of the third quarter',
      'Add up sales.csv by region and by product, returns left out. Hand in report.json for programs and report.md for people.',
      GROSS_TOTAL,
      'gross',
    ),
    reportTask(
      'Net sales of the third quarter',
      'Add up sales.csv by region and by product, returns deducted. Hand in report.json for programs and report.md for people.',
      NET_TOTAL,
      'net',
    ),
  ];
}
