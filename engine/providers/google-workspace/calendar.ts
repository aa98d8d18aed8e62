import { z } from 'zod';
import { ProviderError, parsed } from '../outgoing/index.ts';
import { counted, quoted } from '../texts.ts';
import type { ArgumentIssue, LookUpResult } from '../tool.ts';
import { covers } from './services.ts';
import { KEY, read, readJson, readPage, requestOf, site, urlOf, type Write, write, writeJson } from './site.ts';
import { listed } from './wording.ts';

const MARKER = 'businessRunnerAction';

const calendarId = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._%+@#-]{1,300}$/)
  .optional()
  .describe('without it the primary calendar');
const eventId = z.string().regex(/^[A-Za-z0-9_-]{1,1024}$/);
const dateTime = z.iso.datetime({ offset: true });
const time = z.union([
  z.strictObject({
    dateTime,
    timeZone: z
      .string()
      .regex(/^[A-Za-z0-9_+/-]{1,64}$/)
      .optional(),
  }),
  z.strictObject({ date: z.iso.date().describe('of a whole day; the end is the day after the last one') }),
]);
type Time = z.output<typeof time>;

const event = {
  summary: z.string().min(1).max(1_000),
  description: z.string().max(8_000).optional(),
  location: z.string().max(1_000).optional(),
  start: time,
  end: time,
  attendees: z
    .array(z.strictObject({ email: z.email(), optional: z.boolean().optional() }))
    .max(100)
    .optional()
    .describe('they get an invitation'),
};
const changes = {
  summary: event.summary.optional(),
  description: event.description,
  location: event.location,
  start: time.optional(),
  end: time.optional(),
  attendees: event.attendees.describe('all of them: who is left out is uninvited'),
};
type Changes = z.output<z.ZodObject<typeof changes>>;

const instant = (at: Time) => Date.parse('date' in at ? at.date : at.dateTime);
const timeText = (at: Time) =>
  'date' in at ? at.date : `${at.dateTime}${at.timeZone === undefined ? '' : ` (${at.timeZone})`}`;

function checkTimes({ start, end }: Readonly<{ start?: Time | undefined; end?: Time | undefined }>): ArgumentIssue[] {
  if (!start || !end) return [];
  const issue = (message: string) => [{ path: ['end'], message, code: 'invalid_value' }];
  if ('date' in start !== 'date' in end) return issue('must be a date where the start is one');
  return instant(end) > instant(start) ? [] : issue('must be later than the start');
}

const attendeesText = (attendees: Changes['attendees'] = []) =>
  attendees.length === 0
    ? 'nobody is invited'
    : `${counted(attendees.length, 'attendee')}: ${listed(attendees.map(({ email }) => email))}`;

const placeText = (id: string | undefined) => (id === undefined ? 'the primary calendar' : `calendar ${id}`);

const made = z.object({
  id: z.string(),
  status: z.string().optional(),
  htmlLink: z.string().optional(),
});
const marked = made.extend({
  extendedProperties: z.object({ private: z.record(z.string(), z.string()).optional() }).optional(),
});
const FIELDS = Object.keys(made.shape).join(',');

const eventsPath = (id: string | undefined) => `/calendar/v3/calendars/${encodeURIComponent(id ?? 'primary')}/events`;
const eventPath = (args: Readonly<{ calendarId?: string | undefined; eventId: string }>) =>
  `${eventsPath(args.calendarId)}/${args.eventId}`;

/** The id of the event is that of the action: what is sent twice is made once. Digits of base 32 as Calendar wants them. */
export function eventIdOf(actionId: string): string {
  return BigInt(`0x${actionId.replaceAll('-', '')}`)
    .toString(32)
    .padStart(26, '0');
}

type Place = Readonly<{ calendarId?: string | undefined }>;

function readMade(call: Write<Place>) {
  const path = eventPath({ calendarId: call.args.calendarId, eventId: eventIdOf(call.actionId) });
  return readJson(call, 'calendar', urlOf('calendar', path, { fields: FIELDS }), made);
}

/** The event is not there. @throws the error, or what comes of its calendar: one that is not shown either says nothing of its events */
async function checkGone(call: Write<Place>, error: unknown): Promise<void> {
  if (!(error instanceof ProviderError) || error.reason !== 'not_found') throw error;
  const url = urlOf('calendar', eventsPath(call.args.calendarId), { maxResults: 1, fields: 'kind' });
  await readJson(call, 'calendar', url, z.object({}));
}

const shown = `id,status,summary,description,location,start,end,htmlLink,hangoutLink,recurrence,recurringEventId,updated,${'organizer(email,displayName),attendees(email,displayName,responseStatus,optional)'}`;
const events = z.object({
  timeZone: z.string().optional(),
  items: z.array(z.looseObject({ id: z.string() })).default([]),
  nextPageToken: z.string().optional(),
});

export const calendar = [
  read({
    key: 'google_workspace.calendar.events.list',
    title: 'List events',
    description: 'Lists events of a calendar by their start, each of a series by itself.',
    scopes: covers.calendarRead,
    input: {
      calendarId,
      timeMin: dateTime.optional().describe('events that end after it'),
      timeMax: dateTime.optional().describe('events that start before it'),
      q: z.string().max(500).optional(),
      maxResults: z.int().min(1).max(200).optional(),
    },
    async read(call) {
      const { calendarId: of, ...query } = call.args;
      const fixed = { singleEvents: true, orderBy: 'startTime', fields: `timeZone,nextPageToken,items(${shown})` };
      const url = urlOf('calendar', eventsPath(of), { ...query, ...fixed });
      const { nextPageToken, ...data } = await readPage(call, 'calendar', url, events);
      return { data, nextCursor: nextPageToken };
    },
  }),
  write({
    key: 'google_workspace.calendar.events.create',
    title: 'Create an event',
    description: 'Creates an event, and invites its attendees.',
    risk: 'external',
    scopes: covers.calendarWrite,
    input: { calendarId, ...event },
    check: checkTimes,
    summary: ({ args }) =>
      [
        `Create the event ${quoted(args.summary)} from ${timeText(args.start)} to ${timeText(args.end)} in ${placeText(args.calendarId)}`,
        ...(args.location === undefined ? [] : [`at ${quoted(args.location)}`]),
        attendeesText(args.attendees),
        ...(args.description === undefined ? [] : [`text: ${quoted(args.description, 300)}`]),
      ].join('; '),
    async execute(call) {
      const { calendarId: of, ...given } = call.args;
      const { headers, ...rest } = requestOf(call, 'calendar');
      const response = await call.context.client.send(site, {
        ...rest,
        headers: { ...headers, 'content-type': 'application/json; charset=UTF-8' },
        effect: 'write',
        method: 'POST',
        url: urlOf('calendar', eventsPath(of), { sendUpdates: 'all', fields: FIELDS }),
        body: JSON.stringify({ ...given, id: eventIdOf(call.actionId) }),
        // It is there already: nobody else has an event of this id.
        accepts: (status) => status === 409,
      });
      return response.status === 409 ? readMade(call) : parsed(KEY, response, made);
    },
    async lookUp(call): Promise<LookUpResult> {
      try {
        return { outcome: 'found', result: await readMade(call) };
      } catch (error) {
        await checkGone(call, error);
        return { outcome: 'absent' };
      }
    },
  }),
  write({
    key: 'google_workspace.calendar.events.update',
    title: 'Change an event',
    description: 'Changes an event. Its attendees are notified.',
    risk: 'external',
    scopes: covers.calendarWrite,
    input: { calendarId, eventId, ...changes },
    check: ({ calendarId: _, eventId: __, ...given }) => [
      ...checkTimes(given),
      ...(Object.values(given).every((value) => value === undefined)
        ? [{ path: [], message: 'changes nothing', code: 'required' }]
        : []),
    ],
    summary: ({ args }) =>
      [
        `Change the event with the id ${args.eventId} in ${placeText(args.calendarId)}, and notify its attendees`,
        ...(args.summary === undefined ? [] : [`title: ${quoted(args.summary)}`]),
        ...(args.start === undefined ? [] : [`start: ${timeText(args.start)}`]),
        ...(args.end === undefined ? [] : [`end: ${timeText(args.end)}`]),
        ...(args.location === undefined ? [] : [`place: ${quoted(args.location)}`]),
        ...(args.attendees === undefined ? [] : [`from then on ${attendeesText(args.attendees)}`]),
        ...(args.description === undefined ? [] : [`text: ${quoted(args.description, 300)}`]),
      ].join('; '),
    execute(call) {
      const { calendarId: _, eventId: __, ...given } = call.args;
      const url = urlOf('calendar', eventPath(call.args), { sendUpdates: 'all', fields: FIELDS });
      const body = { ...given, extendedProperties: { private: { [MARKER]: call.actionId } } };
      return writeJson(call, 'calendar', { method: 'PATCH', url, body }, made);
    },
    // The marker of the last change: another one may have come since.
    async lookUp(call) {
      const url = urlOf('calendar', eventPath(call.args), { fields: `${FIELDS},extendedProperties` });
      const { extendedProperties, ...result } = await readJson(call, 'calendar', url, marked);
      const isOurs = extendedProperties?.private?.[MARKER] === call.actionId;
      return isOurs ? { outcome: 'found', result } : { outcome: 'none' };
    },
  }),
  write({
    key: 'google_workspace.calendar.events.delete',
    title: 'Delete an event',
    description: 'Deletes an event. Its attendees are notified.',
    risk: 'external',
    scopes: covers.calendarWrite,
    input: { calendarId, eventId },
    summary: ({ args }) =>
      `Delete the event with the id ${args.eventId} from ${placeText(args.calendarId)}, and notify its attendees`,
    async execute(call) {
      const url = urlOf('calendar', eventPath(call.args), { sendUpdates: 'all' });
      const request = { ...requestOf(call, 'calendar'), effect: 'write', method: 'DELETE', url } as const;
      await call.context.client.send(site, request);
      return { id: call.args.eventId, status: 'cancelled' };
    },
    async lookUp(call): Promise<LookUpResult> {
      const gone = { outcome: 'found', result: { id: call.args.eventId, status: 'cancelled' } } as const;
      try {
        const { status } = await readJson(call, 'calendar', urlOf('calendar', eventPath(call.args)), made);
        // A deletion that it does not show yet.
        return status === 'cancelled' ? gone : { outcome: 'none' };
      } catch (error) {
        await checkGone(call, error);
        return gone;
      }
    },
  }),
];
