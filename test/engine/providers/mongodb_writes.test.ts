import { BSON } from 'mongodb';
import t from 'tap';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import type { ProviderReason } from '../../../engine/providers/outgoing/index.ts';
import { type Document, OID, open, orders, part, settings, shown } from './mongodb_calls.ts';
import { fails } from './support.ts';
import { ACTION, toolsOf } from './tool_calls.ts';

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
  let late: Document[] = [];
  const { sent, tools } = await open(test, {
    reply(command) {
      if (!('find' in command)) return undefined;
      const firstBatch = part(command, 'readConcern')['level'] === 'linearizable' ? late : documents;
      return { ok: 1, cursor: { id: BSON.Long.ZERO, ns: 'shop.orders', firstBatch } };
    },
  });
  const given = { ...orders, document: { a: 1 } };
  test.same(await tools.lookUp('mongodb.insert_one', given), { outcome: 'absent' });
  const [command, ...more] = sent('find');
  test.match(command, { readConcern: { level: 'majority' }, limit: 1, $db: 'shop' });
  test.match(more, [{ readConcern: { level: 'linearizable' }, limit: 1, $db: 'shop' }]);
  late = [{ _id: 'x' }];
  test.same(await tools.lookUp('mongodb.insert_one', given), { outcome: 'none' }, 'the primary alone has it');
  late = [];
  const id = shown(part(command, 'filter')['_id']);
  documents = [{ _id: 'x', changed: 'since' }];
  test.same(await tools.lookUp('mongodb.insert_one', given), { outcome: 'found', result: { insertedId: id } });
  const own = { ...orders, document: { _id: 7, at: { $date: '2030-01-01T00:00:00Z' } } };
  documents = [];
  test.same(await tools.lookUp('mongodb.insert_one', own), { outcome: 'none' }, 'others may have deleted it');
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
