import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { BSON } from 'mongodb';
import type { TearDown } from '../../support/database.ts';

// Stands in for a MongoDB server, of which none can be had here: its wire protocol, SCRAM-SHA-256, and the few commands that the
// official driver sends for us.

type Document = Readonly<Record<string, unknown>>;
export type StandIn = Readonly<{
  port: number;
  commands: Document[];
  connections: () => number;
  /** How many of them are open. */
  open: () => number;
}>;
export type StandInOptions = Readonly<{
  username: string;
  password: string;
  /** Where it listens (default 127.0.0.1). */
  address?: string;
  /** By their name, with their documents. */
  collections?: Readonly<Record<string, readonly Document[]>>;
  /** More of what it says of itself. */
  hello?: Document;
  /** In place of the response to a command. */
  reply?: (command: Document) => Document | undefined;
  /** Breaks off in place of it. */
  breaks?: (command: Document) => boolean;
  /** Never responds to it. */
  stalls?: (command: Document) => boolean;
}>;

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;
const ITERATIONS = 4_096;

const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest();
const failure = (code: number, codeName: string) => ({ ok: 0, code, codeName, errmsg: 'planted-4711' });

function fields(payload: string): Record<string, string> {
  return Object.fromEntries(payload.split(',').map((field) => [field.slice(0, 1), field.slice(2)]));
}

/** The server's side of SCRAM-SHA-256 (RFC 7677), for one connection. */
function scram({ username, password }: StandInOptions) {
  const salt = randomBytes(16);
  let clientFirst = '';
  let serverFirst = '';
  const payloadOf = (command: Document) => Buffer.from((command['payload'] as BSON.Binary).buffer).toString('utf8');
  const reply = (done: boolean, payload: string) => ({
    ok: 1,
    conversationId: 1,
    done,
    payload: new BSON.Binary(Buffer.from(payload)),
  });
  return {
    start(command: Document): Document {
      clientFirst = payloadOf(command).replace(/^n,,/, '');
      const { n, r } = fields(clientFirst);
      if (n !== username) return failure(18, 'AuthenticationFailed');
      serverFirst = `r=${r}${randomBytes(12).toString('base64')},s=${salt.toString('base64')},i=${ITERATIONS}`;
      return reply(false, serverFirst);
    },
    finish(command: Document): Document {
      const payload = payloadOf(command);
      const [withoutProof = '', proof = ''] = payload.split(',p=');
      const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
      const message = `${clientFirst},${serverFirst},${withoutProof}`;
      const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest();
      const signature = hmac(storedKey, message);
      const given = Buffer.from(proof, 'base64').map((byte, index) => byte ^ (signature[index] ?? 0));
      if (!createHash('sha256').update(given).digest().equals(storedKey)) return failure(18, 'AuthenticationFailed');
      return reply(true, `v=${hmac(hmac(salted, 'Server Key'), message).toString('base64')}`);
    },
  };
}

function message(opcode: number, responseTo: number, parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(16);
  head.writeInt32LE(16 + body.length, 0);
  head.writeInt32LE(1, 4);
  head.writeInt32LE(responseTo, 8);
  head.writeInt32LE(opcode, 12);
  return Buffer.concat([head, body]);
}

/** One request of the wire protocol, and how its response is written. */
function readMessage(bytes: Buffer): { command: Document; write: (document: Document) => Buffer } {
  const [id, opcode] = [bytes.readInt32LE(4), bytes.readInt32LE(12)];
  if (opcode === OP_MSG) {
    // Flags, then a section of kind 0: the command.
    const command = BSON.deserialize(bytes.subarray(21, 21 + bytes.readInt32LE(21)));
    return { command, write: (document) => message(OP_MSG, id, [Buffer.alloc(5), BSON.serialize(document)]) };
  }
  if (opcode !== OP_QUERY) throw new Error(`opcode ${opcode}`);
  const start = bytes.indexOf(0, 20) + 1 + 8;
  const command = BSON.deserialize(bytes.subarray(start, start + bytes.readInt32LE(start)));
  const head = Buffer.alloc(20);
  head.writeInt32LE(1, 16);
  return { command, write: (document) => message(OP_REPLY, id, [head, BSON.serialize(document)]) };
}

export async function openStandIn(t: TearDown, options: StandInOptions): Promise<StandIn> {
  const commands: Document[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;

  const cursor = (ns: string, firstBatch: readonly Document[]) => ({
    ok: 1,
    cursor: { id: BSON.Long.ZERO, ns, firstBatch },
  });

  function respond(command: Document, login: ReturnType<typeof scram>): Document {
    const database = String(command['$db']);
    if ('ismaster' in command || 'hello' in command || 'isMaster' in command) {
      return {
        ok: 1,
        ismaster: true,
        isWritablePrimary: true,
        helloOk: true,
        maxBsonObjectSize: 16_777_216,
        maxMessageSizeBytes: 48_000_000,
        maxWriteBatchSize: 100_000,
        minWireVersion: 0,
        maxWireVersion: 21,
        ...('saslSupportedMechs' in command ? { saslSupportedMechs: ['SCRAM-SHA-256'] } : {}),
        ...options.hello,
      };
    }
    commands.push(command);
    const given = options.reply?.(command);
    if (given) return given;
    if ('saslStart' in command) return login.start(command);
    if ('saslContinue' in command) return login.finish(command);
    if ('connectionStatus' in command) {
      return { ok: 1, authInfo: { authenticatedUsers: [{ user: options.username, db: 'admin' }] } };
    }
    const { collections = {} } = options;
    if ('listCollections' in command) {
      const names = Object.keys(collections).map((name) => ({ name, type: 'collection' }));
      return cursor(`${database}.$cmd.listCollections`, names);
    }
    if ('aggregate' in command || 'find' in command) {
      const name = String(command['aggregate'] ?? command['find']);
      return cursor(`${database}.${name}`, collections[name] ?? []);
    }
    return { ok: 1 };
  }

  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    const login = scram(options);
    let buffered = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      buffered = Buffer.concat([buffered, chunk]);
      while (buffered.length >= 4 && buffered.length >= buffered.readInt32LE(0)) {
        const { command, write } = readMessage(buffered.subarray(0, buffered.readInt32LE(0)));
        buffered = buffered.subarray(buffered.readInt32LE(0));
        const response = write(respond(command, login));
        if (options.breaks?.(command)) socket.destroy();
        else if (!options.stalls?.(command)) socket.write(response);
      }
    });
  });
  server.listen(0, options.address ?? '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { port, commands, connections: () => connections, open: () => sockets.size };
}
