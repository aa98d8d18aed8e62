import type { Endpoint } from '../../http/endpoint.ts';
import { runFileEndpoints } from './files.ts';
import { lifecycleEndpoints } from './lifecycle.ts';
import { chatTurnEndpoints } from './message.ts';
import { pullEndpoint } from './pull.ts';

/** Contract 4.13 and the pull: the service token alone opens them. */
export function workerEndpoints(): readonly Endpoint[] {
  return [pullEndpoint(), ...lifecycleEndpoints(), ...runFileEndpoints(), ...chatTurnEndpoints()];
}
