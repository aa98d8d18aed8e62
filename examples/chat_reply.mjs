// A command for the reference worker: replies in a chat about the sales that are attached to it, word by word.
//   npm run worker -- --kind chat --exec 'node examples/chat_reply.mjs'
// What goes to the standard output is the reply; whoever reads the chat sees it while it is written.
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const BETWEEN_WORDS_MS = 60;
const { RESULT_FILE } = process.env;

/** "12.50" → 1250n. */
function cents(text) {
  const match = /^(\d+)(?:\.(\d{1,2}))?$/.exec(text);
  if (!match) throw new Error(`not an amount: ${JSON.stringify(text)}`);
  return BigInt(match[1]) * 100n + BigInt((match[2] ?? '').padEnd(2, '0'));
}

/** 1250n → "12.50". */
function amount(value) {
  const digits = String(value).padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

function readSales(file) {
  const [head, ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/);
  const names = head.split(',');
  return lines.map((line) => {
    const row = Object.fromEntries(line.split(',').map((value, index) => [names[index], value]));
    return { ...row, value: BigInt(row.quantity) * cents(row.unit_price) };
  });
}

const sum = (rows) => rows.reduce((total, row) => total + row.value, 0n);

/** Groups and their totals, the largest first. */
function ranking(rows, by) {
  const groups = Map.groupBy(rows, (row) => row[by]);
  return [...groups].map(([name, group]) => [name, sum(group)]).sort(([, a], [, b]) => (a > b ? -1 : 1));
}

function reply(rows, fileName) {
  const sales = rows.filter((row) => row.kind === 'sale');
  const returns = rows.filter((row) => row.kind === 'return');
  const [[best, most], [second, next]] = ranking(sales, 'region');
  const [[product, sold]] = ranking(sales, 'product');
  return [
    `By ${fileName}, ${best} sold most: ${amount(most)} EUR, ${amount(most - next)} more than ${second}.`,
    `The best product of all regions is the ${product.toLowerCase()} with ${amount(sold)} EUR.`,
    `${returns.length} orders came back, worth ${amount(sum(returns))} EUR of ${amount(sum(sales))}.`,
  ].join('\n');
}

/** The file that was attached last. */
function attachment() {
  const { messages } = JSON.parse(readFileSync('conversation.json', 'utf8'));
  return messages.flatMap((message) => message.parts).findLast((part) => part.kind === 'attachment' && part.path);
}

const file = attachment();
const text = file
  ? reply(readSales(file.path), file.fileName)
  : 'Attach the sales as a CSV file with the columns region, product, quantity, unit_price and kind, and ask again.';
for (const word of text.match(/\S+\s*/g)) {
  process.stdout.write(word);
  await sleep(BETWEEN_WORDS_MS);
}
if (RESULT_FILE) writeFileSync(RESULT_FILE, JSON.stringify({ summary: 'Sales of the third quarter.' }));
