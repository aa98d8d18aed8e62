import { BSON } from 'mongodb';
import t from 'tap';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import { until } from '../../support/wait.ts';
import { OID, open, orders, part, settings, shown } from './mongodb_calls.ts';
import { toolsOf } from './tool_calls.ts';

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
    for (const cursor of ['skip.0', 'skip.-1', 'id.e30']) {
      await test.rejects(tools.read('mongodb.find', { ...orders, ...args }, cursor), CursorError, cursor);
    }
    const last = await tools.read('mongodb.find', { ...orders, ...args, limit: 2 }, 'skip.100000');
    test.equal(last.nextCursor, 'skip.100002', 'no page ends as if there were no more');
    const beyond = tools.read('mongodb.find', { ...orders, ...args }, 'skip.100002');
    await test.rejects(beyond, { name: 'CursorError', message: /more than 100,000 documents/ });
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

t.test('a read that nobody waits for any more is given up, and no connection stays', async (test) => {
  const { server, client, credential, sent } = await open(test, { stalls: (command) => 'find' in command });
  const abort = new AbortController();
  const tools = toolsOf(mongodb, { client, credential, settings, signal: abort.signal });
  const read = tools.read('mongodb.find', orders);
  read.catch(() => {});
  await until('the server is asked', () => sent('find').length === 1);
  test.ok(server.open() > 0);
  const reason = new Error('the caller left');
  abort.abort(reason);
  await test.rejects(read, reason);
  await until('all connections are closed', () => server.open() === 0);
  test.equal(sent('find').length, 1);
});
