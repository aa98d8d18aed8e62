import t from 'tap';
import { CursorError } from '../../../engine/providers/tool.ts';
import { openGoogle } from './google_workspace_support.ts';
import { json } from './support.ts';
import { failsAsDocumented } from './tool_calls.ts';

const DOCS = 'google_workspace.docs.documents';
const SHEETS = 'google_workspace.sheets.values';
const TASKS = 'google_workspace.tasks';

const run = (content: string) => ({ textRun: { content, textStyle: { bold: true } } });
const paragraph = (content: string, more: object = {}) => ({ paragraph: { elements: [run(content)], ...more } });

t.test('a document is read as text, tab by tab', async (test) => {
  const cell = (text: string) => ({ content: [paragraph(`${text}\n`)] });
  const body = {
    content: [
      { sectionBreak: {} },
      paragraph('Plan\n', { paragraphStyle: { namedStyleType: 'HEADING_1' } }),
      paragraph('milk\n', { bullet: { listId: 'l' } }),
      paragraph('\n'),
      { table: { tableRows: [{ tableCells: [cell('a'), cell('b')] }, { tableCells: [cell('c'), { content: [] }] }] } },
    ],
  };
  const { read, server } = await openGoogle(test, () => ({
    documentId: 'd1',
    title: 'Plan',
    revisionId: 'r1',
    documentStyle: {},
    tabs: [
      {
        tabProperties: { tabId: 't.0', title: 'First', index: 0 },
        documentTab: { body },
        childTabs: [
          { tabProperties: { tabId: 't.1', title: 'Below' }, documentTab: { body: { content: [paragraph('x\n')] } } },
        ],
      },
    ],
  }));
  test.same((await read(`${DOCS}.get`, { documentId: 'd1' })).data, {
    documentId: 'd1',
    title: 'Plan',
    revisionId: 'r1',
    tabs: [
      { tabId: 't.0', title: 'First', text: '# Plan\n- milk\n\na\tb\nc\t\n' },
      { tabId: 't.1', title: 'Below', text: 'x\n' },
    ],
  });
  test.equal(server.calls[0]?.url.pathname, '/v1/documents/d1');
  test.equal(server.calls[0]?.url.searchParams.get('includeTabsContent'), 'true');
});

t.test('text is added to the end of a document', async (test) => {
  const { execute, summary, canLookUp, server } = await openGoogle(test, () => ({ documentId: 'd1', replies: [{}] }));
  const given = { documentId: 'd1', text: 'Grüße\n' };
  test.equal(
    summary(`${DOCS}.append`, given),
    'Add 6 characters to the end of document d1 (https://docs.google.com/document/d/d1), for all whom it is shared with: “Grüße\n”',
  );
  test.same(await execute(`${DOCS}.append`, given), { documentId: 'd1' });
  test.equal(server.calls[0]?.url.pathname, '/v1/documents/d1:batchUpdate');
  test.same(JSON.parse(server.calls[0]?.body ?? ''), {
    requests: [{ insertText: { endOfSegmentLocation: {}, text: 'Grüße\n' } }],
  });
  test.notOk(canLookUp(`${DOCS}.append`, given), 'nothing says who wrote it');
});

t.test('cells are read by a range of any name', async (test) => {
  const { read, wrong, server } = await openGoogle(test, () => ({
    range: "'Bilanz 2026'!A1:B2",
    values: [['a', 1]],
    majorDimension: 'ROWS',
  }));
  const given = { spreadsheetId: 's1', range: "'Bilanz 2026'!A1:B2", valueRenderOption: 'UNFORMATTED_VALUE' };
  test.same((await read(`${SHEETS}.get`, given)).data, {
    range: given.range,
    majorDimension: 'ROWS',
    values: [['a', 1]],
  });
  test.equal(server.calls[0]?.url.pathname, "/v4/spreadsheets/s1/values/'Bilanz%202026'!A1%3AB2");
  test.equal(server.calls[0]?.url.search, '?valueRenderOption=UNFORMATTED_VALUE');
  for (const range of ['..', '.', '', 'A1\n']) test.same(wrong(`${SHEETS}.get`, { ...given, range }), ['range'], range);
});

const cells = { spreadsheetId: 's1', range: 'Sheet1!A1:B2', values: [['name', 1.5], [true, null], ['=SUM(A1:A2)']] };

t.test('cells are written, and rows added', async (test) => {
  const updates = { spreadsheetId: 's1', updatedRange: 'Sheet1!A1:B2', updatedRows: 3, updatedCells: 5 };
  const { execute, summary, canLookUp, wrong, server } = await openGoogle(test, ({ method }) =>
    method === 'PUT' ? { ...updates, updatedColumns: 2 } : { spreadsheetId: 's1', tableRange: 'Sheet1!A1:B9', updates },
  );
  test.equal(
    summary(`${SHEETS}.update`, cells),
    'Replace what is in “Sheet1!A1:B2” of spreadsheet s1 (https://docs.google.com/spreadsheets/d/s1) by 5 cells in 3 rows: “name | 1.5 / true | null / =SUM(A1:A2)”',
  );
  test.match(
    summary(`${SHEETS}.append`, { ...cells, valueInputOption: 'USER_ENTERED' }),
    /^Add below “Sheet1!A1:B2” of spreadsheet s1 \(https:\/\/docs.google.com\/spreadsheets\/d\/s1\) 5 cells in 3 rows, formulas are computed: /,
  );
  test.same(await execute(`${SHEETS}.update`, cells), updates);
  test.same(await execute(`${SHEETS}.append`, { ...cells, valueInputOption: 'USER_ENTERED' }), updates);
  test.same(
    server.calls.map(({ method, url }) => `${method} ${url.pathname}${url.search}`),
    [
      'PUT /v4/spreadsheets/s1/values/Sheet1!A1%3AB2?valueInputOption=RAW',
      'POST /v4/spreadsheets/s1/values/Sheet1!A1%3AB2:append?valueInputOption=USER_ENTERED&insertDataOption=INSERT_ROWS',
    ],
  );
  for (const { body } of server.calls) {
    test.same(JSON.parse(body), { range: cells.range, majorDimension: 'ROWS', values: cells.values });
  }
  for (const key of ['update', 'append'])
    test.notOk(canLookUp(`${SHEETS}.${key}`, cells), 'cells do not say who wrote them');
  test.same(wrong(`${SHEETS}.update`, { ...cells, values: [] }), ['values']);
});

t.test('tasks are listed and created', async (test) => {
  const item = { id: 't1', title: 'Call', status: 'needsAction', etag: 'x', selfLink: 'y' };
  const { read, execute, summary, server } = await openGoogle(test, ({ method, url }, res) => {
    if (url.searchParams.get('pageToken') === 'old') return json(res, 400, {}) ?? undefined;
    return method === 'POST' ? item : { kind: 'tasks#tasks', items: [item], nextPageToken: 'p2' };
  });
  test.same(await read(`${TASKS}.tasks.list`, { maxResults: 100, showCompleted: false }), {
    data: { items: [{ id: 't1', title: 'Call', status: 'needsAction' }] },
    nextCursor: 'p2',
  });
  test.same(await read(`${TASKS}.tasklists.list`, {}), {
    data: { items: [{ id: 't1', title: 'Call' }] },
    nextCursor: 'p2',
  });
  await test.rejects(read(`${TASKS}.tasks.list`, {}, 'old'), CursorError);
  const given = { title: 'Call', notes: 'Ann', due: '2026-12-24T00:00:00Z' };
  test.equal(
    summary(`${TASKS}.tasks.create`, given),
    'Create the task “Call” in the default list; due 2026-12-24; notes: “Ann”',
  );
  test.same(await execute(`${TASKS}.tasks.create`, { ...given, tasklist: 'L1' }), { id: 't1', status: 'needsAction' });
  test.same(
    server.calls.map(({ method, url }) => `${method} ${url.pathname}${url.search}`),
    [
      'GET /tasks/v1/lists/%40default/tasks?maxResults=100&showCompleted=false',
      'GET /tasks/v1/users/@me/lists',
      'GET /tasks/v1/lists/%40default/tasks?pageToken=old',
      'POST /tasks/v1/lists/L1/tasks',
    ],
  );
  test.same(JSON.parse(server.calls.at(-1)?.body ?? ''), given);
});

t.test('failures are distinguished, and a write is sent once', async (test) => {
  let reply: (res: Parameters<typeof json>[0]) => void = () => {};
  const { execute, read, server } = await openGoogle(test, (_call, res) => void reply(res));
  const from = async (fault: typeof reply, start: () => Promise<unknown>) => {
    reply = fault;
    const before = server.calls.length;
    return { done: start(), sent: () => server.calls.length - before };
  };
  for (const [key, given] of [
    [`${DOCS}.append`, { documentId: 'd1', text: 'x' }],
    [`${SHEETS}.update`, cells],
    [`${SHEETS}.append`, cells],
    [`${TASKS}.tasks.create`, { title: 'x' }],
  ] as const) {
    await failsAsDocumented(test, key, 'write', (fault) => from(fault, () => execute(key, given)));
  }
  for (const [key, given] of [
    [`${DOCS}.get`, { documentId: 'd1' }],
    [`${SHEETS}.get`, { spreadsheetId: 's1', range: 'A1' }],
    [`${TASKS}.tasks.list`, {}],
  ] as const) {
    await failsAsDocumented(test, key, 'read', (fault) => from(fault, () => read(key, given)));
  }
});
