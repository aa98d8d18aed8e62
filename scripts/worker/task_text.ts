import type { Claim, Input } from './api.ts';

function list(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`## ${title}`, '', ...lines.map((line) => `- ${line}`), ''];
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function criterionText(criterion: unknown): string {
  const { kind, path, checks, ...rest } = objectOf(criterion);
  if (kind !== 'output_file') return `${kind}: ${JSON.stringify(rest)}`;
  const conditions = (Array.isArray(checks) ? checks : []).map((given) => {
    const check = objectOf(given);
    if (check['kind'] === 'media_type') return `media type ${[check['anyOf']].flat().join(' or ')}`;
    const value = check['value'] === undefined ? '' : ` ${JSON.stringify(check['value'])}`;
    return `${check['pointer']} ${check['operator']}${value}`;
  });
  return [`\`${path}\` is uploaded`, ...conditions].join('; ');
}

function failureTexts(claim: Claim): string[] {
  const checks = objectOf(objectOf(claim.task.state)['contract'])['checks'];
  return (Array.isArray(checks) ? checks : []).map((check) => String(objectOf(check)['summary']));
}

function childTexts(claim: Claim): string[] {
  const children = objectOf(claim.task.state)['children'];
  return (Array.isArray(children) ? children : []).map((given) => {
    const { identifier, title, status, summary, error } = objectOf(given);
    const more = objectOf(error)['message'] ?? summary;
    return `${identifier} ${title}: ${status}${more ? `, ${more}` : ''}`;
  });
}

function replanTexts(claim: Claim): string[] {
  const { reason, taskId, error } = objectOf(objectOf(claim.task.state)['replan']);
  if (reason === undefined) return [];
  return [[reason, taskId, objectOf(error)['message']].filter((part) => part !== undefined).join(', ')];
}

const MODE_INSTRUCTIONS: Readonly<Record<string, string>> = {
  plan: 'Plan the subtasks that reach the objective, and write them to `plan.json` (`PLAN_FILE`).',
  verify:
    'Verify the result in `inputs/task.json` and the files below `inputs/outputs/`, and write `verdict.json` (`VERDICT_FILE`).',
};

/** The task as a page to read: TASK.md. */
export function taskText(claim: Claim, inputs: readonly Input[]): string {
  const { task, attempt, agentProfile } = claim;
  const files = inputs.map((input) => {
    const missing = input.available ? '' : ', not available';
    return `\`inputs/${input.path}\` (${input.mediaType}, ${input.sizeBytes} bytes${missing})`;
  });
  const lines = [
    `# ${task.identifier}: ${task.title}`,
    '',
    `For ${agentProfile.name} (${agentProfile.key}), attempt ${attempt}.`,
    '',
    ...(task.spec.objective ? [task.spec.objective, ''] : []),
    ...list('Input files', files),
    ...list('It is done when', (task.spec.acceptanceCriteria ?? []).map(criterionText)),
    ...list('The last result was refused because', failureTexts(claim)),
    ...list('It is replanned because', replanTexts(claim)),
    ...list('Subtasks so far', childTexts(claim)),
    ...(MODE_INSTRUCTIONS[claim.mode] ? [MODE_INSTRUCTIONS[claim.mode], ''] : []),
    'Everything below `outputs/` is uploaded. `task.json` is the whole task.',
    '',
  ];
  return lines.join('\n');
}
