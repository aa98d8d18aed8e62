import { plain } from '../terminal.ts';
import { fieldLines, localTime, type Output } from './output.ts';
import { shortId } from './references.ts';
import type { Action } from './schemas.ts';

/** The calls that decide about an action. kind: of its item in the inbox, or its status. */
export function decisionCalls({ call }: Pick<Output, 'call'>, kind: string, actionId: string): string[] {
  const id = shortId(actionId);
  if (kind === 'approval' || kind === 'awaiting_approval') {
    return [call(`actions approve ${id}`), call(`actions reject ${id} REASON`)];
  }
  if (kind !== 'reconciliation' && kind !== 'unknown') return [];
  return ['succeeded', 'failed', 'not_executed'].map((one) => call(`actions reconcile ${id} ${one} --note HOW`));
}

/** Who decided, in words: of an operator only how they were let in is known. */
export function decidedBy(by: string): string {
  return by === 'open' || by === 'token' ? 'whoever holds an owner’s token' : by;
}

/** An action in a line, and the calls that decide about it. */
export function actionLines(output: Pick<Output, 'call'>, action: Action): string[] {
  return [`${plain(action.summary)} (${action.status})`, ...decisionCalls(output, action.status, action.id)];
}

/** Whoever wrote these texts is a stranger: a line of theirs must not look like a field of ours. */
function* fieldsOf(action: Action, task: string | undefined): Generator<[name: string, text: string]> {
  const { decision, execution, reconciliation, reason } = action;
  yield ['does', action.summary];
  yield ['tool', `${action.tool} of ${action.integrationKey} (${action.provider})`];
  if (task !== undefined) yield ['task', task];
  for (const { argument, name, contentType, sizeBytes, sha256 } of action.files) {
    yield ['file', `${argument}: ${name} (${contentType}, ${sizeBytes} bytes) ${sha256}`];
  }
  yield ['digest', action.argumentsSha256];
  if (action.status === 'awaiting_approval') yield ['expires', localTime(action.expiresAt)];
  const noted = (text: string | null) => (text === null ? '' : `: ${text}`);
  if (decision) yield ['decision', `${decision.outcome} by ${decidedBy(decision.by)}${noted(decision.note)}`];
  if (execution) yield ['executed', localTime(execution.startedAt)];
  if (execution?.error) yield ['error', `${execution.error.message} (${execution.error.code})`];
  if (reconciliation)
    yield ['found', `${reconciliation.outcome} by ${decidedBy(reconciliation.by)}: ${reconciliation.note}`];
  if (reason) yield ['reason', `${reason.message} (${reason.code})`];
}

function printValue(output: Output, name: string, value: unknown): void {
  output.line(`  ${name}`);
  for (const line of JSON.stringify(value, null, 2).split('\n')) output.line(`    ${line}`);
}

/**
 * An action as a person reads it, whole: it is what they decide about.
 * @param reader `decides`: whether they may; `task`: the identifier of its task
 */
export function printAction(
  output: Output,
  action: Action,
  { task, decides }: Readonly<{ task?: string | undefined; decides: boolean }>,
): void {
  const { id, status, risk, createdAt, execution } = action;
  output.line([decides ? shortId(id) : id, status, `risk ${risk}`, localTime(createdAt)].join('  '), 'bold');
  for (const [name, text] of fieldsOf(action, task)) {
    for (const line of fieldLines(name, plain(text), output.columns)) output.line(line);
  }
  printValue(output, 'arguments', action.arguments);
  if (execution && execution.result !== null) printValue(output, 'result', execution.result);
  if (decides) for (const call of decisionCalls(output, status, id)) output.line(`  ${call}`, 'dim');
}
