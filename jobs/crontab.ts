import type { CronItem } from 'graphile-worker';
import type { JobName } from './catalog.ts';

/** Before all others: whatever waits in the queue, due work is handed out in time. */
export const DISPATCH = { key: 'dispatch', priority: -100 } as const;

/** Whoever asks for it, one waits. */
export const COLLECT = { key: 'currency_rates__collect' } as const;

/** What the clock starts, in UTC; of any number of processes one adds the job. */
export const crontab: readonly (CronItem & { readonly task: JobName })[] = [
  {
    task: 'dispatch',
    match: '* * * * *',
    // One key: the run that waits is replaced, and the one that runs sees by it that it has to stop.
    options: { jobKey: DISPATCH.key, priority: DISPATCH.priority },
  },
  { task: 'idempotency_keys__clean', match: '7 * * * *', options: { jobKey: 'idempotency_keys__clean' } },
  { task: 'context__schedule_health', match: '12 * * * *', options: { jobKey: 'context__schedule_health' } },
  { task: 'chats__clean', match: '22 * * * *', options: { jobKey: 'chats__clean' } },
  { task: 'integrations__check', match: '*/5 * * * *', options: { jobKey: 'integrations__check' } },
  { task: 'integrations__clean', match: '27 * * * *', options: { jobKey: 'integrations__clean' } },
  { task: 'rate_limits__clean', match: '32 * * * *', options: { jobKey: 'rate_limits__clean' } },
  { task: 'integrations__refresh', match: '42 * * * *', options: { jobKey: 'integrations__refresh' } },
  { task: 'actions__clean', match: '47 * * * *', options: { jobKey: 'actions__clean' } },
  { task: 'storage__clean', match: '37 * * * *', options: { jobKey: 'storage__clean' } },
  { task: 'currency_rates__collect', match: '2 * * * *', options: { jobKey: COLLECT.key } },
  { task: 'insights__compact', match: '*/5 * * * *', options: { jobKey: 'insights__compact' } },
  { task: 'insights__clean', match: '57 * * * *', options: { jobKey: 'insights__clean' } },
  { task: 'insights__clean_units', match: '17 * * * *', options: { jobKey: 'insights__clean_units' } },
  { task: 'runner__check', match: '52 * * * *', options: { jobKey: 'runner__check' } },
];
