import type { BSON, Db, Document } from 'mongodb';
import { z } from 'zod';
import { type ArgumentIssue, type ReadCall, type ReadResult, toolsOf } from '../tool.ts';
import { filterIssues, pipelineIssues, projectionIssues } from './allowed.ts';
import { documentIssues, fromBson, refused, toBson, valueIssues } from './extended_json.ts';
import { cursorAfter, cursorAt, positionOf } from './pages.ts';
import { type MongoCredential, withMongoRead } from './session.ts';
import { collectionName, type Settings } from './settings.ts';

const { read } = toolsOf<MongoCredential, Settings>();
type Call<A> = ReadCall<A, MongoCredential, Settings>;

/** Shorter than a connection waits for its server. */
export const MAX_TIME_MS = 20_000;
const PAGE = 50;

export const collection = collectionName.describe('one of the settings');
export const document = z.record(z.string().max(1_000), z.unknown());
export const filter = document.describe('a filter of MongoDB, in extended JSON');
const limit = z.int().min(1).max(200).optional().describe(`by default ${PAGE}`);

export function* collectionIssues(args: Readonly<{ collection: string }>, settings: Settings | null) {
  if (!settings?.collections.includes(args.collection))
    yield refused(['collection'], 'is no collection of the settings');
}

export type Run<T> = (db: Db, bson: typeof BSON) => Promise<T>;

/** In the database of the settings. `session`: of a write, or, by default, of a read. @throws ProviderError, the signal's reason */
export function inDatabase<T>(
  { context, access }: Pick<Call<unknown>, 'context' | 'access'>,
  run: Run<T>,
  session: typeof withMongoRead = withMongoRead,
): Promise<T> {
  return session(context, access.credential, async (client) => {
    const { BSON: bson } = await import('mongodb');
    return run(client.db(access.settings?.databaseName), bson);
  });
}

/** A page, of one more than there is room for. */
function pageOf(
  bson: typeof BSON,
  documents: readonly Document[],
  size: number,
  cursorOf: (last: Document) => string,
): ReadResult {
  const kept = documents.slice(0, size);
  const last = documents.length > size ? kept.at(-1) : undefined;
  return { data: fromBson(bson, kept), nextCursor: last === undefined ? null : cursorOf(last) };
}

const findInput = {
  collection,
  filter: filter.optional(),
  projection: document.optional(),
  sort: z.record(z.string().max(1_000), z.literal([1, -1])).optional(),
  limit,
};
type Find = z.output<z.ZodObject<typeof findInput>>;

/** Documents come with their ids, in the order of these. */
function isInOrderOfIds({ sort = {}, projection = {} }: Find): boolean {
  return Object.keys(sort).every((name) => name === '_id') && !('_id' in projection && !projection['_id']);
}

function find(call: Call<Find>): Promise<ReadResult> {
  const { args, cursor: given } = call;
  const { limit: size = PAGE, sort = {} } = args;
  return inDatabase(call, async (db, bson) => {
    const isById = isInOrderOfIds(args);
    const position = positionOf(bson, given, isById);
    const found = db
      .collection(args.collection)
      .find(toBson(bson, args.filter ?? {}) as Document, { maxTimeMS: MAX_TIME_MS, batchSize: size + 2 });
    if (args.projection) found.project(toBson(bson, args.projection) as Document);
    if (!isById) {
      const skip = 'skip' in position ? position.skip : 0;
      const documents = await found
        .sort(sort)
        .skip(skip)
        .limit(size + 1)
        .toArray();
      return pageOf(bson, documents, size, () => cursorAt(skip + size));
    }
    const direction = sort['_id'] ?? 1;
    found.sort({ _id: direction });
    const after = 'after' in position ? position.after : undefined;
    // By the bounds of the index: a comparison would leave out the ids of another type. The lower one is among what it finds.
    if (after !== undefined) {
      found.hint({ _id: 1 });
      if (direction === 1) found.min({ _id: after });
      else found.max({ _id: after });
    }
    const documents = await found.limit(size + 2).toArray();
    const same = (id: unknown) => cursorAfter(bson, id) === given;
    const rest = documents.filter((one) => given === undefined || !same(one['_id']));
    return pageOf(bson, rest, size, (last) => cursorAfter(bson, last['_id']));
  });
}

const fieldName = z
  .string()
  .min(1)
  .max(1_000)
  .regex(/^[^$\0][^\0]*$/, 'must be the name of a field');

const list = (...parts: readonly Iterable<ArgumentIssue>[]) => parts.flatMap((part) => [...part]);

export const reads = [
  read({
    key: 'mongodb.find',
    title: 'Find documents',
    description:
      'Reads documents that match a filter. Pages in the order of ids miss none; with a sort of its own, or without ids, pages are counted.',
    input: findInput,
    check: (args, settings) =>
      list(
        collectionIssues(args, settings),
        documentIssues(args.filter, ['filter'], filterIssues),
        projectionIssues(args.projection, ['projection']),
        valueIssues(args.sort, ['sort']),
      ),
    read: find,
  }),
  read({
    key: 'mongodb.count',
    title: 'Count documents',
    description: 'Counts documents that match a filter.',
    input: { collection, filter: filter.optional() },
    check: (args, settings) =>
      list(collectionIssues(args, settings), documentIssues(args.filter, ['filter'], filterIssues)),
    read: (call) =>
      inDatabase(call, async (db, bson) => {
        const matching = toBson(bson, call.args.filter ?? {}) as Document;
        const options = { maxTimeMS: MAX_TIME_MS };
        return { data: { count: await db.collection(call.args.collection).countDocuments(matching, options) } };
      }),
  }),
  read({
    key: 'mongodb.distinct',
    title: 'List values of a field',
    description: 'Lists the different values that a field has in documents that match a filter.',
    input: { collection, key: fieldName, filter: filter.optional() },
    check: (args, settings) =>
      list(collectionIssues(args, settings), documentIssues(args.filter, ['filter'], filterIssues)),
    read: (call) =>
      inDatabase(call, async (db, bson) => {
        const { collection: name, key, filter: given = {} } = call.args;
        const matching = toBson(bson, given) as Document;
        const values = await db.collection(name).distinct(key, matching, { maxTimeMS: MAX_TIME_MS });
        return { data: fromBson(bson, values) };
      }),
  }),
  read({
    key: 'mongodb.aggregate',
    title: 'Aggregate documents',
    description: 'Runs a pipeline of reading stages. Pages are counted: only a $sort gives them a fixed order.',
    input: { collection, pipeline: z.array(document).min(1).max(20), limit },
    check: (args, settings) =>
      list(collectionIssues(args, settings), pipelineIssues(args.pipeline, ['pipeline'], settings?.collections ?? [])),
    read: (call) =>
      inDatabase(call, async (db, bson) => {
        const { collection: name, pipeline, limit: size = PAGE } = call.args;
        const position = positionOf(bson, call.cursor, false);
        const skip = 'skip' in position ? position.skip : 0;
        const stages = [
          ...(toBson(bson, pipeline) as Document[]),
          ...(skip === 0 ? [] : [{ $skip: skip }]),
          { $limit: size + 1 },
        ];
        const options = { maxTimeMS: MAX_TIME_MS, batchSize: size + 1, allowDiskUse: false };
        const documents = await db.collection(name).aggregate(stages, options).toArray();
        return pageOf(bson, documents, size, () => cursorAt(skip + size));
      }),
  }),
];
