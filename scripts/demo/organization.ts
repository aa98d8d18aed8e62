import { randomUUID } from 'node:crypto';
import { type OwnerApi, OwnerApiError } from './owner_api.ts';

/** The demo finds its organization again by this id. */
export const DEMO_ORGANIZATION_ID = '0190de30-0000-7000-8000-00000000de30';
const DEPARTMENTS = ['growth', 'engineering', 'support'];

async function create(api: OwnerApi, id: string, slug: string): Promise<string> {
  return (await api.createOrganization(id, { name: 'Demo Furniture Shop', slug })).id;
}

async function findOrCreate(api: OwnerApi, say: (line: string) => void): Promise<string> {
  try {
    const organization = await api.getOrganization(DEMO_ORGANIZATION_ID);
    say('using the demo organization of last time');
    if (organization.workDispatchStoppedAt !== null) {
      await api.resumeDispatch(organization.id);
      say('its work dispatch was stopped: resumed');
    }
    return organization.id;
  } catch (error) {
    if (!(error instanceof OwnerApiError) || error.status !== 404) throw error;
  }
  try {
    const id = await create(api, DEMO_ORGANIZATION_ID, 'demo');
    say('created the organization Demo Furniture Shop');
    return id;
  } catch (error) {
    if (!(error instanceof OwnerApiError) || error.status !== 409) throw error;
    // The id stays in use while a deleted organization is being removed, and someone may have the slug.
    const id = randomUUID();
    await create(api, id, `demo-${id.slice(0, 8)}`);
    say('created another organization Demo Furniture Shop, the first was deleted or its name is taken');
    return id;
  }
}

/** The demo organization with its agent profiles, made or found again. Returns its id. */
export async function demoOrganization(api: OwnerApi, say: (line: string) => void): Promise<string> {
  const id = await findOrCreate(api, say);
  const { profiles } = await api.provision(id, DEPARTMENTS);
  say(`agents: ${profiles.map((profile) => profile.name).join(', ')}`);
  return id;
}
