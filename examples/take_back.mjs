// An agent that works outside, for `npm run demo -- actions`: it reads orders from an integration, proposes to take two pieces
// back, and waits for the people who decide. Its next run hands in what became of it. It uses nothing but `business-runner`, which a
// worker puts on the PATH, and the files of its run.
import { spawnSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const { INTEGRATION = 'demo-returns', OUTPUT_DIR, PROGRESS_FILE, RESULT_FILE } = process.env;
const PROPOSED = 3;

const note = (text) => appendFileSync(PROGRESS_FILE, `${text}\n`);
const end = (result) => writeFileSync(RESULT_FILE, JSON.stringify(result));

function runner(...argv) {
  const { status, stdout, stderr } = spawnSync('business-runner', [...argv, '--json'], { encoding: 'utf8' });
  if (status === 0 || status === PROPOSED) return JSON.parse(stdout);
  throw new Error(stderr.trim() || `business-runner ended with exit status ${status}`);
}
const call = (tool, args) => runner('call', INTEGRATION, tool, '--arguments', JSON.stringify(args));
/** What a tool of an MCP server says, which here is JSON in its first text. */
const saidBy = ({ content }) => JSON.parse(content[0].text);

/** What this task has proposed in an earlier run. */
const [known] = runner('actions');

if (known === undefined) {
  const orders = saidBy(call('orders.list', { limit: 100 }).data);
  const order = orders.find(({ kind, quantity }) => kind === 'sale' && quantity >= 2);
  note(`Read ${orders.length} orders: ${order.order} has ${order.quantity} of ${order.product}`);
  const { action } = call('returns.create', { order: order.order, quantity: 2 });
  note(`Proposed: ${action.summary}`);
  end({ kind: 'waiting', actionIds: [action.id], reason: 'A person decides about the return' });
} else if (known.status === 'succeeded') {
  const back = saidBy(known.execution.result);
  const text = `# Return\n\nBooked the return of ${back.quantity} of ${back.product}, order ${back.order}, on ${back.date}.\n`;
  writeFileSync(path.join(OUTPUT_DIR, 'return.md'), text);
  end({ summary: `Booked the return of ${back.quantity} of ${back.product} (order ${back.order})` });
} else {
  const why = known.decision?.note ?? known.reason?.message ?? known.status;
  end({ kind: 'failed', code: 'not_returned', message: `The return is ${known.status}: ${why}`, retryable: false });
}
