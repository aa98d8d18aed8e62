import type { ChatClaim, Claim, WorkerApi } from './api.ts';
import type { ReplyWriter } from './chat_writer.ts';
import type { CommandGate } from './command_gate.ts';
import type { HeldLease } from './lease.ts';
import type { WorkerOptions } from './options.ts';
import type { LogShipper } from './progress.ts';
import type { Workspace } from './workspace.ts';

/** What every run of this worker uses. */
export type WorkerContext = Readonly<{
  api: WorkerApi;
  options: WorkerOptions;
  /** Prints one line for the person who watches the worker. */
  print: (line: string) => void;
  /** Aborted when the worker has to end at once: its runs are handed back. */
  stop: AbortSignal;
  /** Whether the command of the worker can be started. */
  gate: CommandGate;
}>;

/** Sends a call again until it gets a response or the lease is over; ends at once when the run has to stop. */
export type SendUnderLease = <T>(call: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** A run of a task under its lease. */
export type TaskRun = Readonly<{
  claim: Claim;
  held: HeldLease;
  logs: LogShipper;
  workspace: Workspace;
  executionToken: string;
  worker: WorkerContext;
  send: SendUnderLease;
}>;

/** A chat turn under its lease, and the writer of its reply. */
export type ChatTurn = Readonly<{
  name: string;
  claim: ChatClaim;
  held: HeldLease;
  writer: ReplyWriter;
  executionToken: string;
  worker: WorkerContext;
  /** Aborted as soon as whatever makes the reply has to stop. */
  signal: AbortSignal;
  send: SendUnderLease;
}>;
