/** The sections of the API documentation, in the order shown. */
export const tags = {
  Onboarding: 'How an organization comes to be: evidence, research, review and completion.',
  Organizations: 'Tenants: their settings, limits, constraints and the stop of work dispatch.',
  'Agent profiles': 'The agents of an organization, and the catalog of templates that they are provisioned from.',
  Tasks: 'Work to be done: hierarchy, dependencies, acceptance criteria and retry.',
  Runs: 'Attempts at tasks: status, logs, usage, what they were given and what they made.',
  Inbox: 'Questions and notifications to people, and their answers.',
  Schedules: 'Tasks made by the clock.',
  Chats: 'Conversations with the chat profile: messages, answers as they are written, attachments.',
  Context: 'What the organization knows of itself: published documents, the evidence behind them, and their health.',
  'Agent tools': 'What agents call during a run, and runtimes on their behalf.',
  Workers: 'Pulling run requests and holding their leases.',
  Administration: 'GraphQL over all organizations, for administrators.',
  System: 'Health, metrics and this description.',
} as const;

export type Tag = keyof typeof tags;
