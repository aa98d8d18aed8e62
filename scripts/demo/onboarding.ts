import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OwnerApiError } from '../owner_call.ts';
import type { DemoOnboarding, OwnerApi } from './owner_api.ts';
import { EXAMPLES } from './tasks.ts';
import { DemoError } from './watch.ts';
import { serveWebsite } from './website.ts';
import type { Print } from './worker.ts';

const POLL_INTERVAL_MS = 200;
const NAME = 'Demo Lamp Studio';
const SOURCES = [
  { name: 'handbook.md', type: 'text/markdown', kind: 'markdown' },
  { name: 'sales.csv', type: 'text/csv', kind: 'file', department: 'growth' },
] as const;

async function create(api: OwnerApi): Promise<DemoOnboarding | undefined> {
  const body = { name: NAME, slug: 'demo-lamp-studio', timezone: 'Europe/Berlin', departments: ['growth', 'support'] };
  return api.createOnboarding(body).catch((error: unknown) => {
    if (error instanceof OwnerApiError && error.status === 409) return undefined;
    throw error;
  });
}

async function waitForResearch(api: OwnerApi, id: string, deadline: number): Promise<DemoOnboarding> {
  for (;;) {
    const now = await api.getOnboarding(id);
    if (now.status !== 'researching') return now;
    if (performance.now() > deadline) {
      throw new DemoError(`The research of ${NAME} has not finished. Are the jobs running (node jobs/main.ts)?`);
    }
    await sleep(POLL_INTERVAL_MS);
  }
}

function printResearch(print: Print, { research, review }: DemoOnboarding): void {
  for (const finding of research.findings) print(`  found: ${finding.claim}`);
  for (const { code, message } of review?.warnings ?? []) {
    print(`  warning: ${message}`);
    if (code !== 'website_refused') continue;
    print(
      '  (the demo serves it on this machine; start with ALLOW_PRIVATE_ADDRESSES=1 npm start to let the research read it)',
    );
  }
}

/**
 * Onboards a second organization: a website that the demo serves, two source files, research, review and completion.
 * Returns the paths to look at; none when an earlier run has onboarded it.
 * @throws DemoError when the research fails or has not finished by `deadline`; the onboarding is then discarded
 */
export async function demoOnboarding(
  api: OwnerApi,
  { print, deadline }: Readonly<{ print: Print; deadline: number }>,
): Promise<readonly string[]> {
  const created = await create(api);
  if (created === undefined) {
    print(`${NAME} is already onboarded`);
    return [];
  }
  const id = created.organizationId;
  const website = await serveWebsite();
  try {
    print(`onboarding ${NAME}, whose website this demo serves meanwhile`);
    await api.updateSetup(id, { expectedGeneration: created.generation, website: website.origin });
    for (const source of SOURCES) {
      await api.putSource(id, { id: randomUUID(), ...source }, await readFile(path.join(EXAMPLES, source.name)));
      print(`  source: ${source.name}`);
    }
    await api.startOnboarding(id);
    const researched = await waitForResearch(api, id, deadline);
    if (researched.status !== 'review' || !researched.review) {
      throw new DemoError(`The research of ${NAME} failed: ${researched.research.error?.message ?? researched.status}`);
    }
    printResearch(print, researched);
    const review = { reviewSha256: researched.review.sha256, allowWarnings: researched.review.warnings.length > 0 };
    await api.completeOnboarding(id, review);
    print(`${NAME} is active, with a context made from its sources`);
    return [`/organizations/${id}/onboarding`, `/organizations/${id}/context/summary`];
  } catch (error) {
    await api.discardOnboarding(id).catch(() => {});
    throw error;
  } finally {
    website.close();
  }
}
