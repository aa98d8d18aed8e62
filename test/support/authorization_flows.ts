// Authorizations as a person goes through them, from the start to where the browser ends.
import type { Integration } from '../../api/integrations/schema.ts';
import { useConnection } from '../../engine/integrations/index.ts';
import { expectSuccess, ownerPath } from './api_fixtures.ts';
import type { TestApp } from './app.ts';
import { openBrowser } from './authorization_server.ts';
import type { TestOrganization } from './fixtures.ts';

export const CONSOLE = 'https://console.example';
export const toConsole = (url: URL) => url.origin === CONSOLE;
export const atIntegrations = (org: Pick<TestOrganization, 'organizationId'>, rest: string) =>
  ownerPath(org, `/integrations${rest}`);

export type Browser = ReturnType<typeof openBrowser>;

/** Where a browser ended. */
export const resultOf = ({ url }: { url: URL }) => ({
  path: `${url.origin}${url.pathname}`,
  ...Object.fromEntries(url.searchParams),
});

/** Where it should end. */
export const ended = (result: string, integration: string) => ({
  path: `${CONSOLE}/integrations/callback`,
  integration,
  result,
});

/** The button of a page. */
export const press = (browser: Browser, page: string, stops = toConsole) => browser.go(page, stops, { method: 'POST' });

export function openFlows(app: TestApp, provider: string) {
  const read = async (org: TestOrganization, key: string = provider) =>
    expectSuccess(await app.owner.get<Integration>(atIntegrations(org, `/${key}`)), 200);

  async function start(org: TestOrganization, body: object = {}, key: string = provider): Promise<string> {
    const path = atIntegrations(org, `/${key}/oauth/${provider}/start`);
    return expectSuccess(await app.owner.post<{ authorizationUrl: string }>(path, body), 200).authorizationUrl;
  }

  return {
    read,
    start,
    create: async (org: TestOrganization, key: string = provider) =>
      expectSuccess(await app.owner.post<Integration>(atIntegrations(org, ''), { key, provider }), 201),
    /** As far as the provider's response: the address of the callback, which nobody has asked for yet. */
    comeBack: async (browser: Browser, page: string) =>
      (await press(browser, page, (url) => url.pathname.endsWith('/callback'))).url,
    authorize: async (org: TestOrganization, body: object = {}, key: string = provider) =>
      resultOf(await press(openBrowser(), await start(org, body, key))),
    verify: async (org: TestOrganization, key: string = provider) => {
      const { id, connection } = await read(org, key);
      return useConnection(
        app.services.integrations,
        { organizationId: org.organizationId, integrationId: id, revision: connection?.revision ?? 0 },
        (open) => open.provider.verify(open.context, open.access),
      );
    },
    revoke: (org: TestOrganization, key: string = provider) =>
      app.owner.delete<Record<string, unknown>>(atIntegrations(org, `/${key}/oauth/${provider}/grant`)),
  };
}
