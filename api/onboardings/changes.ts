import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { DISPOSITIONS } from '../../engine/onboarding/index.ts';
import { revision } from '../agent_profiles/changes.ts';
import { timeZone } from '../fields/time_zone.ts';
import { SLUG, unique, WORDS } from '../organizations/changes.ts';
import { DEPARTMENTS, department } from '../organizations/schema.ts';

const name = z.string().trim().min(1).max(200);
const departments = unique(department, DEPARTMENTS.length);
const currency = z.string().regex(/^[A-Z]{3}$/, 'must be three upper-case letters such as EUR');

/** A domain as people type it: with a dot, perhaps a port and a path, and without a scheme. */
const BARE_DOMAIN = /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+(?::\d+)?(?:[/?#]|$)/u;
const withScheme = (text: string) => (BARE_DOMAIN.test(text) ? `https://${text}` : text);

const website = z
  .string()
  .trim()
  .max(2_000)
  .refine((text) => {
    const url = URL.parse(withScheme(text));
    return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  }, 'must be an address such as https://example.com, without user name and password')
  .describe('`example.com` is read as `https://example.com/`.')
  .pipe(mapping((text) => new URL(withScheme(text)).href));

const expectedGeneration = z
  .int()
  .min(1)
  .max(2_147_483_647)
  .describe('The `generation` that the change is based on. 409 if it is not the current one.');

/** Shape A: all of it is required, and nothing else is known. */
const withSlug = z.strictObject({ name, slug: z.string().max(63).regex(SLUG, WORDS), timezone: timeZone, departments });

/** Shape B: the slug follows from the name, and every department is enabled. */
const withWebsite = z.strictObject({
  name,
  website: website.optional(),
  timezone: timeZone.optional().describe('`UTC`, the default, or an IANA name such as Europe/Berlin; no abbreviation.'),
  defaultCurrency: currency.optional(),
});

export const newOnboardingSchema = z.union([withSlug, withWebsite]).meta({
  id: 'NewOnboarding',
  description:
    'With `slug`, all four fields are required. Without it the slug is derived from the name, and every department is enabled.',
});

/** Body of the setup update: a merge patch with the generation. */
export const setupPatchSchema = z
  .strictObject({
    expectedGeneration,
    name: name.optional(),
    website: website.nullable().optional(),
    timezone: timeZone.optional(),
    defaultCurrency: currency.nullable().optional(),
    departments: departments
      .optional()
      .describe('The departments that get a profile when the onboarding is completed.'),
    summary: z.string().trim().min(1).max(10_000).nullable().optional().describe('What the organization does.'),
  })
  .meta({ id: 'OnboardingSetupPatch', description: 'A JSON merge patch (RFC 7396): null removes a field.' });

export const integrationKey = z.string().max(100).regex(SLUG, WORDS).describe('The integration.');

export const dispositionBody = z
  .strictObject({
    expectedGeneration,
    disposition: z.enum(DISPOSITIONS),
    departments: departments.default([]).describe('The departments that will use it. Empty: all.'),
  })
  .meta({ id: 'OnboardingDisposition' });

export const researchRetryBody = z.strictObject({ expectedGeneration }).meta({ id: 'OnboardingResearchRetry' });

export const completionBody = z
  .strictObject({
    reviewSha256: revision.describe('`review.sha256` of the review that was confirmed.'),
    allowWarnings: z.boolean().default(false).describe('True is required if the review has warnings.'),
  })
  .meta({ id: 'OnboardingCompletion' });
