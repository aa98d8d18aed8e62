import { z } from 'zod';
import { issueText } from '../issue_text.ts';
import type { Access, Discovery, Effect, ProviderContext, Risk, Tool } from './context.ts';
import { ProviderError } from './outgoing/index.ts';

/** What is wrong with an argument. */
export type ArgumentIssue = Readonly<{ path: readonly PropertyKey[]; message: string; code: string }>;

/** A file that a call sends: each `open` reads its bytes anew, and ends in an error where they are not those of `sha256`. */
export type ToolFile = Readonly<{
  name: string;
  contentType: string;
  sizeBytes: number;
  sha256: string;
  open(): Promise<AsyncIterable<Uint8Array>>;
}>;

/** The cursor that a read got is none of its own, or leads further than it reads. */
export class CursorError extends Error {
  override name = 'CursorError';
  /** @param message what is wrong with the cursor, for whoever sent it */
  constructor(message = 'is none of these arguments') {
    super(message);
  }
}

/** There is more than the provider shows of what was asked for. The message says how to ask for less. */
export class TooMuchError extends Error {
  override name = 'TooMuchError';
}

/** The server offers another tool by this name than the one that its owner enabled, or none: nothing was called. */
export class ToolChangedError extends ProviderError {
  override name = 'ToolChangedError';
  /** What the server offers now. */
  readonly discovery: Discovery;
  constructor(provider: string, discovery: Discovery) {
    super(provider, 'failed', 'The server has changed the tool since its owner enabled it.', {
      code: 'tool_changed',
      isRefusal: true,
    });
    this.discovery = discovery;
  }
}

/** What a tool is called with. */
export type ToolCall<A = unknown, C = unknown, S = unknown> = Readonly<{
  /** Its signal ends the call; what it reaches is that of its client. */
  context: ProviderContext;
  access: Access<C, S>;
  /** As the tool's schema reads them. */
  args: A;
}>;

export type ReadCall<A = unknown, C = unknown, S = unknown> = ToolCall<A, C, S> &
  Readonly<{
    /** `nextCursor` of the page before, by the same arguments; undefined: the first page. It comes from the caller. */
    cursor: string | undefined;
  }>;

/** What a read responds with: JSON, and where the tool reads one, a file that is streamed. */
export type ReadResult = Readonly<{
  data: unknown;
  /** Null: there is no more. */
  nextCursor?: string | null | undefined;
  file?: Readonly<{ name: string; contentType: string; body: AsyncIterable<Uint8Array> }>;
}>;

export type WriteCall<A = unknown, C = unknown, S = unknown> = ToolCall<A, C, S> &
  Readonly<{
    /** At providers that take one, the key that keeps it from being done twice; else a marker by which it is looked up. */
    actionId: string;
    /** By argument. */
    files: Readonly<Record<string, ToolFile>>;
  }>;

/**
 * What a look-up shows. `found`: it was done, with the result. `absent`: it was not, where the provider's reads are strong, so that it
 * cannot come later. `none`: it does not show.
 */
export type LookUpResult = Readonly<
  { outcome: 'found'; result: unknown } | { outcome: 'absent' } | { outcome: 'none' }
>;

/** A file argument. */
export type FileRule = Readonly<{
  required?: boolean;
  /** Default: as large as files are. */
  maxBytes?: number;
  /** Media types; default: any. A type of ours whose bytes have a signature is compared with it. */
  contentTypes?: readonly string[];
}>;

/** What a person reads of a proposal besides the arguments. */
export type Proposed<A, S> = Readonly<{
  args: A;
  settings: S | null;
  /** By argument. */
  files: Readonly<Record<string, Pick<ToolFile, 'name' | 'contentType' | 'sizeBytes'>>>;
}>;

type Checks<A, S> = Readonly<{
  /** What of the arguments the settings do not allow, or what a schema cannot say. */
  check?(args: A, settings: S | null): readonly ArgumentIssue[];
}>;

export type Reads<A = unknown, C = unknown, S = unknown> = Checks<A, S> &
  Readonly<{
    effect: 'read';
    /** Sends nothing that changes anything. @throws ProviderError, CursorError, TooMuchError, the signal's reason */
    read(call: ReadCall<A, C, S>): Promise<ReadResult>;
  }>;

export type Writes<A = unknown, C = unknown, S = unknown> = Checks<A, S> &
  Readonly<{
    effect: 'write';
    /** By argument; default: it sends none. */
    files?: Readonly<Record<string, FileRule>>;
    /** Whom, what, how much, where: so that a person can decide by it alone. At most 2,000 characters are kept. */
    summary(proposed: Proposed<A, S>): string;
    /** Of these arguments, where it is higher than the tool's. */
    riskOf?(args: A, settings: S | null): Risk;
    /**
     * Does it, by one request that is sent once. A `ProviderError` of `unavailable` after something was sent says that nobody knows
     * whether it was done; any other one, that it was not.
     * @returns what it is known by at the provider: small, and without secrets
     * @throws ProviderError, the signal's reason
     */
    execute(call: WriteCall<A, C, S>): Promise<unknown>;
    /** Whether it was done, asked after `execute` got no response. Without it nobody but a person can say. @throws ProviderError */
    lookUp?(call: WriteCall<A, C, S>): Promise<LookUpResult>;
  }>;

/** What does a tool, over arguments that are not checked yet. */
export type ToolRuntime = (Reads | Writes) &
  Readonly<{
    /** The arguments as the tool takes them, or what is wrong with them. `settings`: as they are stored. */
    parse(args: unknown, settings: unknown): Readonly<{ args: unknown } | { issues: readonly ArgumentIssue[] }>;
  }>;

/** A tool of ours, with what does it. */
export type OwnTool = Tool & Readonly<{ runtime: ToolRuntime }>;

/** The JSON schema of an input, without the draft that it follows. */
export function inputSchema(shape: z.ZodRawShape): Tool['inputSchema'] {
  const { $schema: _draft, ...schema } = z.toJSONSchema(z.strictObject(shape), { io: 'input' });
  return schema;
}

/** A field that is not known is named by itself. */
function argumentIssues(issue: z.core.$ZodIssue): ArgumentIssue[] {
  const { path, message, code } = issue;
  return issue.code === 'unrecognized_keys'
    ? issue.keys.map((key) => ({ path: [...path, key], message, code }))
    : [{ path, message, code }];
}

type Described<I extends z.ZodRawShape> = Readonly<{
  key: string;
  title: string;
  description: string;
  /** Default: none, any connection. One of them is enough. */
  scopes?: readonly string[];
  input: I;
}>;
type Args<I extends z.ZodRawShape> = z.output<z.ZodObject<I>>;

function ownTool<I extends z.ZodRawShape, E extends Effect>(
  { key, title, description, scopes = [], input }: Described<I>,
  effect: E,
  risk: Risk,
  does: Reads<Args<I>, never, never> | Writes<Args<I>, never, never>,
): OwnTool {
  const schema = z.strictObject(input);
  // What a provider's functions are typed by is what `defineProvider` and `parse` have read.
  const known = does as unknown as Reads | Writes;
  const runtime: ToolRuntime = {
    ...known,
    parse(args, settings) {
      const parsed = schema.safeParse(args, { error: issueText });
      if (!parsed.success) {
        return { issues: parsed.error.issues.flatMap(argumentIssues) };
      }
      const issues = known.check?.(parsed.data, settings) ?? [];
      return issues.length > 0 ? { issues } : { args: parsed.data };
    },
  };
  return { key, title, description, effect, risk, scopes, inputSchema: inputSchema(input), runtime };
}

/** Makes the tools of a provider whose credentials are `C` and whose settings are `S`. */
export function toolsOf<C, S = null>() {
  return {
    read<I extends z.ZodRawShape>(given: Described<I> & Omit<Reads<Args<I>, C, S>, 'effect'>): OwnTool {
      const does = { check: given.check, read: given.read, effect: 'read' };
      return ownTool(given, 'read', 'low', does as Reads<Args<I>, never, never>);
    },
    write<I extends z.ZodRawShape>(
      given: Described<I> & Readonly<{ risk: Risk }> & Omit<Writes<Args<I>, C, S>, 'effect'>,
    ): OwnTool {
      const { check, files, summary, riskOf, execute, lookUp } = given;
      const does = { check, files, summary, riskOf, execute, lookUp, effect: 'write' };
      return ownTool(given, 'write', given.risk, does as Writes<Args<I>, never, never>);
    },
  };
}
