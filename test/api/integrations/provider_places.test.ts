// The places where a provider is named (engine/providers/README.md): it is in all of them, or this fails.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { z } from 'zod';
import { apiEndpoints } from '../../../api/app.ts';
import { credentialBody, newIntegrationSchema } from '../../../api/integrations/changes.ts';
import { credentialExamples, newIntegrationExamples, settingsExamples } from '../../../api/integrations/examples.ts';
import { integrationSettings } from '../../../engine/integration_settings.ts';
import { CONNECTION_KINDS } from '../../../engine/integration_states.ts';
import { deploymentClient, requireDeploymentClient } from '../../../engine/integrations/authorization.ts';
import { providers } from '../../../engine/providers/index.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';

const folder = path.join(import.meta.dirname, '../../../engine/providers');
const all = [...providers.values()];
const keys = [...providers.keys()];
/** A person sends these; tokens come from an authorization. */
const isSent = (kind: string) => kind !== 'oauth1' && kind !== 'oauth2';

t.test('each folder of a provider has its line in the list', (test) => {
  const defining = readdirSync(folder).filter((name) => {
    const index = path.join(folder, name, 'index.ts');
    return existsSync(index) && readFileSync(index, 'utf8').includes('= defineProvider(');
  });
  test.same(defining, keys);
  test.end();
});

t.test('each kind of connection is one of a provider, and a person can send it', (test) => {
  const kinds = [...new Set(all.flatMap(({ connections }) => connections))];
  test.same([...CONNECTION_KINDS].sort(), kinds.toSorted(), 'engine/integration_states.ts');
  const sent = credentialBody.options.map(({ shape }) => shape.kind.value);
  test.same(sent.toSorted(), kinds.filter(isSent).sort(), 'api/integrations/changes.ts');
  test.end();
});

t.test('each provider has examples, which are its own', (test) => {
  test.same(Object.keys(newIntegrationExamples), keys);
  for (const [key, example] of Object.entries(newIntegrationExamples)) {
    test.equal(newIntegrationSchema.parse(example).provider, key);
  }
  const given: Readonly<Record<string, Readonly<{ kind: string }>>> = credentialExamples;
  const connected = all.filter(({ connections }) => connections.some(isSent));
  test.same(
    Object.keys(given),
    connected.map(({ key }) => key),
  );
  const withSettings = all.filter(({ settings }) => settings !== null);
  test.same(
    settingsExamples.map(({ kind }) => kind),
    withSettings.map(({ key }) => key.replaceAll('-', '_')),
  );
  for (const { key, credential, connections, settings } of all) {
    const example = given[key];
    if (example) {
      test.ok(credential.safeParse(example).success && credentialBody.safeParse(example).success, key);
      test.ok(connections.some((kind) => kind === example.kind));
    }
    const chosen = settingsExamples.find(({ kind }) => kind === key.replaceAll('-', '_'));
    if (settings) test.ok(settings.schema.safeParse(chosen).success, key);
  }
  test.end();
});

t.test('what a person looks up while choosing has a path of its provider', (test) => {
  const paths = apiEndpoints().map((endpoint) => endpoint.path);
  const asked = all.flatMap(({ key, lookUp }) => (lookUp ? [`/${key}/${lookUp}`] : []));
  for (const end of asked) test.equal(paths.filter((one) => one.endsWith(end)).length, 1, end);
  test.equal(new Set(all.flatMap(({ lookUp }) => lookUp ?? [])).size, asked.length, 'one provider each');
  test.end();
});

t.test(
  'the OAuth client of a deployment is set for each provider that takes one, and named where it is missing',
  (test) => {
    const { integrations: settings } = integrationConfig({ origins: {} });
    for (const provider of all) {
      const authorized = provider.oauth1 !== undefined || provider.oauth2 !== undefined;
      const isFound = provider.oauth2 !== undefined && 'discover' in provider.oauth2;
      test.equal(provider.deploymentClient !== undefined, authorized && !isFound, provider.key);
      if (provider.deploymentClient === undefined) continue;
      test.ok(deploymentClient({ settings }, provider), provider.key);
      try {
        requireDeploymentClient(
          { settings: { ...settings, oauthClients: { google: undefined, github: undefined, xAds: undefined } } },
          provider,
        );
        test.fail(provider.key);
      } catch (error) {
        const { issues } = z.looseObject({ issues: z.tuple([z.looseObject({ path: z.string() })]) }).parse(error);
        test.ok(Object.hasOwn(integrationSettings, issues[0].path), issues[0].path);
      }
    }
    test.end();
  },
);
