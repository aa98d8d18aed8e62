import { createHash } from 'node:crypto';
import type { BSON, Document } from 'mongodb';
import { quoted } from '../texts.ts';
import { type ArgumentIssue, toolsOf } from '../tool.ts';
import { filterIssues, updateIssues } from './allowed.ts';
import { documentIssues, fromBson, refused, toBson } from './extended_json.ts';
import { collection, collectionIssues, document, filter, inDatabase, MAX_TIME_MS } from './reads.ts';
import { type MongoCredential, withMongoWrite } from './session.ts';
import type { Settings } from './settings.ts';

const { write } = toolsOf<MongoCredential, Settings>();
type Fields = Readonly<Record<string, unknown>>;

const MAX_SHOWN = 700;
const shown = (value: unknown) => quoted(JSON.stringify(value), MAX_SHOWN);
const placeOf = (args: Readonly<{ collection: string }>, settings: Settings | null) =>
  `${quoted(args.collection)} of the database ${quoted(settings?.databaseName ?? '')}`;

/** The id of a document that has none of its own: that of its action, of whose time its begin is, as of any ObjectId. */
function idOf(bson: typeof BSON, actionId: string) {
  const seconds = Math.floor(Number.parseInt(actionId.replaceAll('-', '').slice(0, 12), 16) / 1_000);
  const rest = createHash('sha256').update(actionId).digest('hex').slice(0, 16);
  return new bson.ObjectId(`${(seconds >>> 0).toString(16).padStart(8, '0')}${rest}`);
}

const documentOf = (bson: typeof BSON, given: Fields, actionId: string) =>
  ({ _id: idOf(bson, actionId), ...(toBson(bson, given) as Document) }) as Document;

/** It changes or deletes one: which, is said. */
function* chosenIssues(given: Fields): Generator<ArgumentIssue> {
  if (Object.keys(given).length === 0) yield refused(['filter'], 'must say which document');
  yield* documentIssues(given, ['filter'], filterIssues);
}

const changeIn: typeof inDatabase = (call, run) => inDatabase(call, run, withMongoWrite);

export const writes = [
  write({
    key: 'mongodb.insert_one',
    title: 'Insert a document',
    description: 'Inserts a document. It gets an id where it has none.',
    risk: 'external',
    input: { collection, document },
    check: (args, settings) => [...collectionIssues(args, settings), ...documentIssues(args.document, ['document'])],
    summary: ({ args, settings }) => `Insert into ${placeOf(args, settings)} the document ${shown(args.document)}`,
    execute: (call) =>
      changeIn(call, async (db, bson) => {
        const given = documentOf(bson, call.args.document, call.actionId);
        const { insertedId } = await db.collection(call.args.collection).insertOne(given, { maxTimeMS: MAX_TIME_MS });
        return { insertedId: fromBson(bson, insertedId) };
      }),
    lookUp: (call) =>
      inDatabase(call, async (db, bson) => {
        const given = documentOf(bson, call.args.document, call.actionId);
        const read = (readConcern: 'majority' | 'linearizable') =>
          db
            .collection(call.args.collection)
            .findOne({ _id: given['_id'] }, { readPreference: 'primary', readConcern, maxTimeMS: MAX_TIME_MS });
        const isIdOurs = !Object.hasOwn(call.args.document, '_id');
        const found = await read('majority');
        // What the majority does not have yet may still come, unless the primary has asked it.
        if (found === null) return { outcome: isIdOurs && (await read('linearizable')) === null ? 'absent' : 'none' };
        // One of an id that was given may have been there before.
        const same = (one: unknown) => JSON.stringify(fromBson(bson, one));
        const isOurs = isIdOurs || same(found) === same(given);
        return isOurs
          ? { outcome: 'found', result: { insertedId: fromBson(bson, given['_id']) } }
          : { outcome: 'none' };
      }),
  }),
  write({
    key: 'mongodb.update_one',
    title: 'Change a document',
    description: 'Changes the first document that matches a filter, by operators such as $set. It inserts none.',
    risk: 'external',
    input: { collection, filter, update: document },
    check: (args, settings) => [
      ...collectionIssues(args, settings),
      ...chosenIssues(args.filter),
      ...updateIssues(args.update, ['update']),
    ],
    summary: ({ args, settings }) =>
      `Change the first document of ${placeOf(args, settings)} that matches ${shown(args.filter)} by ${shown(args.update)}`,
    execute: (call) =>
      changeIn(call, async (db, bson) => {
        const { collection: name, filter: matching, update } = call.args;
        const options = { maxTimeMS: MAX_TIME_MS, upsert: false };
        const { matchedCount, modifiedCount } = await db
          .collection(name)
          .updateOne(toBson(bson, matching) as Document, toBson(bson, update) as Document, options);
        return { matchedCount, modifiedCount };
      }),
  }),
  write({
    key: 'mongodb.delete_one',
    title: 'Delete a document',
    description: 'Deletes the first document that matches a filter. It does not come back.',
    risk: 'high',
    input: { collection, filter },
    check: (args, settings) => [...collectionIssues(args, settings), ...chosenIssues(args.filter)],
    summary: ({ args, settings }) =>
      `Delete the first document of ${placeOf(args, settings)} that matches ${shown(args.filter)}`,
    execute: (call) =>
      changeIn(call, async (db, bson) => {
        const matching = toBson(bson, call.args.filter) as Document;
        const { deletedCount } = await db
          .collection(call.args.collection)
          .deleteOne(matching, { maxTimeMS: MAX_TIME_MS });
        return { deletedCount };
      }),
  }),
];
