import { demoTasks } from '../demo/tasks.ts';

export const ORGANIZATION = { name: 'Lakeside Bakery', slug: 'lakeside-bakery' };
export const DEPARTMENTS = ['growth', 'engineering', 'support'];

/** A task, and the status in which the seed leaves it. */
export type SeedTask = Readonly<{ body: object; status: string }>;

/** What the seed's agent does for a task (scripts/seed/agent.mjs). */
type Behavior = Readonly<{
  files?: Readonly<Record<string, string>>;
  result?: object;
  usage?: Readonly<{ inputTokens: number; outputTokens: number; toolCalls: number; costMinorUnits?: number }>;
}>;

const DAY_MS = 86_400_000;
const USAGE = { inputTokens: 5200, outputTokens: 830, toolCalls: 6, costMinorUnits: 4 };

function supportTask(title: string, objective: string, behavior: Behavior, more: object = {}) {
  const inputs = [
    {
      kind: 'inline',
      path: 'seed.json',
      text: JSON.stringify({ usage: USAGE, ...behavior }),
      mediaType: 'application/json',
    },
  ];
  return { title, ownerProfileKey: 'support', spec: { objective, inputs }, ...more };
}

/** Tasks of all kinds: done, refused once and done, failed, waiting for a person, scheduled, blocked, without a worker. */
export function seedTasks(now: number): readonly SeedTask[] {
  return [
    ...demoTasks().map((body) => ({ body, status: 'completed' })),
    {
      status: 'completed',
      body: supportTask(
        'Answer the reviews of this week',
        'Write a reply to each review. Thank for praise, and offer a replacement where bread was late or stale.',
        {
          files: {
            'replies.md':
              '# Replies\n\n- Anna: Thank you! The rye bread comes from our own sourdough.\n- Omar: We are sorry. Your next loaf is on us.\n',
          },
          result: { summary: 'Replied to 2 reviews, and offered a replacement for one.' },
        },
      ),
    },
    {
      status: 'completed',
      body: supportTask(
        'Summarize the allergen questions',
        'Collect the questions about allergens of the last month, with the answers that we gave.',
        {
          files: {
            'allergens.md': '# Allergens\n\nSeven questions, five of them about walnuts in the farmhouse loaf.\n',
          },
          result: { summary: 'Seven questions, five of them about walnuts.' },
        },
        { priority: 10 },
      ),
    },
    {
      status: 'failed',
      body: supportTask('Import the list of suppliers', 'Read suppliers.xlsx and write it as suppliers.csv.', {
        result: {
          kind: 'failed',
          code: 'file_encrypted',
          message: 'suppliers.xlsx is encrypted, and no password was given.',
          retryable: false,
        },
      }),
    },
    {
      status: 'blocked',
      body: supportTask(
        'Settle the complaint about order 1042',
        'The cake arrived crushed. Settle it with the customer.',
        {
          result: {
            kind: 'needs_input',
            question: 'Order 1042: refund 48.90 EUR, or bake the cake again?',
            options: ['refund', 'bake again'],
          },
        },
      ),
    },
    {
      status: 'blocked',
      body: supportTask(
        'Prepare the newsletter of next month',
        'Draft the newsletter: new opening hours, the pumpkin bread, the baking course.',
        {},
        { scheduledAt: new Date(now + 14 * DAY_MS).toISOString(), dueAt: new Date(now + 21 * DAY_MS).toISOString() },
      ),
    },
    {
      status: 'pending',
      body: {
        title: 'Speed up the order page',
        ownerProfileKey: 'engineering',
        priority: -5,
        spec: { objective: 'The order page takes four seconds on a phone. Find out why, and propose what to change.' },
      },
    },
  ];
}

export const SEED_CHATS = [
  { title: 'Sales of the third quarter', question: 'Which region sold most, and how much came back?' },
  { title: 'What to bake more of', question: 'Which product sold best in the third quarter?' },
];

export const SEED_SCHEDULE = {
  key: 'weekly-numbers',
  title: 'Weekly numbers',
  cron: '0 7 * * MON',
  taskTemplate: {
    title: 'Numbers of the week',
    ownerProfileKey: 'growth',
    spec: { objective: 'Add up the sales of the last week by product.' },
  },
};
