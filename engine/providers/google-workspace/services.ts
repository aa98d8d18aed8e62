import type { Service } from '../provider.ts';

const scope = (name: string) => `https://www.googleapis.com/auth/${name}`;

/** What a person chooses from. A write needs the reading scope too: its tools show what they are about to change. */
export const services: readonly Service[] = [
  {
    key: 'gmail',
    title: 'Gmail',
    scopes: { read: [scope('gmail.readonly')], write: [scope('gmail.readonly'), scope('gmail.modify')] },
  },
  {
    key: 'calendar',
    title: 'Calendar',
    scopes: { read: [scope('calendar.readonly')], write: [scope('calendar.readonly'), scope('calendar.events')] },
  },
  {
    key: 'drive',
    title: 'Drive',
    // `drive.file`: files that this deployment made, or that a person opened with it.
    scopes: { read: [scope('drive.readonly')], write: [scope('drive.readonly'), scope('drive.file')] },
  },
  {
    key: 'docs',
    title: 'Docs',
    scopes: { read: [scope('documents.readonly')], write: [scope('documents')] },
  },
  {
    key: 'sheets',
    title: 'Sheets',
    scopes: { read: [scope('spreadsheets.readonly')], write: [scope('spreadsheets')] },
  },
  {
    key: 'tasks',
    title: 'Tasks',
    scopes: { read: [scope('tasks.readonly')], write: [scope('tasks')] },
  },
];

/** The scopes of which one is enough. */
export const covers = {
  gmailRead: [scope('gmail.readonly'), scope('gmail.modify')],
  gmailCompose: [scope('gmail.compose'), scope('gmail.modify')],
  gmailSend: [scope('gmail.send'), scope('gmail.compose'), scope('gmail.modify')],
  calendarRead: [scope('calendar.readonly')],
  calendarWrite: [scope('calendar.events')],
  driveRead: [scope('drive.readonly')],
  driveWrite: [scope('drive.file')],
  docsRead: [scope('documents.readonly'), scope('documents')],
  docsWrite: [scope('documents')],
  sheetsRead: [scope('spreadsheets.readonly'), scope('spreadsheets')],
  sheetsWrite: [scope('spreadsheets')],
  tasksRead: [scope('tasks.readonly'), scope('tasks')],
  tasksWrite: [scope('tasks')],
} as const;
