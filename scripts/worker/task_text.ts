import type { Claim, Input } from './api.ts';

type Fields = Readonly<Record<string, unknown>>;

function objectOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

/** The further lines of an item stand below its first one. */
function item(text: string): string {
  return `- ${text.trimEnd().replaceAll('\n', '\n  ')}`;
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`## ${title}`, '', ...lines, ''];
}

const list = (title: string, texts: readonly string[]) => section(title, texts.map(item));

function inputTexts(inputs: readonly Input[]): string[] {
  return inputs.map(({ path, mediaType, sizeBytes, available }) => {
    return `\`inputs/${path}\` (${mediaType}, ${sizeBytes} bytes${available ? '' : ', not available'})`;
  });
}

function criterionText(criterion: unknown): string {
  const { kind, path, checks, ...rest } = objectOf(criterion);
  if (kind !== 'output_file') return `${kind}: ${JSON.stringify(rest)}`;
  const conditions = listOf(checks).map((check) => {
    if (check['kind'] === 'media_type') return `media type ${[check['anyOf']].flat().join(' or ')}`;
    const value = check['value'] === undefined ? '' : ` ${JSON.stringify(check['value'])}`;
    return `${check['pointer']} ${check['operator']}${value}`;
  });
  return [`\`${path}\` is uploaded`, ...conditions].join('; ');
}

/** Its further lines stand deeper, so that none reads as another line of the same item. */
const deeper = (text: string) => text.trimEnd().replaceAll('\n', '\n  ');
const isOfAction = ({ purpose }: Fields) => purpose === 'action';

/** What people said, with what they were asked. */
function answerTexts(state: Fields): string[] {
  const ofPeople = listOf(state['answers']).filter((answer) => !isOfAction(answer));
  return ofPeople.map(({ question, title, response, note }) => {
    const lines = [`${question || title}`, `Answer: ${response}`, ...(note ? [`Note: ${note}`] : [])];
    return lines.map(deeper).join('\n');
  });
}

/** How actions that the task waited for ended, each with its id: several may have one title. */
function actionTexts(state: Fields): string[] {
  const ofActions = listOf(state['answers']).filter(isOfAction);
  return ofActions.map(({ title, tool, actionId, response, note, result }) => {
    const more = [
      ...(note ? [`Note: ${note}`] : []),
      ...(result === undefined ? [] : [`Result: ${JSON.stringify(result)}`]),
    ];
    return [`${title} (\`${tool}\`, ${actionId}): ${response}`, ...more].map(deeper).join('\n');
  });
}

/** How earlier runs ended, the latest first. A refused result is described by its checks. */
function failureTexts(state: Fields): string[] {
  return listOf(state['failures']).map(({ mode, status, error }) => {
    const { code, message } = objectOf(error);
    return `A run (${mode}) ${status === 'expired' ? 'lost its lease' : 'failed'}: ${code}: ${message}`;
  });
}

function childTexts(state: Fields): string[] {
  return listOf(state['children']).map(({ identifier, title, status, summary, error, artifacts }) => {
    const more = objectOf(error)['message'] ?? summary;
    const files = listOf(artifacts).map(({ path }) => `\`${path}\``);
    const made = files.length === 0 ? '' : `\nFiles: ${files.join(', ')}`;
    return `${identifier} ${title}: ${status}${more ? `, ${more}` : ''}${made}`;
  });
}

function replanTexts(state: Fields): string[] {
  const { reason, taskId, error } = objectOf(state['replan']);
  if (reason === undefined) return [];
  return [[reason, taskId, objectOf(error)['message']].filter((part) => part !== undefined).join(', ')];
}

function verifiedTexts(state: Fields): string[] {
  const { summary, artifacts } = objectOf(objectOf(state['verification'])['result']);
  const files = listOf(artifacts).map(({ path }) => `\`inputs/outputs/${path}\``);
  return [...(summary ? [`${summary}`] : []), ...files];
}

/** What is left after this run, of the budgets that there are. */
function budgetTexts({ task, attempt }: Claim): string[] {
  const budget = objectOf(task.spec['budget']);
  const spend = objectOf(objectOf(task.state)['spend']);
  const left = (what: string, allowed: unknown, used: number) =>
    typeof allowed === 'number' ? [`${what}: ${Math.max(0, allowed - used)} of ${allowed}`] : [];
  const count = (value: unknown) => (typeof value === 'number' ? value : 0);
  return [
    ...left('attempts after this one', budget['maxAttemptsPerPhase'], attempt),
    ...left(
      'runs after this one, of the task and all below it',
      budget['maxAgentRuns'],
      count(task['consumedAgentRunCount']) + 1,
    ),
    ...(task['kind'] === 'initiative' ? left('replans', budget['maxReplans'], count(task['replanCount'])) : []),
    ...left('cost, in minor units', budget['maxCostMinorUnits'], count(spend['costMinorUnits'])),
    ...left('tokens', budget['maxTokens'], count(spend['tokens'])),
  ];
}

const ASK = [
  'To ask a person: `{"kind": "needs_input", "question": "…", "options": ["…"]}` in `result.json`. The next run finds the answer above.',
  'To wait: `{"kind": "waiting", "until": "2030-01-31T12:00:00Z", "reason": "…"}` in `result.json`.',
];
const WAIT_FOR_ACTIONS =
  'To wait until actions that you proposed are decided and over: `{"kind": "waiting", "actionIds": ["…"], "reason": "…"}` in `result.json`. The next run finds above what became of them.';
const GIVE_UP =
  'If it cannot be done: `{"kind": "failed", "code": "…", "message": "…", "retryable": false}` in `result.json`. With any exit status but 0 and no such file it is tried again.';
const OF_EACH_RUN = [
  'A line that is appended to `progress.log` is shown to people at once.',
  'What it cost: `{"inputTokens": 0, "outputTokens": 0, "toolCalls": 0, "costMinorUnits": 0}` in `usage.json`.',
];

/** In short: the command's own help says more. */
const TOOLS = [
  '`business-runner tools` lists the integrations that you may use, `business-runner tools KEY` the arguments of their tools.',
  "`business-runner call KEY TOOL --json '{…}'` calls one. A write is proposed, and a person may have to approve it (exit status 3); `business-runner actions` lists what you proposed.",
  '`business-runner mcp` serves the same by MCP, `business-runner --help` names the rest.',
];

/** How a run of each mode ends. The names are those in the folder of the run; PLAN_FILE and the like hold their paths. */
const ENDS: Readonly<Record<string, readonly string[]>> = {
  execute: [
    'Done: leave the files below `outputs/`, write `{"summary": "…"}` to `result.json`, and end with exit status 0.',
    ...ASK,
    WAIT_FOR_ACTIONS,
    GIVE_UP,
    ...OF_EACH_RUN,
  ],
  plan: [
    'Plan the subtasks that reach the objective: write `{"operations": [{"op": "create_task", "key": "a", "title": "…", "ownerProfileKey": "…", "spec": {…}, "dependsOn": ["…"]}]}` to `plan.json`, and end with exit status 0.',
    ...ASK,
    GIVE_UP,
    ...OF_EACH_RUN,
  ],
  verify: [
    'Verify the result in `inputs/task.json` and the files below `inputs/outputs/`: write `{"verdict": "passed", "summary": "…", "evidence": [{"kind": "note", "text": "…"}]}`, or `failed`, to `verdict.json`, and end with exit status 0.',
    GIVE_UP,
    ...OF_EACH_RUN,
  ],
};

/** The task as a page to read, for a person or a model: TASK.md. Nothing that counts stands in `task.json` alone. */
export function taskText(claim: Claim, inputs: readonly Input[], timeoutMs: number): string {
  const { task, attempt, mode, agentProfile } = claim;
  const state = objectOf(task.state);
  const refusals = listOf(objectOf(state['contract'])['checks']).map(({ summary }) => String(summary));
  const lines = [
    `# ${task.identifier}: ${task.title}`,
    '',
    `For ${agentProfile.name} (${agentProfile.key}), to ${mode}; attempt ${attempt}.`,
    '',
    ...section('Objective', task.spec.objective ? [task.spec.objective] : []),
    ...list('Input files', inputTexts(inputs)),
    ...list('It is done when', (task.spec.acceptanceCriteria ?? []).map(criterionText)),
    ...list('What people answered', answerTexts(state)),
    ...list('What became of actions', actionTexts(state)),
    ...list('The last result was refused because', refusals),
    ...list('What failed before', failureTexts(state)),
    ...list('It is planned again because', replanTexts(state)),
    ...list('Subtasks so far', childTexts(state)),
    ...list('The result to verify', verifiedTexts(state)),
    ...list('Tools outside', TOOLS),
    ...list('How to end', ENDS[mode] ?? []),
    ...list('What is left', [...budgetTexts(claim), `time for this run: ${timeoutMs / 1000} s`]),
    '`task.json` is the whole task for programs, `run.json` says which run this is.',
    '',
  ];
  return lines.join('\n');
}
