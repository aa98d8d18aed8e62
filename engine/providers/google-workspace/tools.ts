import { z } from 'zod';
import { type Effect, inputSchema, type Risk, type Tool } from '../provider.ts';
import { covers } from './services.ts';

type Row = readonly [
  key: string,
  title: string,
  description: string,
  effect: Effect,
  risk: Risk,
  scopes: readonly string[],
  input: z.ZodRawShape,
];

const id = z.string().regex(/^[A-Za-z0-9_-]{1,200}$/);
const pageToken = z.string().max(2_000).optional();
const pageSize = z.int().min(1).max(100).optional();
const at = z.iso.datetime({ offset: true });
const address = z.email();
const message = {
  to: z.array(address).min(1).max(50),
  cc: z.array(address).max(50).optional(),
  subject: z.string().max(998),
  body: z.string().max(200_000),
  threadId: id.optional(),
};
const event = {
  calendarId: z.string().max(300).optional().describe('without it the primary calendar'),
  summary: z.string().min(1).max(1_000),
  description: z.string().max(8_000).optional(),
  start: at,
  end: at,
  attendees: z.array(address).max(100).optional().describe('they get an invitation'),
};
/** `Sheet1!A1:D10` */
const range = z.string().min(1).max(300);
const cells = z
  .array(z.array(z.union([z.string().max(50_000), z.number(), z.boolean(), z.null()])).max(500))
  .max(5_000);

const rows: readonly Row[] = [
  [
    'gmail.messages.list',
    'Find messages',
    'Lists messages that match a query of Gmail.',
    'read',
    'low',
    covers.gmailRead,
    { query: z.string().max(1_000).optional(), pageSize, pageToken },
  ],
  ['gmail.messages.get', 'Read a message', 'Reads one message.', 'read', 'low', covers.gmailRead, { id }],
  [
    'gmail.drafts.create',
    'Write a draft',
    'Writes a draft, which is not sent.',
    'write',
    'low',
    covers.gmailCompose,
    message,
  ],
  ['gmail.messages.send', 'Send a message', 'Sends an e-mail.', 'write', 'external', covers.gmailSend, message],
  [
    'calendar.events.list',
    'List events',
    'Lists events of a calendar.',
    'read',
    'low',
    covers.calendarRead,
    { calendarId: event.calendarId, from: at.optional(), to: at.optional(), pageSize, pageToken },
  ],
  [
    'calendar.events.create',
    'Create an event',
    'Creates an event, and invites its attendees.',
    'write',
    'external',
    covers.calendarWrite,
    event,
  ],
  [
    'calendar.events.delete',
    'Delete an event',
    'Deletes an event. Its attendees are notified.',
    'write',
    'external',
    covers.calendarWrite,
    { calendarId: event.calendarId, id },
  ],
  [
    'drive.files.list',
    'Find files',
    'Lists files that match a query of Drive.',
    'read',
    'low',
    covers.driveRead,
    { query: z.string().max(1_000).optional(), pageSize, pageToken },
  ],
  ['drive.files.get', 'Read a file', 'Reads the content of a file.', 'read', 'low', covers.driveRead, { id }],
  [
    'drive.files.create',
    'Create a file',
    'Creates a text file.',
    'write',
    'low',
    covers.driveWrite,
    {
      name: z.string().min(1).max(500),
      mimeType: z.string().max(200),
      content: z.string().max(1_000_000),
      parentId: id.optional(),
    },
  ],
  ['docs.documents.get', 'Read a document', 'Reads a document.', 'read', 'low', covers.docsRead, { id }],
  [
    'docs.documents.append',
    'Write into a document',
    'Adds text to the end of a document. Whoever it is shared with sees it.',
    'write',
    'external',
    covers.docsWrite,
    { id, text: z.string().min(1).max(200_000) },
  ],
  ['sheets.values.get', 'Read cells', 'Reads cells of a spreadsheet.', 'read', 'low', covers.sheetsRead, { id, range }],
  [
    'sheets.values.update',
    'Write cells',
    'Writes cells of a spreadsheet. What was in them is replaced.',
    'write',
    'external',
    covers.sheetsWrite,
    { id, range, values: cells },
  ],
  [
    'tasks.tasks.list',
    'List tasks',
    'Lists the tasks of a list.',
    'read',
    'low',
    covers.tasksRead,
    { listId: id.optional(), pageSize, pageToken },
  ],
  [
    'tasks.tasks.create',
    'Create a task',
    'Creates a task in a list.',
    'write',
    'low',
    covers.tasksWrite,
    {
      listId: id.optional(),
      title: z.string().min(1).max(1_000),
      notes: z.string().max(8_000).optional(),
      due: at.optional(),
    },
  ],
];

export const tools: readonly Tool[] = rows.map(([key, title, description, effect, risk, scopes, input]) => ({
  key: `google_workspace.${key}`,
  title,
  description,
  effect,
  risk,
  scopes,
  inputSchema: inputSchema(input),
}));
