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
  const ends = lines.indexOf('## How to end');
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
  for (const means of ['"summary"', '"needs_input"', '"waiting"', '"failed"', '`progress.log`', '`usage.json`']) {
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
  t.match(textOf('verify'), /"verdict".*`verdict\.json`/);
  t.notMatch(textOf('verify'), 'needs_input', 'a verifier decides');
});
