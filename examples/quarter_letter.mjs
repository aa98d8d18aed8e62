// A command for the reference worker that plans an initiative and does the tasks of its plan: two of them read
// INPUT_DIR/sales.csv, the third asks a person, waits for both, and writes a letter.
//   npm run worker -- --exec 'node examples/quarter_letter.mjs'
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const { INPUT_DIR = 'inputs', OUTPUT_DIR = 'outputs', PLAN_FILE, RESULT_FILE, BUSINESS_RUNNER_MODE } = process.env;
const { BUSINESS_RUNNER_URL, BUSINESS_RUNNER_TOKEN } = process.env;

const task = JSON.parse(readFileSync('task.json', 'utf8'));
const write = (file, value) => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
const output = (name, text) => writeFileSync(path.join(OUTPUT_DIR, name), text);

/** "12.50" → 1250n. */
function cents(text) {
  const [whole, rest = ''] = text.split('.');
  return BigInt(whole) * 100n + BigInt(rest.padEnd(2, '0'));
}

/** 1250n → "12.50". */
function amount(value) {
  const digits = String(value).padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

function salesOf(kind) {
  const [head, ...lines] = readFileSync(path.join(INPUT_DIR, 'sales.csv'), 'utf8').trim().split(/\r?\n/);
  const names = head.split(',');
  const rows = lines.map((line) => Object.fromEntries(line.split(',').map((value, index) => [names[index], value])));
  return rows
    .filter((row) => row.kind === kind)
    .map((row) => ({ ...row, value: BigInt(row.quantity) * cents(row.unit_price) }));
}

/** Three tasks: the letter waits for what the other two find out. */
function plan() {
  const input = { kind: 'inline', path: 'sales.csv', text: readFileSync(path.join(INPUT_DIR, 'sales.csv'), 'utf8') };
  const spec = (objective, file) => ({
    objective,
    inputs: [input],
    acceptanceCriteria: [{ kind: 'output_file', path: file, checks: [] }],
  });
  const create = (key, title, fields) => ({ op: 'create_task', key, title, ownerProfileKey: 'growth', ...fields });
  write(PLAN_FILE, {
    operations: [
      create('best', 'Find the region that sold most', { spec: spec('best', 'best.md') }),
      create('returns', 'Add up what came back', { spec: spec('returns', 'returns.md') }),
      create('letter', 'Write the letter', { dependsOn: ['best', 'returns'], spec: spec('letter', 'letter.md') }),
    ],
  });
  write(RESULT_FILE, { summary: 'Three tasks: two find out, the third writes it down.' });
}

function best() {
  const totals = new Map();
  for (const row of salesOf('sale')) totals.set(row.region, (totals.get(row.region) ?? 0n) + row.value);
  const [[region, value]] = [...totals].sort(([, a], [, b]) => (a < b ? 1 : -1));
  return `The region ${region} sold most: ${amount(value)} EUR.`;
}

function returns() {
  const rows = salesOf('return');
  return `${rows.length} deliveries came back, worth ${amount(rows.reduce((all, row) => all + row.value, 0n))} EUR.`;
}

/** What the tasks beside this one came to, read with the token of this run. */
async function found() {
  const url = `${BUSINESS_RUNNER_URL}/internal/agent/organizations/${task.organizationId}/tasks?parentId=${task.parentId}`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${BUSINESS_RUNNER_TOKEN}` } });
  if (!response.ok) throw new Error(`the tasks beside this one cannot be read: HTTP ${response.status}`);
  const { data } = await response.json();
  const done = data.filter((beside) => beside.id !== task.id && beside.status === 'completed');
  return done.map((beside) => beside.result.summary).sort();
}

async function letter() {
  const answer = task.state.answers?.at(-1)?.response;
  if (answer === undefined) {
    write(RESULT_FILE, {
      kind: 'needs_input',
      question: 'Who is the letter for?',
      options: ['the team', 'the customers'],
    });
    return;
  }
  const lines = ['# The third quarter', '', `A letter to ${answer}.`, '', ...(await found()), ''];
  output('letter.md', lines.join('\n'));
  write(RESULT_FILE, { summary: `The letter to ${answer} is written.` });
}

function report(summary, file) {
  output(file, `${summary}\n`);
  write(RESULT_FILE, { summary });
}

if (BUSINESS_RUNNER_MODE === 'plan') plan();
else if (task.spec.objective === 'best') report(best(), 'best.md');
else if (task.spec.objective === 'returns') report(returns(), 'returns.md');
else await letter();
