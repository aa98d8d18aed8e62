import { Readable } from 'node:stream';
import type { Storage } from '../../engine/storage/storage.ts';
import { type Onboarding, onboardingIn, read } from './onboarding_fixtures.ts';
import type { Sql } from './transitions.ts';

/** The decisions on onboardings for the test of the audit log: each call, ready to be made, and what its entry says. */
export function onboardingDecisions(sql: Sql, storage: Storage, own: (organizationId: string) => Promise<unknown>) {
  /** An onboarding whose sources are stored, as its completion looks at them. */
  async function onboarded(status: string): Promise<Onboarding & { base: string }> {
    const onboarding = await onboardingIn(sql, status);
    const organizationId = onboarding.organization_id;
    await own(organizationId);
    const { rows } = await sql.owner.query<{ storage_key: string }>(
      'select storage_key from app.context_sources where organization_id = $1',
      [organizationId],
    );
    for (const { storage_key: key } of rows) await storage.put(key, Readable.from([Buffer.from('plan')]));
    return { ...(await read(sql, { organizationId })), base: `/organizations/${organizationId}/onboarding` };
  }

  return {
    async createOnboarding() {
      const body = { name: 'Acme', timezone: 'UTC' };
      return {
        organizationId: '',
        path: '/organization-onboardings',
        body,
        entry: { action: 'onboarding.create', arguments: body },
      };
    },
    async updateOnboardingSetup() {
      const { organization_id: organizationId, base, generation } = await onboarded('collecting');
      const body = { expectedGeneration: generation, summary: 'Lamps' };
      const entry = {
        action: 'onboarding.setup',
        subject_kind: 'onboarding',
        subject_id: organizationId,
        arguments: body,
      };
      return { organizationId, path: `${base}/setup`, body, entry };
    },
    async putOnboardingDisposition() {
      const { organization_id: organizationId, base, generation } = await onboarded('collecting');
      const body = { expectedGeneration: generation, disposition: 'connect_later' };
      const entry = {
        action: 'onboarding.disposition',
        arguments: { integrationKey: 'crm', disposition: 'connect_later' },
      };
      return { organizationId, path: `${base}/integrations/crm/disposition`, body, entry };
    },
    async startOnboarding() {
      const { organization_id: organizationId, base } = await onboarded('collecting');
      return {
        organizationId,
        path: `${base}/start`,
        entry: { action: 'onboarding.start', subject_id: organizationId },
      };
    },
    async retryOnboardingResearch() {
      const { organization_id: organizationId, base, generation } = await onboarded('research_failed');
      const body = { expectedGeneration: generation };
      return { organizationId, path: `${base}/public-research/retry`, body, entry: { action: 'onboarding.retry' } };
    },
    async completeOnboarding() {
      const { organization_id: organizationId, base, review } = await onboarded('review');
      const body = { reviewSha256: review?.sha256, allowWarnings: true };
      const entry = { action: 'onboarding.complete', subject_id: organizationId, arguments: body };
      return { organizationId, path: `${base}/complete`, body, entry };
    },
    async discardOnboarding() {
      const { organization_id: organizationId, base: path } = await onboarded('review');
      return { organizationId, path, entry: { action: 'onboarding.discard', subject_id: organizationId } };
    },
  };
}
