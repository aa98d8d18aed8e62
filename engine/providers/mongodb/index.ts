import type { Db } from 'mongodb';
import { z } from 'zod';
import { maskedId } from '../mask.ts';
import { ProviderError } from '../outgoing/index.ts';
import { defineProvider, unknownChoices } from '../provider.ts';
import { addFieldNames } from './fields.ts';
import { authSourceOf, credential, withMongo } from './session.ts';
import { MAX_COLLECTIONS, settings } from './settings.ts';
import { tools } from './tools.ts';

/** MongoDB gives none a longer one. */
const MAX_NAME_LENGTH = 255;
const SAMPLE = 10;
const SAMPLE_MS = 2_000;
/** What is left of the session's time is for closing it. */
const SAMPLING_MS = 12_000;

const status = z.object({
  authInfo: z.object({ authenticatedUsers: z.array(z.object({ user: z.string(), db: z.string() })).min(1) }),
});

/** The names of the fields that a few documents have. */
async function fieldsOf(database: Db, collection: string): Promise<string[]> {
  const names = new Set<string>();
  const cursor = database
    .collection(collection)
    .aggregate([{ $sample: { size: SAMPLE } }], { maxTimeMS: SAMPLE_MS, batchSize: 1 });
  try {
    for await (const document of cursor) addFieldNames(names, document);
  } finally {
    await cursor.close();
  }
  return [...names].sort();
}

export const mongodb = defineProvider({
  key: 'mongodb',
  title: 'MongoDB',
  connections: ['mongodb'],
  services: [],
  settings: { schema: settings, required: true },
  credential,
  tools,
  lookUp: 'resources',
  datasets: [],
  verify(context, { credential: given }) {
    return withMongo(context, given, async (client) => {
      const authSource = authSourceOf(given);
      const result = status.safeParse(await client.db(authSource).command({ connectionStatus: 1 }));
      if (!result.success) throw new ProviderError('mongodb', 'rejected', 'The server does not know the user.');
      const host = given.host.toLowerCase();
      return {
        subject: `${host}:${given.srv ? 'srv' : (given.port ?? 27_017)}/${authSource}.${given.username}`,
        label: `${maskedId(given.username)}@${host}`,
      };
    });
  },
  /** `{name, fields}` of the collections of the settings' database, at most 200. Views and system collections are left out. */
  async discover(context, { credential: given, settings: chosen }) {
    if (chosen === null) {
      throw new ProviderError('mongodb', 'refused', 'The settings name the database, and there are none yet.');
    }
    return withMongo(context, given, async (client) => {
      const database = client.db(chosen.databaseName);
      const listed = await database.listCollections({}, { nameOnly: true, authorizedCollections: true }).toArray();
      const names = listed
        .filter(({ name: one, type }) => type !== 'view' && !one.startsWith('system.') && one.length <= MAX_NAME_LENGTH)
        .map(({ name: one }) => one)
        .sort();
      const end = performance.now() + SAMPLING_MS;
      const items: { name: string; fields: string[] }[] = [];
      let partial = false;
      for (const one of names.slice(0, MAX_COLLECTIONS)) {
        // A slow server names its collections, if not all of their fields.
        const isLate = performance.now() > end;
        partial ||= isLate;
        items.push({ name: one, fields: isLate ? [] : await fieldsOf(database, one) });
      }
      return { items, truncated: names.length > MAX_COLLECTIONS, partial };
    });
  },
  checkSettings({ collections }, { items }) {
    return unknownChoices('collections', collections, new Set(items.map((item) => String(item['name']))), 'collection');
  },
});
