import type { Claim } from './api.ts';
import type { TaskRun } from './context.ts';
import type { Report } from './report.ts';

/** Why the backend refused the result. */
export async function refusalText({ claim, worker }: TaskRun): Promise<string> {
  if (claim.mode !== 'execute') {
    return `the ${claim.mode === 'plan' ? 'plan' : 'verdict'} is missing, or does not fit any more`;
  }
  // Nothing but this line depends on it.
  const checks = await worker.api.refusals(claim, { signal: worker.stop }).catch(() => []);
  return ['the result does not meet the acceptance criteria', ...checks].join('; ');
}

/** What the task waits for, if its run asked for that. */
export function waitLines(report: Report, { task, organizationId }: Claim): string[] {
  if (report.kind === 'fail') return [];
  const { result } = report;
  if (result.kind === 'waiting' && result.until !== undefined) return [`waits until ${result.until}: ${result.reason}`];
  if (result.kind === 'waiting') {
    return [
      `waits for its actions: ${result.reason}`,
      `which ones: npx business-runner actions --task ${task.identifier} --org ${organizationId}`,
    ];
  }
  if (result.kind !== 'needs_input') return [];
  const options = result.options && result.options.length > 0 ? ` (${result.options.join(', ')})` : '';
  return [
    `asks a person: ${result.question}${options}`,
    `waits for the response: npx business-runner inbox respond ${task.identifier} TEXT --org ${organizationId}`,
  ];
}

/** "attempt 1 of 3, ", which counts the starts of one request: a result that was refused is repaired by another one. */
function attemptText(report: Report, { attempt, task }: Claim): string {
  if (report.kind !== 'fail') return '';
  const { budget } = task.spec;
  const allowed = budget?.maxAttemptsPerPhase;
  return `attempt ${attempt}${allowed === undefined ? '' : ` of ${allowed}`}, `;
}

/** What becomes of a task whose run failed, as the backend decided it. Empty where it cannot be asked: nothing depends on it. */
export async function afterFailure(report: Report, { claim, worker }: TaskRun): Promise<string[]> {
  const explained = await worker.api.explain(claim, { signal: worker.stop }).catch(() => null);
  if (!explained) return [];
  const { status, causes, serverTime } = explained;
  const { task, organizationId } = claim;
  const call = (words: string) => `npx business-runner ${words} --org ${organizationId}`;
  if (status === 'failed') {
    return [`${attemptText(report, claim)}not tried again: ${call(`task retry ${task.identifier}`)}`];
  }
  if (status === 'blocked') {
    const asks = causes.some(({ kind }) => kind === 'human' || kind === 'action' || kind === 'budget');
    return asks ? [`waits for a person: ${call('inbox')}`] : causes.map(({ message }) => message);
  }
  if (status !== 'pending' && status !== 'running') return [];
  const until = causes.find(({ kind }) => kind === 'backoff')?.until;
  const seconds = until === undefined ? 0 : Math.ceil((Date.parse(until) - serverTime) / 1000);
  return [`${attemptText(report, claim)}tried again${seconds > 0 ? ` in ${seconds} s` : ' by the next worker'}`];
}
