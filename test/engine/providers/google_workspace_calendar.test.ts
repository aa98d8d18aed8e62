import t from 'tap';
import { eventIdOf } from '../../../engine/providers/google-workspace/calendar.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import { openGoogle } from './google_workspace_support.ts';
import { fails, json } from './support.ts';
import { ACTION, failsAsDocumented } from './tool_calls.ts';

const tool = (name: string) => `google_workspace.calendar.events.${name}`;
const EVENT_ID = eventIdOf(ACTION);

const meeting = {
  summary: 'Planung 2027',
  start: { dateTime: '2026-12-01T10:00:00+01:00', timeZone: 'Europe/Berlin' },
  end: { dateTime: '2026-12-01T11:00:00+01:00', timeZone: 'Europe/Berlin' },
  attendees: [{ email: 'ann@example.com' }, { email: 'bob@example.com', optional: true }],
};

t.test('an event has the id of its action, in the digits that Calendar takes', (test) => {
  test.match(EVENT_ID, /^[0-9a-v]{26}$/);
  test.equal(eventIdOf('00000000-0000-0000-0000-000000000001'), '00000000000000000000000001');
  test.equal(eventIdOf('ffffffff-ffff-ffff-ffff-ffffffffffff'), `7${'v'.repeat(25)}`);
  test.end();
});

t.test('events are listed page by page, each of a series by itself', async (test) => {
  const { read, wrong, server } = await openGoogle(test, ({ url }, res) => {
    if (url.searchParams.get('pageToken') === 'old')
      return json(res, 400, { error: { errors: [{ reason: 'invalid' }] } }) ?? undefined;
    return {
      kind: 'calendar#events',
      timeZone: 'Europe/Berlin',
      items: [{ id: 'e1', summary: 'x' }],
      nextPageToken: 'p2',
    };
  });
  const given = {
    calendarId: 'team@group.calendar.google.com',
    timeMin: '2026-12-01T00:00:00Z',
    q: 'plan',
    maxResults: 200,
  };
  test.same(await read(tool('list'), given), {
    data: { timeZone: 'Europe/Berlin', items: [{ id: 'e1', summary: 'x' }] },
    nextCursor: 'p2',
  });
  await read(tool('list'), {}, 'p2');
  test.equal(server.calls[0]?.url.pathname, '/calendar/v3/calendars/team%40group.calendar.google.com/events');
  test.match(Object.fromEntries(server.calls[0]?.url.searchParams ?? []), {
    timeMin: given.timeMin,
    q: 'plan',
    maxResults: '200',
    singleEvents: 'true',
    orderBy: 'startTime',
  });
  test.equal(server.calls[1]?.url.pathname, '/calendar/v3/calendars/primary/events');
  test.equal(server.calls[1]?.url.searchParams.get('pageToken'), 'p2');
  await test.rejects(read(tool('list'), {}, 'old'), CursorError);
  for (const calendarId of ['..', '.', 'a/b', '', 'a b'])
    test.same(wrong(tool('list'), { calendarId }), ['calendarId']);
  test.same(wrong(tool('list'), { maxResults: 201 }), ['maxResults']);
});

t.test('an event is created once, and its attendees are invited', async (test) => {
  let there = false;
  let isShown = true;
  const { execute, lookUp, summary, server } = await openGoogle(test, ({ method, url }, res) => {
    if (method === 'GET' && url.pathname.endsWith('/events') && isShown) return { kind: 'calendar#events' };
    if (method === 'POST' && there)
      return json(res, 409, { error: { errors: [{ reason: 'duplicate' }] } }) ?? undefined;
    if (method === 'POST') there = true;
    if (!there) return json(res, 404, { error: { errors: [{ reason: 'notFound' }] } }) ?? undefined;
    return { id: EVENT_ID, status: 'confirmed', htmlLink: 'https://calendar.google.com/e', etag: 'x' };
  });
  test.equal(
    summary(tool('create'), { ...meeting, location: 'Raum 4' }),
    'Create the event “Planung 2027” from 2026-12-01T10:00:00+01:00 (Europe/Berlin) to 2026-12-01T11:00:00+01:00 (Europe/Berlin) in the primary calendar; at “Raum 4”; 2 attendees: ann@example.com, bob@example.com',
  );
  test.same(await lookUp(tool('create'), meeting), { outcome: 'absent' });
  isShown = false;
  await fails(test, lookUp(tool('create'), meeting), 'not_found', 'its calendar is not shown');
  server.calls.length = 0;
  const done = { id: EVENT_ID, status: 'confirmed', htmlLink: 'https://calendar.google.com/e' };
  test.same(await execute(tool('create'), meeting), done);
  test.same(await lookUp(tool('create'), meeting), { outcome: 'found', result: done });
  test.same(await execute(tool('create'), meeting), done, 'the same again finds it');
  const [post, look] = server.calls;
  test.equal(post?.method, 'POST');
  test.equal(post?.url.searchParams.get('sendUpdates'), 'all');
  test.same(JSON.parse(post?.body ?? ''), { ...meeting, id: EVENT_ID });
  test.equal(look?.url.pathname, `/calendar/v3/calendars/primary/events/${EVENT_ID}`);
});

t.test('times of an event fit each other', async (test) => {
  const { wrong } = await openGoogle(test, () => ({}));
  const day = { date: '2026-12-01' };
  test.same(wrong(tool('create'), { ...meeting, start: day, end: { date: '2026-12-02' } }), []);
  for (const change of [{ end: meeting.start }, { start: day }, { start: day, end: day }]) {
    test.same(wrong(tool('create'), { ...meeting, ...change }), ['end'], JSON.stringify(change));
  }
  test.same(wrong(tool('create'), { ...meeting, start: { dateTime: '2026-12-01T10:00:00' } }).length > 0, true);
});

t.test('an event is changed, and the change is known by its marker', async (test) => {
  let marker: unknown;
  const { execute, lookUp, summary, wrong, server } = await openGoogle(test, ({ method, body }) => {
    if (method === 'PATCH') marker = JSON.parse(body).extendedProperties;
    return { id: 'e1', status: 'confirmed', ...(marker ? { extendedProperties: marker } : {}) };
  });
  const given = { eventId: 'e1', summary: 'Neu', attendees: [{ email: 'cleo@example.com' }] };
  test.equal(
    summary(tool('update'), given),
    'Change the event with the id e1 in the primary calendar, and notify its attendees; title: “Neu”; from then on 1 attendee: cleo@example.com',
  );
  test.same(await lookUp(tool('update'), given), { outcome: 'none' });
  test.same(await execute(tool('update'), given), { id: 'e1', status: 'confirmed' });
  test.same(await lookUp(tool('update'), given), { outcome: 'found', result: { id: 'e1', status: 'confirmed' } });
  marker = { private: { businessRunnerAction: 'another' } };
  test.same(await lookUp(tool('update'), given), { outcome: 'none' });
  const patch = server.calls.find(({ method }) => method === 'PATCH');
  test.equal(patch?.url.pathname, '/calendar/v3/calendars/primary/events/e1');
  test.same(JSON.parse(patch?.body ?? ''), {
    summary: 'Neu',
    attendees: [{ email: 'cleo@example.com' }],
    extendedProperties: { private: { businessRunnerAction: ACTION } },
  });
  test.same(wrong(tool('update'), { eventId: 'e1' }), ['']);
});

t.test('an event is deleted, and gone is done', async (test) => {
  let status = 200;
  let isShown = true;
  const { execute, lookUp, summary, server } = await openGoogle(test, ({ method, url }, res) => {
    if (method === 'GET' && url.pathname.endsWith('/events') && isShown) return { kind: 'calendar#events' };
    if (method !== 'DELETE') return json(res, status, { id: 'e1', status: 'confirmed' }) ?? undefined;
    status = 410;
    res.writeHead(204).end();
    return undefined;
  });
  test.equal(
    summary(tool('delete'), { eventId: 'e1' }),
    'Delete the event with the id e1 from the primary calendar, and notify its attendees',
  );
  test.same(await lookUp(tool('delete'), { eventId: 'e1' }), { outcome: 'none' }, 'it may go yet');
  const gone = { id: 'e1', status: 'cancelled' };
  test.same(await execute(tool('delete'), { eventId: 'e1' }), gone);
  test.same(await lookUp(tool('delete'), { eventId: 'e1' }), { outcome: 'found', result: gone });
  isShown = false;
  await fails(test, lookUp(tool('delete'), { eventId: 'e1' }), 'not_found', 'its calendar is not shown');
  status = 500;
  await fails(test, lookUp(tool('delete'), { eventId: 'e1' }), 'unavailable', 'nobody knows');
  test.equal(server.calls.find(({ method }) => method === 'DELETE')?.url.search, '?sendUpdates=all');
});

t.test('failures are distinguished, and a write is sent once', async (test) => {
  let reply: (res: Parameters<typeof json>[0]) => void = () => {};
  const { execute, read, server } = await openGoogle(test, (_call, res) => void reply(res));
  const from = async (fault: typeof reply, run: () => Promise<unknown>) => {
    reply = fault;
    const before = server.calls.length;
    return { done: run(), sent: () => server.calls.length - before };
  };
  await failsAsDocumented(test, 'list', 'read', (fault) => from(fault, () => read(tool('list'), {})));
  await failsAsDocumented(test, 'create', 'write', (fault) => from(fault, () => execute(tool('create'), meeting)));
  const change = { eventId: 'e1', summary: 'x' };
  await failsAsDocumented(test, 'update', 'write', (fault) => from(fault, () => execute(tool('update'), change)));
});
