import { z } from 'zod';

/** What a worker of the fault test is started with: JSON, its one argument. */
export const workerSettings = z.object({
  kind: z.enum(['chaotic', 'reference', 'chat']),
  workerId: z.string(),
  urls: z.array(z.string()).min(1),
  token: z.string(),
  seed: z.string(),
  /** A folder of its own. */
  scratch: z.string(),
});
export type WorkerSettings = z.output<typeof workerSettings>;

/** What it tells, a line of JSON each: written before it does anything else, so that a kill does not lose it. */
export const workerReport = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('started'), organizationId: z.string(), runId: z.string(), attempt: z.int() }),
  z.object({ kind: z.literal('ended'), organizationId: z.string(), runId: z.string(), status: z.string() }),
  z.object({ kind: z.literal('did'), what: z.string() }),
  z.object({ kind: z.literal('violation'), rule: z.string(), what: z.unknown() }),
]);
export type WorkerReport = z.output<typeof workerReport>;
export type Report = (report: WorkerReport) => void;

/** The input that each task carries, and the output that its acceptance criterion asks for. */
export const INPUT_PATH = 'expected.json';
export const OUTPUT_PATH = 'result.json';

/** What the output holds: the title of the task, and the run that made it where the worker knows it. */
export const outputContent = z.object({ title: z.string(), runId: z.string().optional() });

const CHAT_WORDS = 12;

/** The command that replies in chats: the question, and some words that take longer than a fault. */
export const CHAT_COMMAND = `head -n 1 message.txt; i=1; while [ $i -le ${CHAT_WORDS} ]; do printf 'word %d, ' $i; sleep 0.1; i=$((i + 1)); done`;

/** What it replies to a question. */
export function chatReply(question: string): string {
  return `${question}\n${Array.from({ length: CHAT_WORDS }, (_, index) => `word ${index + 1}, `).join('')}`;
}
