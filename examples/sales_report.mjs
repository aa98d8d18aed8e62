// A command for the reference worker: adds up INPUT_DIR/sales.csv and hands in report.json and report.md.
//   npm run worker -- --exec 'node examples/sales_report.mjs'
// Money is counted in whole cents, so that a total is what adding it up by hand gives.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const { INPUT_DIR = 'inputs', OUTPUT_DIR = 'outputs', PROGRESS_FILE, RESULT_FILE, USAGE_FILE } = process.env;

function progress(label, detail = '', category = 'execution', status = 'completed') {
  if (PROGRESS_FILE) appendFileSync(PROGRESS_FILE, `${JSON.stringify({ label, detail, category, status })}\n`);
}

/** "12.50" → 1250n. */
function cents(text) {
  const match = /^(\d+)(?:\.(\d{1,2}))?$/.exec(text);
  if (!match) throw new Error(`not an amount: ${JSON.stringify(text)}`);
  return BigInt(match[1]) * 100n + BigInt((match[2] ?? '').padEnd(2, '0'));
}

/** 1250n → "12.50". */
function amount(value) {
  const sign = value < 0n ? '-' : '';
  const digits = String(value < 0n ? -value : value).padStart(3, '0');
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** An amount as a JSON number with exactly these digits; through a float it could become another one. */
const jsonAmount = (value) => JSON.rawJSON(amount(value));

function readSales(file) {
  const [head, ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/);
  const names = head.split(',');
  return lines.map((line) => {
    const row = Object.fromEntries(line.split(',').map((value, index) => [names[index], value]));
    return { ...row, value: BigInt(row.quantity) * cents(row.unit_price) };
  });
}

function sum(rows, by) {
  const totals = new Map();
  for (const row of rows) totals.set(row[by], (totals.get(row[by]) ?? 0n) + row.value);
  return [...totals].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** What the last result was refused for, so that this one mends it. */
function refusedBefore() {
  const { state } = JSON.parse(readFileSync('task.json', 'utf8'));
  return (state?.contract?.checks ?? []).map((check) => check.summary);
}

const rows = readSales(path.join(INPUT_DIR, 'sales.csv'));
progress('Read sales.csv', `${rows.length} rows`, 'tool');

const refusals = refusedBefore();
const deductReturns = refusals.some((summary) => summary.includes('/total'));
if (deductReturns) progress('The last total was refused, deducting returns this time', refusals.join('; '), 'planning');

const sales = rows.filter((row) => row.kind === 'sale');
const returns = rows.filter((row) => row.kind === 'return').map((row) => ({ ...row, value: -row.value }));
const counted = deductReturns ? [...sales, ...returns] : sales;
const total = counted.reduce((all, row) => all + row.value, 0n);
const regions = sum(counted, 'region');
const products = sum(counted, 'product');
progress('Added up', `${counted.length} rows, total ${amount(total)}`, 'execution');

// The parts have to give the whole, whichever way it is cut.
for (const parts of [regions, products]) {
  if (parts.reduce((all, [, value]) => all + value, 0n) !== total) throw new Error('the parts do not give the total');
}
progress('Checked the parts against the total', '', 'verification');

const report = {
  from: rows[0].date,
  to: rows.at(-1).date,
  currency: 'EUR',
  basis: deductReturns ? 'net' : 'gross',
  orders: sales.length,
  returns: returns.length,
  total: jsonAmount(total),
  byRegion: Object.fromEntries(regions.map(([name, value]) => [name, jsonAmount(value)])),
  byProduct: Object.fromEntries(products.map(([name, value]) => [name, jsonAmount(value)])),
};
const table = (title, parts) => [
  `| ${title} | EUR |`,
  '|---|---:|',
  ...parts.map(([name, value]) => `| ${name} | ${amount(value)} |`),
  '',
];
const page = [
  `# Sales ${report.from} to ${report.to} (${report.basis})`,
  '',
  `${report.orders} orders and ${report.returns} returns make **${amount(total)} EUR**` +
    `${deductReturns ? ', returns deducted.' : '; returns are not deducted.'}`,
  '',
  ...table('Region', regions),
  ...table('Product', products),
];
writeFileSync(path.join(OUTPUT_DIR, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
writeFileSync(path.join(OUTPUT_DIR, 'report.md'), page.join('\n'));
if (RESULT_FILE) {
  const summary = `${report.basis === 'net' ? 'Net' : 'Gross'} sales are ${amount(total)} EUR from ${report.orders} orders.`;
  writeFileSync(RESULT_FILE, JSON.stringify({ summary }));
}
if (USAGE_FILE) writeFileSync(USAGE_FILE, JSON.stringify({ toolCalls: 1 }));
