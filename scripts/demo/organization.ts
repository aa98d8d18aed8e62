import { randomUUID } from 'node:crypto';
import { OwnerApiError } from '../owner_call.ts';
import type { OwnerApi } from './owner_api.ts';
import type { Print } from './worker.ts';

/** The demo finds its organization again by this id. */
export const DEMO_ORGANIZATION_ID = '0190de30-0000-7000-8000-00000000de30';
const DEPARTMENTS = ['growth', 'engineering', 'support'];

async function create(api: OwnerApi, id: string, slug: string): Promise<string> {
  return (await api.createOrganization(id, { name: 'Demo Furniture Shop', slug })).id;
}

async function findOrCreate(api: OwnerApi, print: Print): Promise<string> {
  try {
    const organization = await api.getOrganization(DEMO_ORGANIZATION_ID);
    print('using the demo organization of the last run');
    if (organization.workDispatchStoppedAt !== null) {
      await api.resumeDispatch(organization.id);
      print('its work dispatch was stopped; resumed it');
    }
    return organization.id;
  } catch (error) {
    if (!(error instanceof OwnerApiError) || error.status !== 404) throw error;
  }
  try {
    const id = await create(api, DEMO_ORGANIZATION_ID, 'demo');
    print('created the organization Demo Furniture Shop');
    return id;
  } catch (error) {
    if (!(error instanceof OwnerApiError) || error.status !== 409) throw error;
    // The id of a deleted organization stays in use until its rows are removed; the slug may be taken.
    const id = randomUUID();
    await create(api, id, `demo-${id.slice(0, 8)}`);
    print('created another organization Demo Furniture Shop: the first is deleted, or its slug is taken');
    return id;
  }
}

/** Finds or creates the demo organization and its agent profiles. Returns its id. */
export async function demoOrganization(api: OwnerApi, print: Print): Promise<string> {
  const id = await findOrCreate(api, print);
  const { profiles } = await api.provision(id, DEPARTMENTS);
  print(`agents: ${profiles.map((profile) => profile.name).join(', ')}`);
  return id;
}
