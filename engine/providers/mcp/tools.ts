import { z } from 'zod';
import { canonicalJson, canonicalSha256 } from '../../canonical_json.ts';
import { storableFault, storableText } from '../../storable.ts';
import type { Tool } from '../provider.ts';
import { SchemaError, safeSchema } from './schema.ts';

const MAX_SCHEMA_BYTES = 64 * 1024;
const MAX_NAME = 128;

const offered = z.looseObject({
  name: z.string().regex(/^[A-Za-z0-9_./-]{1,128}$/),
  title: z.string().max(200).optional(),
  description: z.string().max(20_000).optional(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
});

export type ToolProblem = 'not_a_tool' | 'not_storable' | 'schema_too_large' | SchemaError['problem'];
export type OfferedTool = Readonly<{
  name: string;
  title: string | null;
  problem: ToolProblem | null;
  tool: Tool | null;
}>;

function toolOf({ name, title, description, inputSchema }: z.output<typeof offered>, digest: string): Tool {
  const schema = safeSchema(inputSchema);
  return {
    key: name,
    title: title ?? name,
    description: description ?? '',
    // What a server says of its tools' effects are hints of a stranger: an owner decides.
    effect: 'write',
    risk: 'external',
    scopes: [],
    inputSchema: typeof schema === 'boolean' ? { type: 'object' } : schema,
    digest,
  };
}

/** A tool as a server offers it, as one of ours; with a problem it cannot be enabled. */
export function readTool(given: unknown): OfferedTool {
  const unusable = (problem: ToolProblem): OfferedTool => {
    const { name = '' } = z.object({ name: z.string() }).safeParse(given).data ?? {};
    return { name: storableText(name.slice(0, MAX_NAME)), title: null, problem, tool: null };
  };
  // Of all that it says: the digest is of fields too that are not kept.
  const fault = storableFault(given);
  if (fault) return unusable(fault.code === 'too_deep' ? 'too_deep' : 'not_storable');
  const result = offered.safeParse(given);
  if (!result.success) return unusable('not_a_tool');
  const { name, title = null, inputSchema } = result.data;
  const failed = (problem: ToolProblem): OfferedTool => ({ name, title, problem, tool: null });
  if (Buffer.byteLength(canonicalJson(inputSchema)) > MAX_SCHEMA_BYTES) return failed('schema_too_large');
  try {
    return { name, title, problem: null, tool: toolOf(result.data, canonicalSha256(given)) };
  } catch (error) {
    if (error instanceof SchemaError) return failed(error.problem);
    throw error;
  }
}
