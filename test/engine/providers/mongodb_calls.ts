// What the tests of MongoDB's tools begin with: a stand-in for its server, and the tools over it.
import { BSON } from 'mongodb';
import type * as Tap from 'tap';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import { openStandIn, type StandInOptions } from './mongo_stand_in.ts';
import { openClient } from './support.ts';
import { toolsOf } from './tool_calls.ts';

export type Document = Readonly<Record<string, unknown>>;

export const user = { username: 'reader', password: 'pass-word-4711' };
export const settings = { kind: 'mongodb', databaseName: 'shop', collections: ['orders', 'customers'] };
export const orders = { collection: 'orders' };
export const OID = '65a000000000000000000001';

export async function open(test: Tap.Test, more: Partial<StandInOptions> = {}) {
  const server = await openStandIn(test, { ...user, ...more });
  const client = openClient(test, {});
  const credential = { kind: 'mongodb', host: '127.0.0.1', port: server.port, srv: false, tls: false, ...user };
  const sent = (name: string) => server.commands.filter((command) => name in command);
  return { server, client, credential, sent, tools: toolsOf(mongodb, { client, credential, settings }) };
}

export const part = (command: Document | undefined, name: string) => (command?.[name] ?? {}) as Document;

/** As a person reads it. */
export const shown = (value: unknown) => JSON.parse(BSON.EJSON.stringify(value, { relaxed: true }));
