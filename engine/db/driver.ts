import pg from 'pg';
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  createDriverFactory,
  type DriverFactory,
  type DriverQueryResult,
} from 'slonik';
import { KEEP_ALIVE } from './abandoned.ts';
import { queryClient } from './query_client.ts';

function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('an int8 beyond the safe integers');
  return value;
}

type Parse = (text: string) => unknown;
const { INT8, NUMERIC, TIMESTAMPTZ, TIMESTAMP, DATE } = pg.types.builtins;
// The driver's types know no arrays.
const TEXT_ARRAY: number = 1009;
const asText: Parse = (text) => text;
/** A timestamptz as a session in UTC writes it. */
const UTC_TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/;
/** By its text where that will do: a third of the time of a Date, of which a long list has thousands. */
const asIsoTime: Parse = (text) => {
  const [whole, day, time, fraction = ''] = UTC_TIME.exec(text) ?? [];
  if (whole === undefined) return new Date(text).toISOString();
  return `${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`;
};

/** By the type's number, which is the same in every Postgres: the number of the type, of its array, how it is read. */
const types: readonly (readonly [number, number, Parse])[] = [
  [INT8, 1016, safeInteger],
  [NUMERIC, 1231, asText],
  [TIMESTAMPTZ, 1185, asIsoTime],
  [TIMESTAMP, 1115, asText],
  [DATE, 1182, asText],
];

function arrayOf(parse: Parse): Parse {
  const texts: Parse = pg.types.getTypeParser(TEXT_ARRAY);
  const each = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(each);
    return typeof value === 'string' ? parse(value) : value;
  };
  return (text) => each(texts(text));
}

const parsers = new Map(
  types.flatMap(([type, array, parse]): [number, Parse][] => [
    [type, parse],
    [array, arrayOf(parse)],
  ]),
);

/** In the words of slonik, which asks no more of a connection that is gone. */
function translated(error: Error): Error {
  if (/connection terminated unexpectedly/i.test(error.message)) return new BackendTerminatedUnexpectedlyError(error);
  const terminated = 'code' in error && error.code === '57P01';
  return terminated || /connection terminated/i.test(error.message) ? new BackendTerminatedError(error) : error;
}

/** The protocol that refuses several statements in one, also where there are no parameters. */
const extended = { queryMode: 'extended' };

/** `select app.<function>(…)`, as `call` writes it: one plan serves all arguments, so that it is worth keeping. */
const CALL = /^\s*(?:with called as materialized \(\s*)?select app\.(\w+)\(/;
/** A connection keeps at most so many; the texts come from the code, so that there are far fewer. */
const MAX_PREPARED = 500;

const names = new Map<string, string>();

/** The name of a call's text, the same on every connection: Postgres parses and plans what has a name once a connection. */
function statementName(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined) return known;
  const [, called] = CALL.exec(text) ?? [];
  if (called === undefined || names.size >= MAX_PREPARED) return undefined;
  // Postgres cuts names at 63 bytes: what makes it unlike the others comes first.
  const name = `${names.size}_${called}`.slice(0, 63);
  names.set(text, name);
  return name;
}

/** Where connections come from, and go at their end. */
export type Connections = Readonly<{
  make(config: pg.ClientConfig): pg.Client;
  connect(client: pg.Client): Promise<void>;
  end(client: pg.Client): Promise<void>;
}>;

const newConnections: Connections = {
  make: (config) => new pg.Client(config),
  async connect(client) {
    await client.connect();
  },
  end: (client) => client.end(),
};

export type DriverOptions = Readonly<{
  prepare: boolean;
  /** Default: a new one each, closed at its end. */
  connections?: Connections | undefined;
}>;

/**
 * slonik's connections, in place of its own driver, which asks each Postgres for the numbers of the types over a
 * connection to whose errors nobody listens: a Postgres that breaks off in that moment would end our process. Here each
 * connection is listened to from its first moment to its last.
 *
 * With `prepare` the calls of functions are prepared by name, which a session keeps: not for a transaction pooler.
 */
export const pgDriver = ({ prepare, connections = newConnections }: DriverOptions): DriverFactory =>
  createDriverFactory(async ({ driverConfiguration }) => {
    const { connectionUri, connectionTimeout } = driverConfiguration;
    const config = {
      connectionString: connectionUri,
      ...KEEP_ALIVE,
      ...(typeof connectionTimeout === 'number' ? { connectionTimeoutMillis: connectionTimeout } : {}),
      types: { getTypeParser: (type: number): Parse => parsers.get(type) ?? pg.types.getTypeParser(type) },
    };
    return {
      async createPoolClient({ clientEventEmitter }) {
        const client = connections.make(config);
        client.on('error', (error) => {
          // Nobody listens any more to one that was given up.
          if (clientEventEmitter.listenerCount('error') > 0) clientEventEmitter.emit('error', translated(error));
        });
        client.on('notice', ({ message }) => {
          if (message) clientEventEmitter.emit('notice', { message });
        });
        return {
          connect: () => connections.connect(client),
          end: () => connections.end(client),
          async query(text, values, options) {
            const name = options?.name ?? (prepare ? statementName(text) : undefined);
            const query = { text, values: values ?? [], ...extended, ...(name === undefined ? {} : { name }) };
            const result = await queryClient(client, query).catch((error: Error) => {
              throw translated(error);
            });
            return {
              command: result.command as DriverQueryResult['command'],
              fields: result.fields.map((field) => ({ dataTypeId: field.dataTypeID, name: field.name })),
              rowCount: result.rowCount,
              rows: result.rows,
            };
          },
          stream() {
            throw new Error('rows are not streamed here');
          },
        };
      },
    };
  });
