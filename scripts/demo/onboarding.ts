import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DemoOnboarding, type OwnerApi, OwnerApiError } from './owner_api.ts';
import { DemoError } from './watch.ts';
import { serveWebsite } from './website.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../examples');
const EVERY_MS = 200;
const NAME = 'Demo Lamp Studio';
const SOURCES = [
  { name: 'handbook.md', type: 'text/markdown', kind: 'markdown' },
  { name: 'sales.csv', type: 'text/csv', kind: 'file', department: 'growth' },
] as const;

type Say = (line: string) => void;

async function create(api: OwnerApi): Promise<DemoOnboarding | undefined> {
  const body = { name: NAME, slug: 'demo-lamp-studio', timezone: 'Europe/Berlin', departments: ['growth', 'support'] };
  return api.createOnboarding(body).catch((error: unknown) => {
    if (error instanceof OwnerApiError && error.status === 409) return undefined;
    throw error;
  });
}

async function researched(api: OwnerApi, id: string, deadline: number): Promise<DemoOnboarding> {
  for (;;) {
    const now = await api.getOnboarding(id);
    if (now.status !== 'researching') return now;
    if (performance.now() > deadline) {
      throw new DemoError(`The research of ${NAME} is not over yet. Do the jobs run (node jobs/main.ts)?`);
    }
    await sleep(EVERY_MS);
  }
}

function tell(say: Say, { research, review }: DemoOnboarding): void {
  for (const finding of research.findings) say(`  found: ${finding.claim}`);
  for (const { code, message } of review?.warnings ?? []) {
    say(`  warning: ${message}`);
    if (code !== 'website_refused') continue;
    say('  (the demo serves it on this machine; ALLOW_PRIVATE_ADDRESSES=1 npm start lets the research read it)');
  }
}

/**
 * A second organization, onboarded: a website that the demo serves itself, two source files, research, review and
 * completion. Returns the paths to look at, none when an earlier run has made it.
 * @throws DemoError when the research fails or is not over by `deadline`; the onboarding is discarded then
 */
export async function demoOnboarding(
  api: OwnerApi,
  { say, deadline }: Readonly<{ say: Say; deadline: number }>,
): Promise<readonly string[]> {
  const created = await create(api);
  if (created === undefined) {
    say(`${NAME} was onboarded last time`);
    return [];
  }
  const id = created.organizationId;
  const website = await serveWebsite();
  try {
    say(`onboarding ${NAME}, whose website this demo serves for the moment`);
    await api.updateSetup(id, { expectedGeneration: created.generation, website: website.origin });
    for (const source of SOURCES) {
      await api.putSource(id, { id: randomUUID(), ...source }, await readFile(path.join(EXAMPLES, source.name)));
      say(`  source: ${source.name}`);
    }
    await api.startOnboarding(id);
    const over = await researched(api, id, deadline);
    if (over.status !== 'review' || !over.review) {
      throw new DemoError(`The research of ${NAME} failed: ${over.research.error?.message ?? over.status}`);
    }
    tell(say, over);
    const review = { reviewSha256: over.review.sha256, allowWarnings: over.review.warnings.length > 0 };
    await api.completeOnboarding(id, review);
    say(`${NAME} is active, and knows what its sources say`);
    return [`/organizations/${id}/onboarding`, `/organizations/${id}/context/summary`];
  } catch (error) {
    await api.discardOnboarding(id).catch(() => {});
    throw error;
  } finally {
    website.close();
  }
}
