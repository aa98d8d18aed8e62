import { z } from 'zod';
import { canonicalSha256 } from '../canonical_json.ts';

const key = z
  .string()
  .max(100)
  .regex(/^[a-z0-9]+(?:[.-][a-z0-9]+)*$/, 'must be lower-case words joined by - or .');

// As app.agent_profiles takes them.
const profileKey = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be lower-case words joined by -');

const keys = z
  .array(key)
  .max(200)
  .refine((list) => new Set(list).size === list.length, 'names a key twice')
  .meta({ id: 'TemplateKeys', description: 'Each key once.' });

const config = z
  .strictObject({
    defaultRunMode: z.enum(['plan', 'execute', 'verify']),
    maxConcurrentRuns: z.int().min(1).max(1000),
    toolPolicyKeys: keys,
    runtime: z.strictObject({ model: z.string().min(1).max(200), reasoningEffort: z.enum(['low', 'medium', 'high']) }),
  })
  .meta({ id: 'TemplateConfig' });

const base = {
  key: profileKey,
  name: z.string().trim().min(1).max(200),
  summary: z.string().trim().min(1).max(2000),
  skillKeys: keys,
  mcpServerKeys: keys,
  config,
};

export const catalogProfileSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...base, kind: z.literal('operator') }),
  z.strictObject({ ...base, kind: z.literal('chat') }),
  z.strictObject({
    ...base,
    kind: z.literal('department'),
    department: z.enum(['growth', 'engineering', 'support']),
  }),
]);

/** The template catalog (docs/interface.md 2.4): what agent profiles are provisioned from. */
export const catalogSchema = z
  .strictObject({
    version: z.int().min(1),
    commonSkillKeys: keys,
    commonMcpServerKeys: keys,
    profiles: z.array(catalogProfileSchema).min(2).max(100),
  })
  .check((context) => {
    const { profiles } = context.value;
    const refuse = (message: string, ...path: (string | number)[]) => {
      context.issues.push({ code: 'custom', path: ['profiles', ...path], message, input: profiles });
    };
    for (const kind of ['operator', 'chat']) {
      if (profiles.filter((profile) => profile.kind === kind).length !== 1) refuse(`needs exactly one ${kind} profile`);
    }
    for (const [index, profile] of profiles.entries()) {
      const first = profiles.findIndex((other) => other.key === profile.key);
      if (first !== index) refuse(`is the key of profile ${first} already`, index, 'key');
    }
  });

export type Catalog = z.output<typeof catalogSchema>;
export type CatalogProfile = z.output<typeof catalogProfileSchema>;

/** The name of a catalog: the SHA-256 of its canonical JSON, so that the same content is the same revision everywhere. */
export function catalogRevision(catalog: Catalog): string {
  return canonicalSha256(catalog);
}
