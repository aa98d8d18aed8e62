import { actionLines } from './action_text.ts';
import { clockTime, fieldLines, localTime, type Output, oneLine, shellWord, wrapped } from './output.ts';
import type { Artifact, InboxItem, LogEntry, Run, Task } from './schemas.ts';
import type { TaskCalls } from './task_calls.ts';

const MAX_SHOWN_BYTES = 4_096;
const MAX_SHOWN_FILES = 3;
const INDENT = '    ';

type Style = Parameters<Output['line']>[1];

/** The color of each state. */
export function styleOf(status: string): Style {
  if (status === 'completed' || status === 'succeeded') return 'green';
  return ['failed', 'expired', 'cancelled'].includes(status) ? 'red' : undefined;
}

/** What an item says. The title of an agent's question only names its task; that of an action is what to do, and how its body begins. */
export function askedText({ title, body, purpose }: InboxItem): string {
  const [, lead = '', rest = ''] = /^([^:]+: )(.+)$/s.exec(title) ?? [];
  if (rest !== '' && body.startsWith(rest)) return lead + body;
  const named = purpose === 'needs_input' || title === body;
  return [named ? '' : title, body].filter((text) => text !== '').join('\n');
}

/** What is asked, and the line that answers it. */
export function questionLines(output: Pick<Output, 'call'>, item: InboxItem, ref: string): string[] {
  const [first = 'TEXT'] = item.options;
  return [
    ...askedText(item).split('\n'),
    ...item.options.map((option) => `- ${option}`),
    output.call(`inbox respond ${ref} ${shellWord(oneLine(first, 200))}`),
  ];
}

/** Why a run was no success: the checks that its result failed, else its error. */
export function failureText({ error, output }: Run): string {
  const failed = (output?.result?.completion?.checks ?? []).filter(({ status }) => status === 'failed');
  if (failed.length > 0) return `its result was refused: ${failed.map(({ summary }) => summary).join('; ')}`;
  return error?.message ?? '';
}

/** "run 2 failed: …", the first line beside it and the others below. */
export function runLines(run: Run, number: number): string[] {
  const why = failureText(run);
  const [first = '', ...rest] = `run ${number} ${run.status}${why === '' ? '' : `: ${why}`}`.split('\n');
  return [first, ...rest.map((line) => INDENT + line)];
}

export function logLine({ label, detail }: LogEntry): string {
  return detail === '' ? label : `${label}: ${detail}`;
}

export function artifactPath(home: string, { runId }: Artifact, index: number): string {
  return `${home}/runs/${runId}/artifacts/${index}/content`;
}

/** A text that fits on a screen is shown as it is. */
function isShown({ mediaType, size }: Artifact): boolean {
  return size > 0 && size <= MAX_SHOWN_BYTES && /^text\/|[/+]json$/.test(mediaType);
}

async function printFiles(calls: TaskCalls, output: Output, artifacts: readonly Artifact[]): Promise<void> {
  let shown = 0;
  for (const [index, artifact] of artifacts.entries()) {
    if (!isShown(artifact) || shown === MAX_SHOWN_FILES) continue;
    shown += 1;
    const content = await calls.content(artifactPath(calls.home, artifact, index));
    output.line();
    output.line(`${artifact.path}:`, 'bold');
    output.text(`${content.trimEnd().replace(/^/gm, INDENT)}\n`);
  }
}

/** Why it does not go on, or how it ended. */
async function standingLines(calls: TaskCalls, output: Output, task: Task): Promise<[string, string][]> {
  const { state, status, identifier, result } = task;
  if (status === 'completed') return result?.summary ? [['summary', result.summary]] : [];
  if (state.error) return [['why', state.error.message]];
  const lines: [string, string][] = [['why', (await calls.why(identifier)).join('\n')]];
  for (const { inboxItemId, actionId } of state.blockers) {
    if (actionId !== undefined) lines.push(['action', actionLines(output, await calls.action(actionId)).join('\n')]);
    if (inboxItemId === undefined) continue;
    const question = await calls.question(inboxItemId);
    lines.push(['asks', questionLines(output, question, identifier).join('\n')]);
  }
  return lines;
}

/** A task with its result, or why it has none, as a person reads it. */
export async function printTask(calls: TaskCalls, output: Output, task: Task, runs: readonly Run[]): Promise<void> {
  const { identifier, title, status, result, createdAt } = task;
  const print = (name: string, text: string, style?: Style) => {
    for (const line of fieldLines(name, text, output.columns)) output.line(line, style);
  };
  output.line(`${identifier}  ${title}`, 'bold');
  print('status', status, styleOf(status));
  print('created', localTime(createdAt));
  for (const [name, text] of await standingLines(calls, output, task)) print(name, text);
  for (const [index, run] of runs.entries()) {
    const why = failureText(run);
    if (why !== '') print(`run ${index + 1}`, oneLine(`${run.status}: ${why}`, output.columns - 12), 'dim');
  }
  const artifacts = status === 'completed' ? (result?.artifacts ?? []) : [];
  for (const { status: passed, summary } of result?.completion?.checks ?? []) print('check', `${passed}: ${summary}`);
  for (const [index, artifact] of artifacts.entries()) {
    print('file', `${artifact.path} (${artifact.mediaType}, ${artifact.size} bytes)`);
    // Not broken: a terminal follows it.
    output.line(`${' '.repeat(12)}${calls.url}${artifactPath(calls.home, artifact, index)}`, 'dim');
  }
  await printFiles(calls, output, artifacts);
}

/** What happened at a time of the clock. */
function printEvent(output: Output, instant: string, text: string, style?: Style): void {
  const [first = '', ...more] = wrapped(text, output.columns, ' '.repeat(12));
  output.line(`  ${clockTime(instant)}  ${first.trimStart()}`, style);
  for (const line of more) output.line(line);
}

/** A run with its log. */
export function printRun(output: Output, run: Run, number: number, log: readonly LogEntry[]): void {
  const [first = '', ...rest] = runLines(run, number);
  const about = `(${run.agentProfile.name}, ${run.mode}, ${localTime(run.startedAt)})`;
  output.line(`${first.replace(/:$/, '')} ${about}`, 'bold');
  for (const line of rest) output.line(line);
  const said = failureText(run).replaceAll('\n', ' | ');
  for (const entry of log) {
    // What the command said last stands above as the error.
    if (entry.detail !== '' && said.endsWith(` | ${entry.detail}`)) continue;
    printEvent(output, entry.occurredAt, logLine(entry), styleOf(entry.status === 'failed' ? 'failed' : ''));
  }
  const { question = '' } = run.output?.result ?? {};
  if (question !== '') printEvent(output, run.finishedAt ?? run.startedAt, `Asked: ${question}`, 'yellow');
}

/**
 * What people responded, and how actions ended, between the beginnings of two runs; a question that ended the first stands there
 * already.
 */
export function printAnswers(output: Output, { state }: Task, run: Run, next: Run | undefined): void {
  for (const { respondedAt, purpose, question, title, response } of state.answers ?? []) {
    if (respondedAt < run.startedAt || (next && respondedAt >= next.startedAt)) continue;
    if (purpose === 'action') {
      printEvent(output, respondedAt, `Action ${response}: ${title}`, 'yellow');
      continue;
    }
    const isAsked = question === run.output?.result?.question;
    const asked = isAsked ? '' : ` to ${JSON.stringify(question || title)}`;
    printEvent(output, respondedAt, `Response${asked}: ${response}`, 'yellow');
  }
}
