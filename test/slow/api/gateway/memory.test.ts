import t from 'tap';
import { openGateway } from '../../../support/gateway_world.ts';
import { largeUpload } from './large_upload.ts';

const gateway = await openGateway(t);

t.test('a file of 1 GiB is sent, completed and read with little memory', async (t) => {
  t.setTimeout(600_000);
  await largeUpload(t, gateway, 1024);
});
