import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ApiError } from './api.ts';
import type { TurnReport } from './chat_report.ts';
import type { Conversation, Part } from './chat_schemas.ts';
import { askedText } from './chat_text.ts';
import { runCommand } from './command.ts';
import type { ChatTurn } from './context.ts';
import { runEnvironment } from './environment.ts';
import { commandFailure } from './report.ts';
import { ResultError, readResultFile, readUsage, type Usage } from './result_files.ts';
import { makeFolders, removeWorkspace, type Workspace, workspaceAt, writeInput } from './workspace.ts';

/** Of all attachments together, the latest first; the rest is named, and not downloaded. */
const MAX_ATTACHMENT_BYTES = 256 * 1024 * 1024;

const resultSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('completed'),
    parts: z.array(z.looseObject({ kind: z.string() })).optional(),
    summary: z.string().optional(),
    harnessSessionId: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal('failed'), code: z.string(), message: z.string(), retryable: z.boolean() }),
]);

/** Where an attachment lies in the folder of the turn: by its id, because file names are arbitrary. */
function attachmentPath({ attachmentId, fileName }: Part): string {
  const extension = path.extname(fileName ?? '').toLowerCase();
  return `${attachmentId}${/^\.[a-z0-9]{1,10}$/.test(extension) ? extension : ''}`;
}

/** Downloads the attachments. Returns the path of each by its id; one whose bytes are gone is left out. */
async function fetchAttachments(turn: ChatTurn, conversation: Conversation, workspace: Workspace) {
  const { worker, held } = turn;
  const found = new Map<string, string>();
  const parts = conversation.messages.flatMap((message) => message.parts).filter((part) => part.kind === 'attachment');
  let left = MAX_ATTACHMENT_BYTES;
  for (const part of parts.reverse()) {
    const { attachmentId = '', sizeBytes = 0, mediaType = '' } = part;
    if (found.has(attachmentId) || sizeBytes > left) continue;
    const input = { path: attachmentPath(part), mediaType, sizeBytes, available: true };
    try {
      await turn.send(async (signal) => {
        // A large file takes its time: the lease is what limits it.
        const call = { signal, timeoutMs: 3_600_000 };
        const content = await worker.api.attachmentContent(held.lease, attachmentId, call);
        await writeInput(workspace, input, content, signal);
      });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      worker.print(`${turn.name}  without ${part.fileName}: ${error.message}`);
      continue;
    }
    left -= sizeBytes;
    found.set(attachmentId, path.relative(workspace.root, path.join(workspace.inputs, input.path)));
  }
  return found;
}

/** Writes the conversation and the message to reply to, as JSON and as text. */
async function describeTurn(turn: ChatTurn, conversation: Conversation, workspace: Workspace): Promise<void> {
  const files = await fetchAttachments(turn, conversation, workspace);
  const messages = conversation.messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => ({
      ...part,
      ...(part.kind === 'attachment' ? { path: files.get(part.attachmentId ?? '') ?? null } : {}),
    })),
  }));
  const write = (name: string, text: string) => writeFile(path.join(workspace.root, name), `${text}\n`);
  const { organizationId, attempt, agentProfile, chat } = turn.claim;
  const { runId } = turn.held.lease;
  await write('conversation.json', JSON.stringify({ ...conversation, messages }, null, 2));
  await write(
    'run.json',
    JSON.stringify({ organizationId, runId, attempt, mode: 'chat', agentProfile, chat }, null, 2),
  );
  await write('message.txt', askedText(conversation));
}

async function run(turn: ChatTurn, workspace: Workspace) {
  const { worker, writer, name } = turn;
  // UTF-8 may be cut anywhere.
  const decoder = new TextDecoder();
  const end = await runCommand({
    command: worker.options.command,
    cwd: workspace.root,
    environment: runEnvironment(worker.options, workspace, {
      organizationId: turn.claim.organizationId,
      runId: turn.held.lease.runId,
      executionToken: turn.executionToken,
      mode: 'chat',
    }),
    timeoutMs: worker.options.timeoutMs,
    signal: turn.signal,
    onLine: (line) => worker.print(`${name}  | ${line}`),
    onStarted: worker.gate.works,
    onOutput: (chunk) => writer.append(decoder.decode(chunk, { stream: true })),
  });
  writer.append(decoder.decode());
  worker.gate.ended(end.exitCode);
  return end;
}

/** The result file decides; without one the exit status does. */
async function reportOf(turn: ChatTurn, workspace: Workspace): Promise<TurnReport> {
  const end = await run(turn, workspace);
  if (end.timedOut) {
    const message = `The command took longer than ${turn.worker.options.timeoutMs / 1000} s`;
    return { kind: 'fail', code: 'command_timeout', message, retryable: true };
  }
  const result = await readResultFile(workspace.resultFile, resultSchema);
  if (result.kind === 'failed') return { ...result, kind: 'fail' };
  if (end.exitCode !== 0) return commandFailure(end, turn.held, turn.worker);
  const { parts, summary, harnessSessionId } = result;
  return {
    kind: 'complete',
    ...(parts ? { parts } : {}),
    ...(summary ? { summary } : {}),
    ...(harnessSessionId ? { harnessSessionId } : {}),
  };
}

/** The usage also of a failed turn; an invalid usage file does not hide why it failed. */
async function usageOf(workspace: Workspace, report: TurnReport): Promise<{ usage?: Usage }> {
  try {
    return { usage: await readUsage(workspace.usageFile) };
  } catch (error) {
    if (report.kind === 'complete' || !(error instanceof ResultError)) throw error;
    return {};
  }
}

/** Replies with what the command writes to its standard output, while it writes. */
export async function replyByCommand(turn: ChatTurn, conversation: Conversation): Promise<TurnReport> {
  const { options } = turn.worker;
  const workspace = workspaceAt(options.scratch, turn.held.lease.runId);
  try {
    await makeFolders(workspace);
    await describeTurn(turn, conversation, workspace);
    const report = await reportOf(turn, workspace);
    return { ...report, ...(await usageOf(workspace, report)) };
  } finally {
    if (!options.keep) await removeWorkspace(workspace);
  }
}
