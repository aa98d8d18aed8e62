// A template for an agent in TypeScript, for Node.js 24. Copy it, put your model in the place of `work`, and run it for every task:
//   npm run worker -- --exec 'node examples/agents/agent.ts'
// The worker starts it in a folder of its own, once for each run. TASK.md there says all that counts, as a page to read or to give
// to a model; task.json says the same for programs.
import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

type Task = {
  title: string;
  spec: { acceptanceCriteria?: { kind: string; path?: string }[] };
  state: { answers?: { response: string }[] };
};
type Result =
  | { summary: string }
  | { kind: 'needs_input'; question: string; options: string[] }
  | { kind: 'waiting'; until: string; reason: string }
  // Until actions of this task are over: those that await an owner's approval, for instance.
  | { kind: 'waiting'; actionIds: string[]; reason: string }
  | { kind: 'failed'; code: string; message: string; retryable: boolean };

const { INPUT_DIR = '', OUTPUT_DIR = '', PROGRESS_FILE = '', RESULT_FILE = '', BUSINESS_RUNNER_MODE } = process.env;

/** A line in the log of the run, which people see while they wait. */
function progress(label: string): void {
  appendFileSync(PROGRESS_FILE, `${JSON.stringify({ label })}\n`);
}

/** How the run ends. Without it exit status 0 completes the run, and any other is tried again. */
function end(result: Result): void {
  writeFileSync(RESULT_FILE, JSON.stringify(result));
}

/** The work itself: give the page to your model, and return what it writes. */
function work(page: string, audience: string, inputs: readonly string[]): string {
  const title = page.slice(page.indexOf(': ') + 2, page.indexOf('\n'));
  return [`# ${title}`, '', `For ${audience}.`, ...inputs.map((name) => `- read ${name}`), ''].join('\n');
}

function execute(): void {
  const page = readFileSync('TASK.md', 'utf8');
  const task: Task = JSON.parse(readFileSync('task.json', 'utf8'));

  // The last answer that a person gave, else what the title says.
  const audience = task.state.answers?.at(-1)?.response ?? / for (.+)/.exec(task.title)?.[1];
  if (!audience) {
    // The task waits, and the next run finds the answer.
    end({ kind: 'needs_input', question: 'Who is it for?', options: ['the team', 'the customers'] });
    return;
  }

  // The file that the first acceptance criterion names.
  const criterion = task.spec.acceptanceCriteria?.find(({ kind }) => kind === 'output_file');
  const name = criterion?.path ?? 'result.md';

  progress(`Writing ${name}`);
  const inputs = readdirSync(INPUT_DIR, { recursive: true, encoding: 'utf8' }).sort();
  mkdirSync(path.dirname(path.join(OUTPUT_DIR, name)), { recursive: true });
  writeFileSync(path.join(OUTPUT_DIR, name), work(page, audience, inputs));
  end({ summary: `${name} is written.` });
}

if (BUSINESS_RUNNER_MODE === 'execute') execute();
// The standard output is the reply, which streams while it is written.
else if (BUSINESS_RUNNER_MODE === 'chat') console.log(`You wrote: ${readFileSync('message.txt', 'utf8').trim()}`);
// For good: another try would change nothing.
else
  end({
    kind: 'failed',
    code: 'unsupported',
    message: `This agent does not ${BUSINESS_RUNNER_MODE}`,
    retryable: false,
  });
