// What the tests use of oidc-provider, which comes without types.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  type Token = Readonly<{ accountId?: string; grantId?: string; scope?: string; clientId?: string }> & {
    destroy(): Promise<void>;
  };
  type Tokens = Readonly<{
    find(value: string): Promise<Token | undefined>;
    revokeByGrantId(grantId: string): Promise<void>;
  }>;
  type Interaction = Readonly<{
    uid: string;
    prompt: Readonly<{ name: string; details: Readonly<Record<string, unknown>> }>;
    params: Readonly<Record<string, unknown>>;
    session?: Readonly<{ accountId: string }>;
  }>;
  type Grant = {
    addOIDCScope(scope: string): void;
    rejectOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    rejectResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  };

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    proxy: boolean;
    AccessToken: Tokens;
    RefreshToken: Tokens & { new (of: Readonly<Record<string, unknown>>): Readonly<{ save(): Promise<string> }> };
    Client: Readonly<{
      find(id: string): Promise<unknown>;
      adapter: Readonly<{ destroy(id: string): Promise<void> }>;
    }>;
    Grant: { new (of: Readonly<{ accountId: string; clientId: string }>): Grant };
    callback(): (req: IncomingMessage, res: ServerResponse) => void;
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<Interaction>;
    interactionFinished(
      req: IncomingMessage,
      res: ServerResponse,
      result: Readonly<Record<string, unknown>>,
      options?: Readonly<{ mergeWithLastSubmission: boolean }>,
    ): Promise<void>;
    on(event: string, listener: (...given: unknown[]) => void): this;
  }
}
