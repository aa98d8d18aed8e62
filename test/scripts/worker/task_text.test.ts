import t from 'tap';
import { taskText } from '../../../scripts/worker/task_text.ts';

t.test('TASK.md holds all that counts: an answer that stood in task.json alone was asked for again', async (t) => {
  const claim = {
    organizationId: 'o',
    runRequestId: 'r',
    leaseToken: 'l',
    attempt: 2,
    mode: 'execute',
    leaseExpiresAt: '2030-01-01T00:00:00Z',
    claimMs: 1,
    agentProfile: { key: 'growth', name: 'Growth' },
    task: {
      id: 'i',
      identifier: 'T-3',
      title: 'Sales report',
      consumedAgentRunCount: 4,
      spec: {
        objective: 'Add up the sales.',
        acceptanceCriteria: [
          {
            kind: 'output_file',
            path: 'report.json',
            checks: [
              { kind: 'media_type', anyOf: ['application/json'] },
              { kind: 'json_pointer', pointer: '/total', operator: 'eq', value: 12 },
              { kind: 'json_pointer', pointer: '/rows', operator: 'exists' },
            ],
          },
          { kind: 'taste', text: 'short' },
        ],
        budget: { maxAttemptsPerPhase: 3, maxAgentRuns: 10, maxReplans: 2, maxTokens: 500 },
      },
      state: {
        contract: { failures: 1, checks: [{ summary: 'expected /total to be 12' }] },
        answers: [
          {
            title: 'Question about: Sales',
            question: 'With returns?',
            response: 'Yes,\nNote: all',
            note: 'Since\nMay',
          },
          {
            ...{ purpose: 'action', question: 'What became of the action?', title: 'Create a customer' },
            ...{ actionId: 'a-1', tool: 'customers.create', response: 'succeeded', result: { id: 'c-9' } },
          },
          {
            ...{ purpose: 'action', question: 'What became of the action?', title: 'Create a customer' },
            ...{ actionId: 'a-2', tool: 'customers.create', response: 'rejected', note: 'Not\nthis one' },
          },
        ],
        failures: [
          {
            mode: 'execute',
            status: 'failed',
            error: { code: 'command_failed', message: 'exit status 3:\nno such column' },
          },
          { mode: 'plan', status: 'expired', error: { code: 'run_lease_expired', message: 'The worker is gone' } },
        ],
        children: [
          { identifier: 'T-4', title: 'Read', status: 'completed', summary: 'Read.', artifacts: [{ path: 'a.md' }] },
        ],
        spend: { costMinorUnits: 7, tokens: 120 },
      },
    },
  };
  const input = { path: 'sales.csv', mediaType: 'text/csv', sizeBytes: 9, available: true };
  const textOf = (mode: string) =>
    taskText({ ...claim, mode }, [input, { ...input, path: 'late.csv', available: false }], 60_000);
  const lines = textOf('execute').split('\n');
  const ends = lines.indexOf('## Tools outside');
  t.same(
    lines.slice(0, ends).filter((line) => line !== ''),
    [
      '# T-3: Sales report',
      'For Growth (growth), to execute; attempt 2.',
      '## Objective',
      'Add up the sales.',
      '## Input files',
      '- `inputs/sales.csv` (text/csv, 9 bytes)',
      '- `inputs/late.csv` (text/csv, 9 bytes, not available)',
      '## It is done when',
      '- `report.json` is uploaded; media type application/json; /total eq 12; /rows exists',
      '- taste: {"text":"short"}',
      '## What people answered',
      '- With returns?',
      '  Answer: Yes,',
      '    Note: all',
      '  Note: Since',
      '    May',
      '## What became of actions',
      '- Create a customer (`customers.create`, a-1): succeeded',
      '  Result: {"id":"c-9"}',
      '- Create a customer (`customers.create`, a-2): rejected',
      '  Note: Not',
      '    this one',
      '## The last result was refused because',
      '- expected /total to be 12',
      '## What failed before',
      '- A run (execute) failed: command_failed: exit status 3:',
      '  no such column',
      '- A run (plan) lost its lease: run_lease_expired: The worker is gone',
      '## Subtasks so far',
      '- T-4 Read: completed, Read.',
      '  Files: `a.md`',
    ],
  );
  const rest = lines.slice(ends).join('\n');
  for (const means of [
    '"summary"',
    '"needs_input"',
    '"waiting"',
    '"actionIds"',
    '"failed"',
    '`progress.log`',
    '`usage.json`',
  ]) {
    t.ok(rest.includes(means), means);
  }
  t.same(
    lines.slice(lines.indexOf('## What is left')).filter((line) => line.startsWith('- ')),
    [
      '- attempts after this one: 1 of 3',
      '- runs after this one, of the task and all below it: 5 of 10',
      '- tokens: 380 of 500',
      '- time for this run: 60 s',
    ],
  );
  t.match(textOf('plan'), /"operations".*`plan\.json`/);
  t.notMatch(textOf('plan'), 'actionIds', 'no action is proposed while planning');
  t.match(textOf('verify'), /"verdict".*`verdict\.json`/);
  t.notMatch(textOf('verify'), 'needs_input', 'a verifier decides');
});

t.test('TASK.md of a plan says why it is planned again, and of a verification what is to be verified', (t) => {
  const claim = {
    ...{ organizationId: 'o', runRequestId: 'r', leaseToken: 'l', attempt: 1, leaseExpiresAt: '2030-01-01T00:00:00Z' },
    ...{ claimMs: 1, agentProfile: { key: 'operator', name: 'Operator' } },
  };
  const textOf = (mode: string, task: object) => {
    const common = { id: 'i', identifier: 'I-1', title: 'Quarter', kind: 'initiative', spec: {}, state: {} };
    const lines = taskText({ ...claim, mode, task: { ...common, ...task } }, [], 60_000).split('\n');
    /** What stands below a heading. */
    return (title: string) => {
      const at = lines.indexOf(`## ${title}`);
      const next = lines.findIndex((line, index) => index > at && line.startsWith('## '));
      return at < 0 ? undefined : lines.slice(at + 1, next < 0 ? undefined : next).filter((line) => line !== '');
    };
  };
  const plan = textOf('plan', {
    spec: { budget: { maxReplans: 5, maxCostMinorUnits: 900 } },
    replanCount: 2,
    state: {
      replan: { reason: 'child_failed', taskId: 't-7', error: { code: 'gone', message: 'The shop is\nclosed' } },
      spend: { costMinorUnits: 250 },
    },
  });
  t.same(plan('It is planned again because'), ['- child_failed, t-7, The shop is', '  closed']);
  t.equal(plan('The result to verify'), undefined);
  t.match(plan('What is left'), [
    '- replans: 3 of 5',
    '- cost, in minor units: 650 of 900',
    '- time for this run: 60 s',
  ]);
  t.same(textOf('plan', { state: { replan: { reason: 'none_completed' } } })('It is planned again because'), [
    '- none_completed',
  ]);
  const verify = textOf('verify', {
    kind: 'task',
    spec: { budget: { maxReplans: 5, maxCostMinorUnits: 900 } },
    replanCount: 2,
    state: {
      spend: { costMinorUnits: 1_000 },
      verification: {
        runId: 'x',
        result: { summary: 'All\nlamps counted', artifacts: [{ path: 'a.md' }, { path: 'b/c.md' }] },
      },
    },
  });
  t.same(verify('The result to verify'), [
    '- All',
    '  lamps counted',
    '- `inputs/outputs/a.md`',
    '- `inputs/outputs/b/c.md`',
  ]);
  t.equal(verify('It is planned again because'), undefined);
  t.match(
    verify('What is left'),
    ['- cost, in minor units: 0 of 900', '- time for this run: 60 s'],
    'only initiatives have replans',
  );
  t.end();
});
