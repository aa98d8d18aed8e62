import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Test } from 'tap';

export type Received = { method: string; path: string; headers: IncomingMessage['headers']; body: Buffer };

export type Script = {
  /** Run requests that are handed out, one a pull. */
  tasks?: object[];
  /** The same of chats: what of the conversation differs from the usual one. */
  chats?: object[];
  /** Files of the conversation, by their attachment id. */
  attachments?: Record<string, string | Uint8Array>;
  /** Status that the nth write of a reply is told. */
  written?: (nth: number) => string;
  inputs?: Record<string, string>;
  /** What a start returns. */
  executionToken?: string;
  heartbeatIntervalMs?: number;
  leaseMs?: number;
  /** Called before the usual response: null goes on with it, 'drop' breaks the connection, else [status, code]. */
  respond?: (verb: string, nth: number) => null | 'drop' | [number, string] | Promise<null>;
  /** Why a result is refused. */
  refused?: readonly { summary: string }[];
  /** What becomes of the task of a run that failed. */
  explained?: { status: string; causes: readonly object[] };
  /** Status that heartbeats return. */
  heartbeat?: (nth: number) => string;
};

export const ORGANIZATION = '0193a1b2-0000-7000-8000-000000000001';

/** The verb of a call, such as pull, start, complete; the path of an output or input with it. */
export function verbOf(call: Received): string {
  const path = call.path.split('?')[0] ?? '';
  if (path.includes('/outputs/')) return 'output';
  return path.split('/').at(-1) ?? '';
}

/** A server on loopback that speaks the run lifecycle: enough of it to see what a worker sends. */
export async function standIn(t: Test, script: Script) {
  const received: Received[] = [];
  const counts = new Map<string, number>();
  const later = (ms: number) => new Date(Date.now() + ms).toISOString();
  const tasks = [...(script.tasks ?? (script.chats ? [] : [{}]))];
  const chats = [...(script.chats ?? [])];
  const reply = { text: '', revision: 1, last: '' };
  let conversation: object = {};
  const inputs = Object.entries(script.inputs ?? {});
  const leaseMs = script.leaseMs ?? 60_000;

  /** As the API keeps it: upon the current revision, or the last write again; null: neither. */
  function write({ baseRevision, append }: { baseRevision: number; append: string }): object | null {
    const status = script.written?.(counts.get('message') ?? 1) ?? 'pending';
    if (status !== 'pending') return { revision: reply.revision, status };
    const again = baseRevision === reply.revision - 1 && append === reply.last;
    if (!again && baseRevision !== reply.revision) return null;
    if (!again) Object.assign(reply, { text: reply.text + append, revision: baseRevision + 1, last: append });
    return { revision: reply.revision, status };
  }

  function pullChat(): object {
    const parts = [{ id: 'part-1', kind: 'text', text: 'Hello?' }];
    conversation = {
      chat: { id: 'chat-id', title: 'A chat', summary: null },
      messageId: 'reply-id',
      userMessageId: 'asked-id',
      messages: [{ id: 'asked-id', role: 'user', status: 'complete', parts }],
      earlier: false,
      ...chats.shift(),
    };
    const chat = { chatId: 'chat-id', messageId: 'reply-id', title: 'A chat', summary: null, harnessSessionId: null };
    return { items: [{ ...claimed(), kind: 'chat', mode: 'execute', chat }] };
  }

  const claimed = () => ({
    organizationId: ORGANIZATION,
    runRequestId: 'request-1',
    leaseToken: '1.secret',
    attempt: 1,
    priority: 0,
    leaseExpiresAt: later(30_000),
    agentProfile: { id: 'profile-id', key: 'growth', name: 'Growth' },
  });

  function data(call: Received): object | null {
    switch (verbOf(call)) {
      case 'pull': {
        const { kinds } = JSON.parse(call.body.toString());
        if (chats.length > 0 && kinds.includes('chat')) return pullChat();
        const task = kinds.includes('task') ? tasks.shift() : undefined;
        if (!task) return { items: [] };
        const base = { id: 'task-id', identifier: 'T-1', title: 'A task', spec: { objective: 'Do it' }, state: {} };
        const item = {
          ...claimed(),
          kind: 'task',
          mode: 'execute',
          task: { ...base, ...task },
        };
        return { items: [item] };
      }
      case 'start': {
        const { runId } = JSON.parse(call.body.toString());
        const heartbeatIntervalMs = script.heartbeatIntervalMs ?? 20_000;
        const { executionToken = 'execution-token' } = script;
        return { kind: 'run', runId, attempt: 1, leaseExpiresAt: later(leaseMs), heartbeatIntervalMs, executionToken };
      }
      case 'heartbeat':
        return { status: script.heartbeat?.(counts.get('heartbeat') ?? 1) ?? 'running' };
      case 'inputs': {
        const files = inputs.map(([path, text]) => ({
          path,
          name: path,
          role: 'input',
          mediaType: 'text/plain',
          sizeBytes: Buffer.byteLength(text),
          sha256: createHash('sha256').update(text).digest('hex'),
          available: true,
        }));
        return { version: 1, files };
      }
      case 'conversation':
        return conversation;
      case 'message':
        return write(JSON.parse(call.body.toString()));
      case 'complete':
        return script.refused ? { status: 'failed' } : { status: 'succeeded' };
      case 'task-id':
        return { version: 1, graphRevision: 1, state: { contract: { checks: script.refused } } };
      case 'explain':
        return script.explained ?? null;
      case 'fail':
        return { status: 'failed' };
      default:
        return { status: 'running' };
    }
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const call = { method: req.method ?? '', path: req.url ?? '', headers: req.headers, body: await buffer(req) };
    const verb = verbOf(call);
    received.push(call);
    counts.set(verb, (counts.get(verb) ?? 0) + 1);
    const special = await script.respond?.(verb, counts.get(verb) ?? 1);
    if (special === 'drop') {
      req.socket.destroy();
      return;
    }
    const meta = { timestamp: new Date().toISOString() };
    const send = (status: number, body: object) =>
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (special) {
      const [status, code] = special;
      const error = { code, issues: [{ path: '', message: 'because', code: 'lease_lost' }] };
      send(status, { success: false, statusCode: status, message: `Refused: ${code}`, error, meta });
      return;
    }
    if (verb === 'content' && call.path.includes('/attachments/')) {
      const content = script.attachments?.[call.path.split('/').at(-2) ?? ''];
      if (content === undefined) {
        const error = {
          code: 'validation_failed',
          issues: [{ path: 'attachmentId', message: 'is gone', code: 'custom' }],
        };
        send(400, { success: false, statusCode: 400, message: 'Refused', error, meta });
      } else res.writeHead(200).end(content);
      return;
    }
    if (verb === 'content') {
      const path = new URL(call.path, 'http://x').searchParams.get('path') ?? '';
      res.writeHead(200).end(script.inputs?.[path]);
      return;
    }
    // An empty pull waits a little, as the real one does.
    if (verb === 'pull' && tasks.length + chats.length === 0 && (counts.get('pull') ?? 0) > 1)
      await new Promise((r) => setTimeout(r, 20));
    const body = data(call);
    if (body) send(200, { success: true, statusCode: 200, message: 'OK', data: body, meta });
    else {
      const error = { code: 'run_lease_expired', issues: [{ path: '', message: 'because', code: 'differs' }] };
      send(409, { success: false, statusCode: 409, message: 'Refused', error, meta });
    }
  }

  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const of = (verb: string) => received.filter((call) => verbOf(call) === verb);
  const bodies = (verb: string) => of(verb).map((call) => JSON.parse(call.body.toString()));
  return { url: `http://127.0.0.1:${port}`, received, of, bodies, reply };
}
