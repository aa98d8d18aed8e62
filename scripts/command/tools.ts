import { plain } from '../terminal.ts';
import type { AgentContext } from './agent.ts';
import { EXIT, type Exit } from './errors.ts';
import { fieldLines, type Output } from './output.ts';
import { type AgentIntegration, agentIntegrationSchema, agentStatusSchema, type Capability } from './schemas.ts';

const MOST = 1_000;

type Calls = Pick<AgentContext, 'api' | 'home'>;
type Schema = Readonly<Record<string, unknown>>;

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null;

async function epochOf({ api, home }: Calls): Promise<number> {
  return (await api.get(agentStatusSchema, `${home}/status`)).organization.authorizationEpoch;
}

/** What the profile of the run may use, and what it may not. */
export async function integrationsOf(calls: Calls): Promise<AgentIntegration[]> {
  const authorizationEpoch = await epochOf(calls);
  return calls.api.list(agentIntegrationSchema, `${calls.home}/integrations`, { authorizationEpoch }, MOST);
}

/** @throws CommandError where there is none */
export async function integrationOf(calls: Calls, key: string): Promise<AgentIntegration> {
  const authorizationEpoch = await epochOf(calls);
  const path = `${calls.home}/integrations/${encodeURIComponent(key)}?authorizationEpoch=${authorizationEpoch}`;
  return calls.api.get(agentIntegrationSchema, path);
}

/** The arguments of a tool by name. */
export function argumentsOf({ inputSchema }: Pick<Capability, 'inputSchema'>): Map<string, Schema> {
  const { properties } = inputSchema;
  if (!isSchema(properties)) return new Map();
  return new Map(Object.entries(properties).map(([name, schema]) => [name, isSchema(schema) ? schema : {}]));
}

/** "string", "integer", … as the schema says; empty where it says nothing simple. */
export function typesOf(schema: Schema): string[] {
  const { type, anyOf, oneOf } = schema;
  const own = [type].flat().filter((one) => typeof one === 'string');
  const others = [anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list.filter(isSchema) : []));
  return [...own, ...others.flatMap(typesOf)];
}

function argumentText(name: string, schema: Schema, isRequired: boolean): string {
  const { description, enum: values, default: fallback } = schema;
  const types = Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : typesOf(schema);
  const notes = [types.join(' or '), isRequired ? 'required' : ''].filter((note) => note !== '');
  const or = fallback === undefined ? '' : ` (default ${JSON.stringify(fallback)})`;
  const says = typeof description === 'string' ? `: ${description}` : '';
  return `${name}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}${says}${or}`;
}

/** Nobody decides about a read, whatever a provider's tools are counted as. */
const riskOf = ({ effect, risk }: Capability): string => (effect === 'write' ? risk : '');

function printTool({ line, columns }: Output, capability: Capability): void {
  const { tool, effect, inputSchema } = capability;
  const risk = riskOf(capability);
  line(`  ${tool}  ${effect}${risk === '' ? '' : `, risk ${risk}`}`, 'bold');
  const required = Array.isArray(inputSchema['required']) ? inputSchema['required'] : [];
  for (const [name, schema] of argumentsOf(capability)) {
    const text = argumentText(name, schema, required.includes(name));
    for (const part of fieldLines('', plain(text), columns)) line(part);
  }
}

const sentenceOf = ({ available, unavailableReason, capabilities }: AgentIntegration) =>
  available
    ? `${capabilities.length} ${capabilities.length === 1 ? 'tool' : 'tools'}`
    : `not available: ${unavailableReason}`;

async function showOne(context: AgentContext, key: string): Promise<void> {
  const { output } = context;
  const found = await integrationOf(context, key);
  if (output.json) return output.value(found);
  output.line(`${found.key}  ${found.name} (${found.provider}): ${sentenceOf(found)}`);
  for (const capability of found.capabilities) printTool(output, capability);
}

async function listAll(context: AgentContext): Promise<void> {
  const { output } = context;
  const found = await integrationsOf(context);
  if (output.json) return output.value(found);
  const columns = [
    { title: 'KEY', align: 'left' },
    { title: 'TOOL', align: 'left', flexible: true },
    { title: 'EFFECT', align: 'left' },
    { title: 'RISK', align: 'left' },
  ] as const;
  const rows = found.flatMap((one) => {
    if (one.capabilities.length === 0) return [[one.key, `(${sentenceOf(one)})`, '', '']];
    return one.capabilities.map((each) => [one.key, each.tool, each.effect, riskOf(each)]);
  });
  output.table({ columns, rows }, 'no integrations');
}

/** The integrations, or the tools of one with their arguments. */
export async function tools(context: AgentContext, [key]: readonly string[]): Promise<Exit> {
  if (key === undefined) await listAll(context);
  else await showOne(context, key);
  return EXIT.done;
}
