import { BSON } from 'mongodb';
import type * as Tap from 'tap';
import t from 'tap';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import type { ProviderReason } from '../../../engine/providers/outgoing/index.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import { openStandIn, type StandInOptions } from './mongo_stand_in.ts';
import { fails, openClient } from './support.ts';
import { ACTION, toolsOf } from './tool_calls.ts';

type Document = Readonly<Record<string, unknown>>;

const user = { username: 'reader', password: 'pass-word-4711' };
const settings = { kind: 'mongodb', databaseName: 'shop', collections: ['orders', 'customers'] };
const orders = { collection: 'orders' };
const OID = '65a000000000000000000001';

async function open(test: Tap.Test, more: Partial<StandInOptions> = {}) {
  const server = await openStandIn(test, { ...user, ...more });
  const client = openClient(test, {});
  const credential = { kind: 'mongodb', host: '127.0.0.1', port: server.port, srv: false, tls: false, ...user };
  const sent = (name: string) => server.commands.filter((command) => name in command);
  return { server, client, credential, sent, tools: toolsOf(mongodb, { client, credential, settings }) };
}

const part = (command: Document | undefined, name: string) => (command?.[name] ?? {}) as Document;

/** As a person reads it. */
const shown = (value: unknown) => JSON.parse(BSON.EJSON.stringify(value, { relaxed: true }));

t.test('documents are found in extended JSON that can be read', async (test) => {
  const document = {
    _id: new BSON.ObjectId(OID),
    at: new Date('2030-01-01T00:00:00Z'),
    cents: BSON.Long.fromString('9007199254740993'),
    n: 4,
    price: BSON.Decimal128.fromString('1.20'),
    text: 'a\0b',
  };
  const { sent, tools } = await open(test, { collections: { orders: [document] } });
  const result = await tools.read('mongodb.find', {
    ...orders,
    filter: {
      _id: { $oid: OID },
      at: { $gte: { $date: '2029-12-31T23:00:00Z' } },
      name: { $regex: '^a', $options: 'i', $ne: 'ab' },
    },
    projection: { at: 1, n: { $add: ['$n', 1] }, lines: { $elemMatch: { sku: 'x' } } },
  });
  test.same(result, {
    data: [
      {
        _id: { $oid: OID },
        at: { $date: '2030-01-01T00:00:00Z' },
        cents: { $numberLong: '9007199254740993' },
        n: 4,
        price: { $numberDecimal: '1.20' },
        text: 'ab',
      },
    ],
    nextCursor: null,
  });
  const [command] = sent('find');
  test.same(shown(command?.['filter']), {
    _id: { $oid: OID },
    at: { $gte: { $date: '2029-12-31T23:00:00Z' } },
    name: { $regex: '^a', $options: 'i', $ne: 'ab' },
  });
  test.ok(part(command, 'filter')['_id'] instanceof BSON.ObjectId);
  test.match(command, { $db: 'shop', find: 'orders', maxTimeMS: 20_000, limit: 52, sort: { _id: 1 } });
});

t.test('pages in the order of ids go on behind the last one, of whatever type', async (test) => {
  const ids = [1, 2, 'a', new BSON.ObjectId(OID)];
  let documents = ids.map((id) => ({ _id: id }));
  const { sent, tools } = await open(test, {
    reply: (command) =>
      'find' in command
        ? { ok: 1, cursor: { id: BSON.Long.ZERO, ns: 'shop.orders', firstBatch: documents } }
        : undefined,
  });
  const first = await tools.read('mongodb.find', { ...orders, limit: 2 });
  test.same(first.data, [{ _id: 1 }, { _id: 2 }]);
  documents = documents.slice(1);
  const second = await tools.read('mongodb.find', { ...orders, limit: 2 }, first.nextCursor ?? undefined);
  test.same(second, { data: [{ _id: 'a' }, { _id: { $oid: OID } }], nextCursor: null });
  test.match(sent('find')[1], { min: { _id: 2 }, hint: { _id: 1 }, sort: { _id: 1 }, skip: undefined });
  documents = [{ _id: 2 }, { _id: 1 }, { _id: 0 }];
  const down = { ...orders, sort: { _id: -1 }, limit: 1 };
  const third = await tools.read('mongodb.find', down);
  await tools.read('mongodb.find', down, third.nextCursor ?? undefined);
  test.match(sent('find')[3], { max: { _id: 2 }, hint: { _id: 1 }, sort: { _id: -1 }, min: undefined });
  const oid = `id.${Buffer.from(`{"id":{"$oid":"${OID}"}}`).toString('base64url')}`;
  await tools.read('mongodb.find', orders, oid);
  test.equal(String(part(sent('find')[4], 'min')['_id']), OID);
  const before = sent('find').length;
  const forged = ['', 'skip.1', 'id.', 'id.x', `id.${Buffer.from('{"id":{"$where":"1"}}').toString('base64url')}`];
  for (const cursor of forged) await test.rejects(tools.read('mongodb.find', orders, cursor), CursorError, cursor);
  test.equal(sent('find').length, before);
});

t.test('pages in another order are counted', async (test) => {
  const documents = Array.from({ length: 3 }, (_, n) => ({ _id: n }));
  const { sent, tools } = await open(test, { collections: { orders: documents } });
  for (const args of [{ sort: { at: -1 } }, { projection: { _id: 0, at: 1 } }]) {
    const first = await tools.read('mongodb.find', { ...orders, ...args, limit: 2 });
    test.equal(first.nextCursor, 'skip.2');
    const second = await tools.read('mongodb.find', { ...orders, ...args, limit: 2 }, 'skip.2');
    test.equal(second.nextCursor, 'skip.4');
    test.match(sent('find').at(-1), { skip: 2, limit: 3 });
    for (const cursor of ['skip.0', 'skip.100001', 'skip.-1', 'id.e30']) {
      await test.rejects(tools.read('mongodb.find', { ...orders, ...args }, cursor), CursorError, cursor);
    }
  }
});

t.test('pipelines, counts and values of fields are read within bounds', async (test) => {
  const { sent, tools } = await open(test, {
    collections: {
      orders: [
        { _id: 'a', n: 2 },
        { _id: 'b', n: 3 },
      ],
    },
    reply: (command) => ('distinct' in command ? { ok: 1, values: ['a', new Date(0)] } : undefined),
  });
  const pipeline = [
    { $match: { 'customer.id': { $in: [1, 2] }, $expr: { $gt: ['$total', { $multiply: ['$n', 2] }] } } },
    { $lookup: { from: 'customers', let: { c: '$c' }, pipeline: [{ $match: { x: 1 } }], as: 'customer' } },
    { $unionWith: { coll: 'customers', pipeline: [{ $limit: 1 }] } },
    { $unionWith: 'customers' },
    { $graphLookup: { from: 'orders', startWith: '$a', connectFromField: 'a', connectToField: 'b', as: 'c' } },
    { $facet: { a: [{ $sortByCount: '$x' }], b: [{ $group: { _id: '$y', total: { $sum: '$n' } } }] } },
    { $project: { x: { $literal: '$y' }, at: { $dateToString: { date: '$at', format: '%Y' } } } },
    { $sort: { _id: 1 } },
  ];
  const first = await tools.read('mongodb.aggregate', { ...orders, pipeline, limit: 1 });
  test.same(first, { data: [{ _id: 'a', n: 2 }], nextCursor: 'skip.1' });
  test.match(sent('aggregate')[0], { pipeline: [...pipeline, { $limit: 2 }], maxTimeMS: 20_000, allowDiskUse: false });
  await tools.read('mongodb.aggregate', { ...orders, pipeline: [{ $sort: { n: 1 } }], limit: 1 }, 'skip.1');
  test.same(sent('aggregate')[1]?.['pipeline'], [{ $sort: { n: 1 } }, { $skip: 1 }, { $limit: 2 }]);
  await test.rejects(tools.read('mongodb.aggregate', { ...orders, pipeline }, 'id.x'), CursorError);
  test.same(await tools.read('mongodb.count', { ...orders, filter: { n: 2 } }), { data: { count: 2 } });
  test.match(sent('aggregate').at(-1), { pipeline: [{ $match: { n: 2 } }, { $group: { n: { $sum: 1 } } }] });
  test.same(await tools.read('mongodb.distinct', { ...orders, key: 'customer.id' }), {
    data: ['a', { $date: '1970-01-01T00:00:00Z' }],
  });
  test.match(sent('distinct')[0], { distinct: 'orders', key: 'customer.id', maxTimeMS: 20_000 });
});

t.test('no JavaScript, no writing stage and no other collection comes through', async (test) => {
  const { server, tools } = await open(test);
  const js = { $function: { body: 'function() { return 1 }', args: [], lang: 'js' } };
  const deep = (value: unknown) => ({ $and: [{ a: { $not: { $elemMatch: { b: value } } } }] });
  const filters: unknown[] = [
    { $where: 'sleep(1000)' },
    deep({ $where: '1' }),
    { $expr: js },
    { $expr: { $and: [{ $cond: [true, { $let: { vars: { a: js }, in: 1 } }, 1] }] } },
    { a: { $code: 'function() {}' } },
    { a: { $code: 'function() {}', $scope: {} } },
    { $text: { $search: 'x' } },
    { a: { $near: [1, 1] } },
    { $jsonSchema: {} },
    { a: { $oid: 'x' } },
    { a: { $date: 'yesterday' } },
    { a: { $regularExpression: { pattern: 'x', options: 'g' } } },
    { $expr: { $literal: { $function: 1 } } },
    { a: { $ref: 'secrets', $id: 1 } },
  ];
  for (const filter of filters) {
    for (const key of ['find', 'count', 'update_one', 'delete_one']) {
      const effect = key.endsWith('_one') ? 'write' : 'read';
      const args = { ...orders, filter, ...(key === 'update_one' ? { update: { $set: { a: 1 } } } : {}) };
      const [issue] = tools.issues(`mongodb.${key}`, effect, args);
      test.equal(issue?.path[0], 'filter', `${key} ${JSON.stringify(filter)}`);
      test.ok((issue?.path.length ?? 0) > 1);
    }
  }
  const stages: unknown[] = [
    { $out: 'orders' },
    { $merge: { into: 'orders' } },
    { $currentOp: {} },
    { $collStats: {} },
    { $indexStats: {} },
    { $listSessions: {} },
    { $changeStream: {} },
    { $documents: [] },
    { $geoNear: {} },
    { $search: {} },
    { $group: { _id: null, n: { $accumulator: { init: 'function() {}' } } } },
    { $addFields: { a: js } },
    { $match: { $where: '1' } },
    { $project: { a: { $meta: 'x' } } },
    { $lookup: { from: 'secrets', localField: 'a', foreignField: 'b', as: 'c' } },
    { $lookup: { from: { db: 'admin', coll: 'orders' }, localField: 'a', foreignField: 'b', as: 'c' } },
    { $lookup: { pipeline: [{ $documents: [] }], as: 'c' } },
    { $lookup: { from: 'orders', pipeline: [{ $lookup: { from: 'secrets', as: 'x' } }], as: 'c' } },
    { $lookup: { from: 'orders', as: 'c', other: 1 } },
    { $graphLookup: { from: 'secrets', startWith: '$a' } },
    { $graphLookup: { from: 'orders', startWith: js } },
    { $graphLookup: { from: 'orders', startWith: '$a', restrictSearchWithMatch: { $where: '1' } } },
    { $unionWith: 'secrets' },
    { $unionWith: { coll: 'secrets' } },
    { $unionWith: { pipeline: [] } },
    { $unionWith: { coll: 'orders', pipeline: [{ $out: 'x' }] } },
    { $facet: { a: [{ $unionWith: 'secrets' }] } },
    { $facet: { a: { $out: 'x' } } },
    { $facet: [] },
    { $match: {}, $out: 'x' },
    {},
    { match: {} },
  ];
  for (const stage of stages) {
    const [issue] = tools.issues('mongodb.aggregate', 'read', { ...orders, pipeline: [{ $limit: 1 }, stage] });
    test.match(issue?.path.slice(0, 2), ['pipeline', 1], JSON.stringify(stage));
  }
  const projections = [{ a: js }, { a: { $elemMatch: { $where: '1' } } }, { a: { $literal: js } }];
  for (const projection of projections) {
    test.match(tools.issues('mongodb.find', 'read', { ...orders, projection }), [{ path: ['projection', 'a'] }]);
  }
  test.match(tools.issues('mongodb.find', 'read', { ...orders, sort: { $x: 1 } }), [{ path: ['sort', '$x'] }]);
  test.match(tools.issues('mongodb.distinct', 'read', { ...orders, key: '$where' }), [{ path: ['key'] }]);
  test.equal(server.connections(), 0);
});

t.test('updates are operators of the list, on a document that is named', async (test) => {
  const { client, credential, tools } = await open(test);
  const issues = (update: unknown, filter: unknown = { _id: 1 }) =>
    tools.issues('mongodb.update_one', 'write', { ...orders, filter, update });
  const all = {
    $set: { a: { b: { $date: '2030-01-01T00:00:00Z' } }, 'c.$[]': 1 },
    $unset: { d: '' },
    $inc: { n: 1 },
    $push: { list: { $each: [1], $slice: -5, $sort: { at: 1 }, $position: 0 }, other: { x: 1 } },
    $addToSet: { tags: { $each: ['a'] } },
    $pull: { list: { n: { $gt: 3 } } },
    $currentDate: { at: true, ts: { $type: 'timestamp' } },
    $bit: { flags: { or: 4 } },
  };
  test.same(issues(all), []);
  for (const [update, path] of [
    [{}, ['update']],
    [{ a: 1 }, ['update', 'a']],
    [{ $set: 1 }, ['update', '$set']],
    [{ $set: {} }, ['update', '$set']],
    [{ $set: { $a: 1 } }, ['update', '$set', '$a']],
    [{ $set: { a: { $where: '1' } } }, ['update', '$set', 'a', '$where']],
    [{ $setOnInsert: { a: 1 } }, ['update', '$setOnInsert']],
    [{ $replaceWith: { a: 1 } }, ['update', '$replaceWith']],
    [{ $push: { a: { $each: [{ $code: 'x' }] } } }, ['update', '$push', 'a', '$each', 0, '$code']],
    [{ $push: { a: { $each: [], $where: 1 } } }, ['update', '$push', 'a', '$where']],
    [{ $pull: { a: { $where: '1' } } }, ['update', '$pull', 'a', '$where']],
    [{ $currentDate: { a: { $type: 'x' } } }, ['update', '$currentDate', 'a']],
  ] as const) {
    test.same(issues(update)[0]?.path, path, JSON.stringify(update));
  }
  test.match(issues([{ $set: { a: 1 } }]), [{ path: ['update'] }]);
  test.match(issues({ $set: { a: 1 } }, {}), [{ path: ['filter'] }]);
  test.match(tools.issues('mongodb.delete_one', 'write', { ...orders, filter: {} }), [{ path: ['filter'] }]);
  const document = { a: { $where: '1' } };
  test.match(tools.issues('mongodb.insert_one', 'write', { ...orders, document }), [
    { path: ['document', 'a', '$where'] },
  ]);
  const value = { $oid: OID };
  test.match(tools.issues('mongodb.insert_one', 'write', { ...orders, document: value }), [{ path: ['document'] }]);
  test.match(issues({ $set: { a: 1 } }, value), [{ path: ['filter'] }]);
  test.match(tools.issues('mongodb.find', 'read', { ...orders, filter: value }), [{ path: ['filter'] }]);
  for (const { key, effect } of mongodb.tools) {
    const args = {
      collection: 'secrets',
      filter: { a: 1 },
      update: { $set: { a: 1 } },
      document: {},
      key: 'a',
      pipeline: [{ $limit: 1 }],
    };
    const properties = part(mongodb.tools.find((tool) => tool.key === key)?.inputSchema, 'properties');
    const given = Object.fromEntries(Object.entries(args).filter(([name]) => name in properties));
    test.match(tools.issues(key, effect, given), [{ path: ['collection'] }], key);
    test.same(tools.issues(key, effect, { ...given, ...orders }), [], key);
    const none = toolsOf(mongodb, { client, credential, settings: null });
    test.match(none.issues(key, effect, { ...given, ...orders }), [{ path: ['collection'] }], key);
  }
});

t.test('writes are sent once, as they are given', async (test) => {
  const { sent, tools } = await open(test, {
    reply(command) {
      if ('insert' in command) return { ok: 1, n: 1 };
      if ('update' in command) return { ok: 1, n: 1, nModified: 1 };
      return 'delete' in command ? { ok: 1, n: 1 } : undefined;
    },
  });
  const inserted = await tools.execute('mongodb.insert_one', {
    ...orders,
    document: { at: { $date: '2030-01-01T00:00:00Z' } },
  });
  const [insert, ...more] = sent('insert');
  test.equal(more.length, 0);
  const document = part(part(insert, 'documents'), '0') as Document;
  test.same(inserted, { insertedId: shown(document?.['_id']) });
  test.ok(document?.['at'] instanceof Date);
  const id = document?.['_id'] as BSON.ObjectId;
  test.equal(
    id.getTimestamp().getTime(),
    Math.floor(Number.parseInt(ACTION.replace('-', '').slice(0, 12), 16) / 1_000) * 1_000,
  );
  test.match(insert, { $db: 'shop', insert: 'orders', maxTimeMS: 20_000 });
  test.same(await tools.execute('mongodb.insert_one', { ...orders, document: { _id: 7 } }), { insertedId: 7 });
  const change = { ...orders, filter: { _id: { $oid: OID } }, update: { $set: { n: 2 } } };
  test.same(await tools.execute('mongodb.update_one', change), { matchedCount: 1, modifiedCount: 1 });
  test.equal(sent('update').length, 1);
  test.same(shown(sent('update')[0]?.['updates']), [
    { q: { _id: { $oid: OID } }, u: { $set: { n: 2 } }, upsert: false },
  ]);
  test.same(await tools.execute('mongodb.delete_one', { ...orders, filter: { n: 2 } }), { deletedCount: 1 });
  test.same(shown(sent('delete')[0]?.['deletes']), [{ q: { n: 2 }, limit: 1 }]);
  test.equal(sent('delete').length, 1);
});

t.test('what goes wrong says whether a write was done', async (test) => {
  const insert = { ...orders, document: { a: 1 } };
  const failure = (code: number, codeName: string) => ({ ok: 0, code, codeName, errmsg: 'planted-4711' });
  const replies: readonly [what: string, Document | 'breaks', ProviderReason, isUndone: boolean][] = [
    ['a duplicate', { ok: 1, n: 0, writeErrors: [{ index: 0, code: 11_000, errmsg: 'planted-4711' }] }, 'failed', true],
    ['a rule', failure(121, 'DocumentValidationFailure'), 'failed', true],
    ['no right', failure(13, 'Unauthorized'), 'forbidden', true],
    ['no time', failure(50, 'MaxTimeMSExpired'), 'unavailable', false],
    ['another primary', failure(10_107, 'NotWritablePrimary'), 'failed', false],
    ['not on most', { ok: 1, n: 1, writeConcernError: { code: 64, errmsg: 'planted-4711' } }, 'failed', false],
    ['a broken connection', 'breaks', 'unavailable', false],
  ];
  for (const [what, reply, reason, isUndone] of replies) {
    const isInsert = (command: Document) => 'insert' in command;
    const { sent, tools } = await open(test, {
      reply: (command) => (isInsert(command) && reply !== 'breaks' ? reply : undefined),
      breaks: (command) => isInsert(command) && reply === 'breaks',
    });
    const error = await fails(test, tools.execute('mongodb.insert_one', insert), reason, what);
    test.equal(error.isRefusal || reason === 'forbidden', isUndone, what);
    test.equal(sent('insert').length, 1, `${what}: sent once`);
    test.notMatch(JSON.stringify([error, error.message]), 'planted');
  }
  const { client, credential } = await open(test);
  const wrong = toolsOf(mongodb, { client, credential: { ...credential, password: 'another' }, settings });
  const rejected = await fails(test, wrong.execute('mongodb.insert_one', insert), 'rejected', 'a password');
  test.ok(rejected.isRefusal, 'before it is connected nothing is done');
  const gone = await open(test, { breaks: (command) => 'saslStart' in command });
  const unreached = await fails(test, gone.tools.execute('mongodb.insert_one', insert), 'unavailable', 'no server');
  test.ok(unreached.isRefusal);
  test.equal(gone.sent('insert').length, 0);
});

t.test('an insert is found by its id', async (test) => {
  let documents: Document[] = [];
  const { sent, tools } = await open(test, {
    reply: (command) =>
      'find' in command
        ? { ok: 1, cursor: { id: BSON.Long.ZERO, ns: 'shop.orders', firstBatch: documents } }
        : undefined,
  });
  const given = { ...orders, document: { a: 1 } };
  test.same(await tools.lookUp('mongodb.insert_one', given), { outcome: 'absent' });
  const [command] = sent('find');
  test.match(command, { readConcern: { level: 'majority' }, limit: 1, $db: 'shop' });
  const id = shown(part(command, 'filter')['_id']);
  documents = [{ _id: 'x', changed: 'since' }];
  test.same(await tools.lookUp('mongodb.insert_one', given), { outcome: 'found', result: { insertedId: id } });
  const own = { ...orders, document: { _id: 7, at: { $date: '2030-01-01T00:00:00Z' } } };
  documents = [{ _id: 7, at: new Date('2030-01-01T00:00:00Z') }];
  test.same(await tools.lookUp('mongodb.insert_one', own), { outcome: 'found', result: { insertedId: 7 } });
  documents = [{ _id: 7, at: null }];
  test.same(await tools.lookUp('mongodb.insert_one', own), { outcome: 'none' }, 'it may be older');
  for (const key of ['update_one', 'delete_one']) {
    const args = { ...orders, filter: { a: 1 }, ...(key === 'update_one' ? { update: { $set: { a: 1 } } } : {}) };
    test.notOk(tools.canLookUp(`mongodb.${key}`, args), key);
  }
});

t.test('more than may be read is too large', async (test) => {
  const large = 'x'.repeat(9 * 1024 * 1024);
  const { tools } = await open(test, {
    collections: {
      orders: [
        { _id: 1, large },
        { _id: 2, large },
      ],
    },
  });
  await fails(test, tools.read('mongodb.find', orders), 'too_large', 'two large documents');
});

t.test('a summary says which document, and what becomes of it', async (test) => {
  const { tools } = await open(test);
  test.equal(
    tools.summary('mongodb.insert_one', { ...orders, document: { a: 'b' } }),
    'Insert into “orders” of the database “shop” the document “{"a":"b"}”',
  );
  test.equal(
    tools.summary('mongodb.update_one', { ...orders, filter: { _id: 1 }, update: { $inc: { n: 2 } } }),
    'Change the first document of “orders” of the database “shop” that matches “{"_id":1}” by “{"$inc":{"n":2}}”',
  );
  const long = tools.summary('mongodb.delete_one', { ...orders, filter: { a: 'x'.repeat(5_000) } });
  test.match(
    long,
    /^Delete the first document of “orders” of the database “shop” that matches “.*…” \(5008 characters\)$/,
  );
  test.equal(mongodb.tools.find(({ key }) => key === 'mongodb.delete_one')?.risk, 'high');
});
