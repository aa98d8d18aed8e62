/** The sections of the API documentation, in the order shown. */
export const tags = {
  Onboarding: 'Creating an organization step by step: evidence, research, review and completion.',
  Organizations: 'Tenants: settings, limits, constraints, members, audit log and work dispatch.',
  'Agent profiles': 'The agents of an organization, and the templates that they are provisioned from.',
  Tasks: 'Work to be done: hierarchies, dependencies, acceptance criteria, cancellation and retry.',
  Runs: 'Attempts at tasks: status, logs, usage, input files and artifacts.',
  Inbox: 'Questions and notifications for people, and their answers.',
  Schedules: 'Tasks that are created at certain times.',
  Integrations: 'Connections to providers: credentials, settings, tools, and what they mean to the organization.',
  Actions:
    'What agents propose to change outside: decided by owners, executed once, and reconciled where the outcome is unknown.',
  Insights: 'Facts that are collected from integrations.',
  Chats: 'Conversations with the chat profile: messages, streamed replies and attachments.',
  Context: 'What the organization knows about itself: published documents, the evidence behind them, and their health.',
  'Agent tools': 'What agents call during a run, and runtimes on their behalf.',
  Gateway: 'What executions do with integrations: reads, proposals of writes, files, and git.',
  Workers: 'Claiming run requests, and working on them under a lease.',
  Administration: 'GraphQL over all organizations, for administrators.',
  System: 'Health, metrics and API documentation.',
} as const;

export type Tag = keyof typeof tags;
