import { randomUUID } from 'node:crypto';
import t from 'tap';
import { connected, createAnalyst, openReporting } from '../../support/analysts.ts';
import { createSecondProfile, createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { inboxRow, insertRow, runRow, setTimezone, taskRow } from '../../support/reporting_fixtures.ts';

const sql = await openReporting(t);
const analyst = await createAnalyst(t, sql, { all: true });

/** As the analyst; days and points in time as text. */
async function rows(
  org: TestOrganization,
  columns: string,
  view: string,
  order = '1',
): Promise<Record<string, unknown>[]> {
  return connected(analyst.url, async (client) => {
    await client.query(`set timezone = 'UTC'`);
    const text = `select to_jsonb(r) as row from (select ${columns} from ${view} where organization_id = $1 order by ${order}) r`;
    const result = await client.query<{ row: Record<string, unknown> }>(text, [org.organizationId]);
    return result.rows.map(({ row }) => row);
  });
}

async function placeIn(timezone: string): Promise<TestOrganization> {
  const org = await createTestOrganization(sql);
  await setTimezone(sql, org, timezone);
  return org;
}

/** What clocks do at midnight there, and to which day points in time around it belong. */
const DAYS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'America/Havana': {
    // Forward from 00:00 to 01:00: there is no midnight.
    '2026-03-08T04:59:59Z': '2026-03-07',
    '2026-03-08T05:00:00Z': '2026-03-08',
    // Back from 01:00 to 00:00: midnight comes twice, and both belong to a day of 25 hours.
    '2026-11-01T03:59:59Z': '2026-10-31',
    '2026-11-01T04:00:00Z': '2026-11-01',
    '2026-11-01T04:30:00Z': '2026-11-01',
    '2026-11-01T05:00:00Z': '2026-11-01',
    '2026-11-01T05:30:00Z': '2026-11-01',
    '2026-11-02T04:59:59Z': '2026-11-01',
    '2026-11-02T05:00:00Z': '2026-11-02',
  },
  'Africa/Cairo': {
    '2026-04-23T21:59:59Z': '2026-04-23',
    '2026-04-23T22:00:00Z': '2026-04-24',
    // Back from 24:00 to 23:00: the last hour of the day comes twice.
    '2026-10-29T20:59:59Z': '2026-10-29',
    '2026-10-29T21:00:00Z': '2026-10-29',
    '2026-10-29T21:59:59Z': '2026-10-29',
    '2026-10-29T22:00:00Z': '2026-10-30',
  },
  'America/Santiago': {
    '2026-04-05T02:59:59Z': '2026-04-04',
    '2026-04-05T03:00:00Z': '2026-04-04',
    '2026-04-05T03:59:59Z': '2026-04-04',
    '2026-04-05T04:00:00Z': '2026-04-05',
    '2026-09-06T03:59:59Z': '2026-09-05',
    '2026-09-06T04:00:00Z': '2026-09-06',
  },
  // Half an hour, and a day that did not exist.
  'Australia/Lord_Howe': { '2026-04-04T13:29:59Z': '2026-04-05', '2026-04-04T12:59:59Z': '2026-04-04' },
  'Pacific/Apia': { '2011-12-30T09:59:59Z': '2011-12-29', '2011-12-30T10:00:00Z': '2011-12-31' },
};

for (const [zone, days] of Object.entries(DAYS)) {
  t.test(`days of ${zone} are those of its clocks`, async (test) => {
    const org = await placeIn(zone);
    const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });
    const expected = new Map<string, number>();
    for (const [at, day] of Object.entries(days)) {
      test.equal(format.format(new Date(at)), day, `${at}: another implementation says so too`);
      expected.set(day, (expected.get(day) ?? 0) + 1);
      await taskRow(sql, org, { completed_at: at });
      await runRow(sql, org, { finished_at: at });
      await inboxRow(sql, org, { created_at: at });
    }
    const counts = [...expected].sort().map(([day, n]) => ({ day, n }));
    const throughput = await rows(org, 'day, timezone, runs_finished, tasks_completed', 'throughput_by_day');
    test.same(
      throughput,
      counts.map(({ day, n }) => ({ day, timezone: zone, runs_finished: n, tasks_completed: n })),
    );
    test.same(await rows(org, 'day, starts as n', 'queue_waits'), counts);
    test.same(await rows(org, 'day, items as n', 'waiting_for_people'), counts);
  });
}

t.test('a zone that this Postgres does not know is UTC, and fails no view', async (test) => {
  const org = await placeIn('Atlantis/Capital');
  await runRow(sql, org, { finished_at: '2026-05-01T23:59:59Z' });
  await inboxRow(sql, org, { created_at: '2026-05-01T23:59:59Z' });
  for (const view of ['throughput_by_day', 'queue_waits', 'waiting_for_people']) {
    test.same(await rows(org, 'day, timezone', view), [{ day: '2026-05-01', timezone: 'UTC' }], view);
  }
});

t.test('throughput counts runs by how they ended, and tasks with their owner', async (test) => {
  const org = await placeIn('UTC');
  const second = await createSecondProfile(sql, org);
  const at = (time: string) => ({ started_at: `2026-06-01T${time}Z`, finished_at: '2026-06-01T12:00:00Z' });
  const used = { input_tokens: 10, output_tokens: 4, cost_minor_units: 25, cost_known: true };
  await runRow(sql, org, { ...at('11:59:00'), ...used });
  await runRow(sql, org, { ...at('11:58:00'), ...used });
  await runRow(sql, org, { ...at('11:57:00'), status: 'failed' });
  await runRow(sql, org, { ...at('11:56:00'), status: 'expired' });
  await runRow(sql, org, { ...at('11:55:00'), status: 'cancelled' });
  await runRow(sql, org, { ...at('11:54:00'), status: 'running', finished_at: null });
  await runRow(sql, second, { ...at('11:59:00'), status: 'cancelled' });
  await taskRow(sql, org, { completed_at: '2026-06-01T12:00:00Z' });
  await taskRow(sql, org, { completed_at: null, status: 'cancelled', created_at: '2026-06-01T12:00:00Z' });
  const [one, two, ...more] = await rows(org, '*', 'throughput_by_day', `agent_profile_id <> '${org.profileId}'`);
  test.match(one, {
    day: '2026-06-01',
    agent_profile_id: org.profileId,
    agent_profile_key: org.profileKey,
    tasks_completed: 1,
    runs_finished: 5,
    runs_succeeded: 2,
    runs_failed: 1,
    runs_expired: 1,
    runs_cancelled: 1,
    success_rate: 0.5,
    run_seconds: 60 + 120 + 180 + 240 + 300,
    input_tokens: 20,
    output_tokens: 8,
    known_cost_minor_units: 50,
    runs_with_unknown_cost: 3,
  });
  test.match(two, { agent_profile_id: second.profileId, runs_finished: 1, success_rate: null, tasks_completed: 0 });
  test.same(more, []);
});

t.test('what chats cost is in the sums of the day, and told apart', async (test) => {
  const org = await placeIn('UTC');
  const at = (time: string) => ({ started_at: `2026-06-01T${time}Z`, finished_at: '2026-06-01T12:00:00Z' });
  const used = (units: number) => ({ input_tokens: 10, output_tokens: 4, cost_minor_units: units, cost_known: true });
  await runRow(sql, org, { ...at('11:59:00'), ...used(25) });
  await runRow(sql, org, { ...at('11:59:00'), ...used(9_007_199_254_740_992), kind: 'chat', status: 'failed' });
  await runRow(sql, org, { ...at('11:58:00'), kind: 'chat' });
  await runRow(sql, org, { ...at('11:58:00'), kind: 'chat', status: 'running', finished_at: null });
  const [day, ...more] = await rows(org, '*', 'throughput_by_day');
  test.same(more, []);
  test.match(day, {
    runs_finished: 1,
    runs_succeeded: 1,
    runs_failed: 0,
    success_rate: 1,
    tasks_completed: 0,
    chat_turns: 2,
    run_seconds: 60 + 60 + 120,
    input_tokens: 20,
    output_tokens: 8,
    runs_with_unknown_cost: 1,
    chat_turns_with_unknown_cost: 1,
  });
  const columns = 'known_cost_minor_units::text as all, chat_known_cost_minor_units::text as chat';
  test.same(await rows(org, columns, 'throughput_by_day'), [{ all: '9007199254741017', chat: '9007199254740992' }]);
});

t.test(
  'what is outside of initiatives has a line for each kind, and with them it is all that was spent',
  async (test) => {
    const org = await placeIn('America/Havana');
    const cost = (units: number) => ({ cost_minor_units: units, cost_known: true, input_tokens: 1, tool_calls: 2 });
    const ended = { finished_at: '2026-06-02T03:59:59Z' };
    const root = await taskRow(sql, org, { kind: 'initiative' });
    const inside = await taskRow(sql, org, { parent_id: root, root_task_id: root, depth: 1 });
    const alone = await taskRow(sql, org);
    await runRow(sql, org, { ...ended, task_id: root, mode: 'plan', ...cost(1) });
    await runRow(sql, org, { ...ended, task_id: inside, ...cost(10) });
    await runRow(sql, org, { ...ended, task_id: alone, ...cost(100) });
    await runRow(sql, org, { ...ended, task_id: alone, status: 'failed', ...cost(1_000) });
    await runRow(sql, org, { ...ended, task_id: alone, status: 'running', finished_at: null });
    await runRow(sql, org, { ...ended, kind: 'chat', ...cost(10_000) });
    await runRow(sql, org, { ...ended, kind: 'chat' });
    const columns = `day, timezone, kind, runs, runs_with_unknown_cost as unknown, known_cost_minor_units as known,
    cost_minor_units as cost, input_tokens, tool_calls`;
    const of = { day: '2026-06-01', timezone: 'America/Havana' };
    test.same(await rows(org, columns, 'cost_outside_initiatives', 'kind'), [
      { ...of, kind: 'chat', runs: 2, unknown: 1, known: 10_000, cost: null, input_tokens: 1, tool_calls: 2 },
      { ...of, kind: 'task', runs: 2, unknown: 0, known: 1_100, cost: 1_100, input_tokens: 2, tool_calls: 4 },
    ]);
    const [initiative] = await rows(org, 'known_cost_minor_units as known', 'cost_by_initiative');
    const [all] = await rows(org, 'sum(known_cost_minor_units) as known', 'throughput_by_day');
    test.equal(Number(initiative?.['known']) + 11_100, all?.['known']);
  },
);

t.test('a chat says what its replies cost', async (test) => {
  const org = await placeIn('UTC');
  const dated = { created_at: '2026-06-01T00:00:00Z', updated_at: '2026-06-01T00:00:00Z' };
  const chat = async (costs: readonly (number | null)[]) => {
    const chatId = randomUUID();
    const common = { organization_id: org.organizationId, ...dated };
    await insertRow(sql, 'chats', {
      ...common,
      id: chatId,
      title: 'A chat',
      status: 'open',
      settings: {},
      is_onboarding: false,
      last_message_at: dated.created_at,
    });
    for (const units of costs) {
      const messageId = randomUUID();
      await insertRow(sql, 'messages', {
        ...common,
        id: messageId,
        chat_id: chatId,
        role: 'assistant',
        reply_to_message_id: randomUUID(),
        status: 'complete',
        revision: 1,
        parts: [],
        search_text: '',
        completed_at: dated.created_at,
      });
      const known = units === null ? {} : { cost_minor_units: units, cost_known: true };
      await runRow(sql, org, { kind: 'chat', chat_id: chatId, message_id: messageId, ...known });
    }
    const columns = 'turns_with_unknown_cost as unknown, known_cost_minor_units as known, cost_minor_units as cost';
    return (await rows(org, `chat_id, ${columns}`, 'chats')).find((row) => row['chat_id'] === chatId);
  };
  test.match(await chat([]), { unknown: 0, known: 0, cost: 0 });
  test.match(await chat([5, 7]), { unknown: 0, known: 12, cost: 12 });
  test.match(await chat([5, null]), { unknown: 1, known: 5, cost: null });
});

t.test('an initiative costs what all below it cost, and an unknown cost stays unknown', async (test) => {
  const org = await placeIn('UTC');
  const root = await taskRow(sql, org, { kind: 'initiative', title: 'Root' });
  const below = (parent: string, depth: number, fields = {}) =>
    taskRow(sql, org, { parent_id: parent, root_task_id: root, depth, ...fields });
  const inner = await below(root, 1, { kind: 'initiative', title: 'Inner' });
  const task = await below(root, 1);
  const deep = await below(inner, 2, { status: 'cancelled', completed_at: null });
  const cost = (units: number) => ({ cost_minor_units: units, cost_known: true, input_tokens: 1 });
  await runRow(sql, org, { task_id: root, mode: 'plan', ...cost(7) });
  await runRow(sql, org, { task_id: task, ...cost(100) });
  await runRow(sql, org, { task_id: deep, ...cost(1000) });
  await runRow(sql, org, { task_id: deep, status: 'running', finished_at: null, started_at: '2026-02-01T00:00:00Z' });
  await runRow(sql, org, cost(1_000_000));
  const columns = `title, depth, tasks, tasks_completed, runs, active_runs, runs_with_unknown_cost,
    known_cost_minor_units, cost_minor_units, input_tokens`;
  const known = [
    {
      title: 'Inner',
      depth: 1,
      tasks: 1,
      tasks_completed: 0,
      runs: 1,
      active_runs: 1,
      runs_with_unknown_cost: 0,
      known_cost_minor_units: 1000,
      cost_minor_units: 1000,
      input_tokens: 1,
    },
    {
      title: 'Root',
      depth: 0,
      tasks: 3,
      tasks_completed: 2,
      runs: 3,
      active_runs: 1,
      runs_with_unknown_cost: 0,
      known_cost_minor_units: 1107,
      cost_minor_units: 1107,
      input_tokens: 3,
    },
  ];
  test.same(await rows(org, columns, 'cost_by_initiative'), known);
  await runRow(sql, org, { task_id: task });
  const [inside, outside] = await rows(org, columns, 'cost_by_initiative');
  test.same(inside, known[0]);
  test.match(outside, { runs: 4, runs_with_unknown_cost: 1, known_cost_minor_units: 1107, cost_minor_units: null });
  const costs = await rows(org, 'cost_minor_units as cost', 'runs', 'cost_minor_units');
  test.same(
    costs,
    [7, 100, 1000, 1_000_000, null, null].map((one) => ({ cost: one })),
    'nor is it zero in runs',
  );
});

t.test('waiting for people is told by what was asked', async (test) => {
  const org = await placeIn('UTC');
  const asked = { created_at: '2026-06-01T10:00:00Z' };
  const answered = { ...asked, status: 'responded', response: 'x' };
  await inboxRow(sql, org, { ...answered, responded_at: '2026-06-01T10:10:00Z' });
  await inboxRow(sql, org, { ...answered, responded_at: '2026-06-01T10:20:00Z' });
  await inboxRow(sql, org, { ...answered, responded_at: '2026-06-01T12:00:00Z' });
  await inboxRow(sql, org, { ...asked, status: 'cancelled', updated_at: '2026-06-01T11:00:00Z' });
  await inboxRow(sql, org, asked);
  await inboxRow(sql, org, {
    ...asked,
    kind: 'notification',
    blocking: false,
    status: 'acknowledged',
    responded_at: '2026-06-01T10:00:01Z',
  });
  const [notification, question, ...more] = await rows(org, '*', 'waiting_for_people', 'kind');
  test.match(notification, {
    kind: 'notification',
    blocking: false,
    items: 1,
    items_answered: 1,
    longest_answer_seconds: 1,
  });
  test.match(question, {
    day: '2026-06-01',
    kind: 'question',
    purpose: 'agent',
    blocking: true,
    items: 5,
    items_open: 1,
    items_answered: 3,
    items_closed: 1,
    answered_wait_seconds: 600 + 1200 + 7200,
    median_answer_seconds: 1200,
    longest_answer_seconds: 7200,
  });
  test.match(String(question?.['oldest_open_at']), '2026-06-01T10:00:00');
  test.ok(Number(question?.['open_wait_seconds']) > 0);
  test.same(more, []);
});

t.test('contract failures are told by criterion, those of agents’ verdicts too', async (test) => {
  const org = await placeIn('UTC');
  const spec = {
    acceptanceCriteria: [
      { kind: 'output_file', path: 'a.md' },
      { kind: 'output_file', path: 'b.md' },
    ],
  };
  const task = await taskRow(sql, org, { spec });
  const output = (...statuses: string[]) => ({
    kind: 'task_result',
    result: {
      kind: 'completed',
      completion: {
        checks: statuses.map((status, criterionIndex) => ({
          criterionIndex,
          evaluator: 'backend',
          status,
          summary: '',
          evidence: [],
        })),
      },
    },
  });
  const run = (fields: object) => runRow(sql, org, { task_id: task, finished_at: '2026-06-01T10:00:00Z', ...fields });
  await run({ output: output('failed', 'passed', 'failed'), status: 'failed' });
  await run({ output: output('failed', 'passed'), status: 'failed' });
  await run({ output: output('passed', 'passed') });
  await run({ output: null, status: 'expired' });
  await run({ output: { kind: 'task_result', result: { kind: 'waiting' } } });
  await run({ mode: 'verify', output: { kind: 'task_result', result: { kind: 'verification', verdict: 'failed' } } });
  const columns = 'criterion, evaluator, checks, failures, round(failure_rate, 2) as rate, tasks, tasks_failed';
  test.same(await rows(org, columns, 'contract_failures'), [
    { criterion: 'a.md', evaluator: 'backend', checks: 3, failures: 2, rate: 0.67, tasks: 1, tasks_failed: 1 },
    { criterion: 'b.md', evaluator: 'backend', checks: 3, failures: 0, rate: 0, tasks: 1, tasks_failed: 0 },
    { criterion: 'criterion 2', evaluator: 'backend', checks: 1, failures: 1, rate: 1, tasks: 1, tasks_failed: 1 },
    { criterion: 'verdict', evaluator: 'agent', checks: 1, failures: 1, rate: 1, tasks: 1, tasks_failed: 1 },
  ]);
});

t.test('queue waits are percentiles over the first starts', async (test) => {
  const org = await placeIn('UTC');
  for (let waited = 0; waited <= 100; waited += 1)
    await runRow(sql, org, { started_at: '2026-06-01T10:00:00Z' }, waited);
  test.match(await rows(org, '*', 'queue_waits'), [
    {
      day: '2026-06-01',
      kind: 'task',
      starts: 101,
      wait_seconds: 5050,
      p50_seconds: 50,
      p90_seconds: 90,
      p99_seconds: 99,
      longest_seconds: 100,
    },
  ]);
  const [one] = await rows(org, 'queue_wait_seconds as wait', 'runs', '1 desc');
  test.same(one, { wait: 100 });
  const [two] = await rows(org, 'queue_wait_seconds as wait, waiting_seconds as waiting', 'run_requests', '1 desc');
  test.same(two, { wait: 100, waiting: null });
});
