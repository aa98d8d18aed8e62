import t from 'tap';
import { Problem } from '../../../engine/db/problem.ts';
import { integrationProblem } from '../../../engine/integrations/index.ts';
import { ProviderError, type ProviderReason } from '../../../engine/providers/outgoing/index.ts';

const OF_CONNECTION: readonly ProviderReason[] = ['refused', 'blocked', 'rate_limited', 'unavailable'];
const OF_ARGUMENTS: readonly ProviderReason[] = ['failed', 'forbidden', 'not_found'];

t.test('the arguments of a call are blamed for what they are at fault for alone', async (test) => {
  const pathOf = (reason: ProviderReason) => {
    const problem = integrationProblem(new ProviderError('stripe', reason, 'It went wrong.'), 'arguments');
    return problem instanceof Problem ? problem.issues?.[0]?.path : undefined;
  };
  for (const reason of OF_CONNECTION) test.equal(pathOf(reason), 'connection', reason);
  for (const reason of OF_ARGUMENTS) test.equal(pathOf(reason), 'arguments', reason);
});
